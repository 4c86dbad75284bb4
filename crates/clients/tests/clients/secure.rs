//! NDJSON over TLS: the token inside it, both ways, and both ends of an end.

use crate::desk::{Desk, Home, frame, lines, within};
use jackfield_clients::web::Certificate;
use jackfield_clients::{AcceptError, Address, ClientEvent, Keys, Listener, Refusal};
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A listener on every address of this machine, and what connects to it.
struct Place {
    home: Home,
    listener: Listener,
    connector: TlsConnector,
}

impl Place {
    fn new() -> Place {
        let home = Home::new();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (home.dir.path().join("cert.pem"), home.dir.path().join("key.pem"));
        fs::write(&chain, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let at = "0.0.0.0:0".parse().unwrap();
        let certificate = Certificate { chain, key };
        let listener = Listener::bind_tls(at, &certificate, &Keys::from(&home.token())).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Place { home, listener, connector: TlsConnector::from(Arc::new(config)) }
    }

    fn at(&self) -> SocketAddr {
        let Address::Tcp(at) = *self.listener.address() else { panic!("no TCP") };
        (std::net::Ipv4Addr::LOCALHOST, at.port()).into()
    }

    fn introduction(&self) -> Vec<u8> {
        let token = self.home.token();
        let params = format!(r#"{{"token":"{}"}}"#, token.reveal());
        format!("{{\"method\":\"_jackfield/auth\",\"params\":{params}}}\n").into_bytes()
    }

    /// Connects and says `first`; the listener is asked meanwhile.
    async fn meet(&mut self, first: Vec<u8>) -> (TlsStream<TcpStream>, Met) {
        let (connector, at) = (self.connector.clone(), self.at());
        let there = async {
            let name = ServerName::try_from("localhost").unwrap();
            let tcp = TcpStream::connect(at).await.unwrap();
            let mut there = connector.connect(name, tcp).await.unwrap();
            there.write_all(&first).await.unwrap();
            there.flush().await.unwrap();
            there
        };
        within(async { tokio::join!(there, self.listener.accept()) }).await
    }
}

type Met = Result<jackfield_clients::Stream, AcceptError>;

#[tokio::test]
async fn whoever_shows_the_token_inside_tls_is_heard_and_told_much_and_at_once() {
    let mut place = Place::new();
    let first = [place.introduction(), lines(&[frame(1, 10)])].concat();
    let (mut there, here) = place.meet(first).await;
    let mut desk = Desk::new();
    let mut handle = desk.open(here.unwrap(), 1).await;
    assert_eq!(desk.texts(1).await, [std::str::from_utf8(&frame(1, 10)).unwrap()]);
    let large = frame(2, 3_000_000);
    handle.send(large.clone());
    let wrote = handle.flush();
    let mut heard = vec![0; large.len() + 1];
    within(there.read_exact(&mut heard)).await.unwrap();
    assert_eq!(heard, lines(std::slice::from_ref(&large)));
    desk.until_wrote(wrote, large.len()).await;
    there.write_all(&lines(std::slice::from_ref(&large))).await.unwrap();
    there.flush().await.unwrap();
    assert_eq!(desk.texts(1).await[0].len(), large.len());
    // It stops talking, and still hears.
    there.shutdown().await.unwrap();
    assert!(matches!(desk.next().await.1, ClientEvent::Finished));
    handle.send(frame(3, 1));
    handle.close_after_flush();
    let mut rest = Vec::new();
    within(there.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, lines(&[frame(3, 1)]));
    drop(there);
    desk.until_gone().await;
}

#[tokio::test]
async fn without_the_token_tls_alone_is_not_enough() {
    let mut place = Place::new();
    let (mut there, met) = place.meet(lines(&[frame(1, 1)])).await;
    assert!(matches!(met, Err(AcceptError::Refused { why: Refusal::NoToken, .. })), "{met:?}");
    let mut said = String::new();
    within(there.read_to_string(&mut said)).await.unwrap();
    assert!(said.contains("the first line is not `_jackfield/auth`"), "{said}");
}

#[tokio::test]
async fn without_tls_the_token_is_not_even_looked_at() {
    let mut place = Place::new();
    let mut there = TcpStream::connect(place.at()).await.unwrap();
    there.write_all(&place.introduction()).await.unwrap();
    let met = within(place.listener.accept()).await;
    let Err(AcceptError::Refused { why, .. }) = met else { panic!("{met:?}") };
    assert!(matches!(why, Refusal::Handshake { .. }), "{why}");
}
