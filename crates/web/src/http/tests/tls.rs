//! Tests of the web task with TLS.

use super::{TestPeer, TestServer, status};
use crate::http::WebListener;
use crate::http::limits::HANDSHAKE_TIMEOUT;
use jackfield_transport::{BindError, TlsCertificate};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

struct TlsBench {
    server: TestServer,
    _dir: tempfile::TempDir,
    trusted: CertificateDer<'static>,
}

impl TlsBench {
    fn new() -> TlsBench {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        fs::write(&chain, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let server = TestServer::open("https://127.0.0.1:0", Some(&TlsCertificate { chain, key }));
        TlsBench { server, _dir: dir, trusted: made.cert.der().clone() }
    }

    async fn dial(&self, protocols: &[&[u8]]) -> TestPeer<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let plain = self.server.dial().await.stream;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, plain).await.unwrap();
        TestPeer { stream, received: Vec::new() }
    }
}

#[tokio::test]
async fn client_with_tls_is_accepted_and_its_page_is_our_own() {
    let secure = TlsBench::new();
    let mut peer = secure.dial(&[b"http/1.1"]).await;
    assert_eq!(peer.stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let own = format!("Origin: https://{}\r\nConnection: close\r\n\r\n", secure.server.at);
    peer.send(&(secure.server.head("GET /seen") + &own)).await;
    assert_eq!(status(&peer.read_to_end().await), "200");
    let mut peer = secure.dial(&[]).await;
    let other = format!("Origin: http://{}\r\n\r\n", secure.server.at);
    peer.send(&(secure.server.head("GET /seen") + &other)).await;
    assert_eq!(status(&peer.read_to_end().await), "403", "the same without TLS is another origin");
    secure.server.finish().await;
}

#[tokio::test]
async fn http_2_is_preferred_over_http_1() {
    let secure = TlsBench::new();
    let mut peer = secure.dial(&[b"http/1.1", b"h2"]).await;
    assert_eq!(peer.stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0").await;
    // Our settings are a frame that begins with its length and its kind.
    while peer.received.len() < 9 {
        let read = tokio::io::AsyncReadExt::read_buf(&mut peer.stream, &mut peer.received).await;
        assert_ne!(read.unwrap(), 0);
    }
    assert_eq!(peer.received[3], 4);
    drop(peer);
    secure.server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn connection_without_tls_is_closed_soon() {
    let secure = TlsBench::new();
    let mut plain = secure.server.dial().await;
    plain.send(&format!("{}\r\n", secure.server.head("GET /seen"))).await;
    let received = plain.read_to_end().await;
    assert!(!received.contains("HTTP"), "{received}");
    let started = Instant::now();
    let silent = secure.server.dial().await;
    assert_eq!(silent.read_to_end().await, "");
    assert!(started.elapsed() < 2 * HANDSHAKE_TIMEOUT, "{:?}", started.elapsed());
    secure.server.finish().await;
}

#[test]
fn address_without_a_certificate_is_refused() {
    let bind = |text: &str| WebListener::bind(&text.parse().unwrap(), None).unwrap_err();
    let error = bind("https://0.0.0.0:0");
    assert!(matches!(error, BindError::NeedsCertificate { .. }), "{error}");
    assert!(error.to_string().contains("`cert` and `key` under [http]"), "{error}");
    let error = bind("http://0.0.0.0:0").to_string();
    assert!(error.contains("without TLS"), "{error}");
}
