//! NDJSON over TLS.

use crate::harness::{EventCollector, SocketFolder, frame, lines, within};
use jackfield_transport::{
    AcceptError, AuthRefusal, ClientAuthenticator, ClientEvent, ClientListener, EndpointAddress,
    TlsCertificate,
};
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
struct TlsServer {
    folder: SocketFolder,
    listener: ClientListener,
    connector: TlsConnector,
}

impl TlsServer {
    fn new() -> TlsServer {
        let folder = SocketFolder::new();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (folder.dir.path().join("cert.pem"), folder.dir.path().join("key.pem"));
        fs::write(&chain, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let at = "0.0.0.0:0".parse().unwrap();
        let certificate = TlsCertificate { chain, key };
        let listener =
            ClientListener::bind_tls(at, &certificate, &ClientAuthenticator::from(&folder.token()))
                .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsServer { folder, listener, connector: TlsConnector::from(Arc::new(config)) }
    }

    fn at(&self) -> SocketAddr {
        let EndpointAddress::Tcp(at) = *self.listener.address() else { panic!("no TCP") };
        (std::net::Ipv4Addr::LOCALHOST, at.port()).into()
    }

    fn auth_line(&self) -> Vec<u8> {
        let token = self.folder.token();
        let params = format!(r#"{{"token":"{}"}}"#, token.reveal());
        format!("{{\"method\":\"_jackfield/auth\",\"params\":{params}}}\n").into_bytes()
    }

    /// Connects and sends `first`, while the listener accepts.
    async fn connect_client(&mut self, first: Vec<u8>) -> (TlsStream<TcpStream>, AcceptedClient) {
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

type AcceptedClient = Result<jackfield_transport::ClientStream, AcceptError>;

#[tokio::test]
async fn client_with_token_over_tls_exchanges_large_frames() {
    let mut place = TlsServer::new();
    let first = [place.auth_line(), lines(&[frame(1, 10)])].concat();
    let (mut there, here) = place.connect_client(first).await;
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here.unwrap(), 1).await;
    assert_eq!(collector.texts(1).await, [std::str::from_utf8(&frame(1, 10)).unwrap()]);
    let large = frame(2, 3_000_000);
    handle.send(large.clone());
    let wrote = handle.flush();
    let mut heard = vec![0; large.len() + 1];
    within(there.read_exact(&mut heard)).await.unwrap();
    assert_eq!(heard, lines(std::slice::from_ref(&large)));
    collector.until_wrote(wrote, large.len()).await;
    there.write_all(&lines(std::slice::from_ref(&large))).await.unwrap();
    there.flush().await.unwrap();
    assert_eq!(collector.texts(1).await[0].len(), large.len());
    // It closes its sending side and still receives.
    there.shutdown().await.unwrap();
    assert!(matches!(collector.next().await.1, ClientEvent::Finished));
    handle.send(frame(3, 1));
    handle.close_after_flush();
    let mut rest = Vec::new();
    within(there.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, lines(&[frame(3, 1)]));
    drop(there);
    collector.until_gone().await;
}

#[tokio::test]
async fn tls_without_a_token_is_refused() {
    let mut place = TlsServer::new();
    let (mut there, met) = place.connect_client(lines(&[frame(1, 1)])).await;
    assert!(matches!(met, Err(AcceptError::Refused { why: AuthRefusal::NoToken, .. })), "{met:?}");
    let mut said = String::new();
    within(there.read_to_string(&mut said)).await.unwrap();
    assert!(said.contains("the first line is not `_jackfield/auth`"), "{said}");
}

#[tokio::test]
async fn token_without_tls_is_refused() {
    let mut place = TlsServer::new();
    let mut there = TcpStream::connect(place.at()).await.unwrap();
    there.write_all(&place.auth_line()).await.unwrap();
    let met = within(place.listener.accept()).await;
    let Err(AcceptError::Refused { why, .. }) = met else { panic!("{met:?}") };
    assert!(matches!(why, AuthRefusal::Handshake { .. }), "{why}");
}
