//! Headers that the proxy adds.

use crate::test_host::TestHost;
use crate::test_proxy::{TestPeer, TestProxy, rules};
use jackfield_network_proxy::{CredentialInjection, HeaderInjection, tls_config_with_roots};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

const SECRET: &str = "Bearer of-the-user";

struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

impl TestAuthority {
    fn new() -> TestAuthority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        TestAuthority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn injection(&self, target: &str) -> CredentialInjection {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        CredentialInjection {
            headers: vec![HeaderInjection::new(target, "Authorization", SECRET).unwrap()],
            tls: tls_config_with_roots(roots).unwrap(),
        }
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// An injection that trusts an authority without certificates.
pub(crate) fn injection_for(target: &str) -> CredentialInjection {
    TestAuthority::new().injection(target)
}

async fn accept_tls(
    host: &TestHost,
    acceptor: &TlsAcceptor,
) -> std::io::Result<TestPeer<TlsStream<TcpStream>>> {
    let stream = host.accept_stream().await;
    acceptor.accept(stream).await.map(TestPeer::new)
}

fn proxy_with_injection(target: &str, authority: &TestAuthority) -> TestProxy {
    TestProxy::start_with(rules(&[target], true), |config| {
        config.injection = Some(authority.injection(target));
    })
}

#[tokio::test]
async fn header_of_the_process_is_replaced_and_the_request_is_sent_over_tls() {
    let (host, authority) = (TestHost::bind().await, TestAuthority::new());
    let target = format!("a.test:{}", host.port);
    let mut proxy = proxy_with_injection(&target, &authority);
    let mut client = proxy.dial().await;
    // Port 80 is replaced by the port of the injection. `Connection` must not remove the header.
    client
        .send(
            "POST http://a.test/v1 HTTP/1.1\r\nHost: a.test\r\nauthorization: Bearer of-the-process\r\n\
             Authorization: Basic x\r\nConnection: authorization\r\nContent-Length: 2\r\n\r\nhi",
        )
        .await;
    let mut upstream = accept_tls(&host, &authority.acceptor("a.test")).await.unwrap();
    let request = upstream.read_until("hi").await;
    let expected = format!(
        "POST /v1 HTTP/1.1\r\nhost: {target}\r\ncontent-length: 2\r\nauthorization: {SECRET}\r\n\r\nhi"
    );
    assert_eq!(request, expected);
    upstream
        .send("HTTP/1.1 302 Found\r\nLocation: http://b.test/\r\nContent-Length: 0\r\n\r\n")
        .await;
    let response = client.read_until("\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 302 Found\r\n"), "{response}");
    // The next request uses the same TLS connection.
    client.send(&format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
    assert!(upstream.read_until("\r\n\r\n").await.contains(SECRET));
    assert!(
        proxy.take_reports().iter().all(|it| it.starts_with(&target) && !it.contains("Bearer"))
    );
}

#[tokio::test]
async fn host_with_a_wrong_certificate_gets_no_request() {
    let (host, authority) = (TestHost::bind().await, TestAuthority::new());
    let target = format!("a.test:{}", host.port);
    let proxy = proxy_with_injection(&target, &authority);
    let request = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for acceptor in [authority.acceptor("b.test"), TestAuthority::new().acceptor("a.test")] {
        let (response, accepted) =
            tokio::join!(proxy.exchange(request), accept_tls(&host, &acceptor));
        assert!(response.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{response}");
        assert!(response.contains("certificate"), "{response}");
        // TLS 1.3 lets the server finish before the client has refused; then nothing follows.
        if let Ok(mut upstream) = accepted {
            assert_eq!(upstream.read_to_end().await, "");
        }
    }
}

#[tokio::test]
async fn other_hosts_other_ports_and_tunnels_get_no_header() {
    let (host, secured) = (TestHost::bind().await, TestHost::bind().await);
    let [own, other] = ["a.test", "b.test"].map(|it| format!("{it}:{}", host.port));
    let proxy = TestProxy::start_with(rules(&[&own, &other], true), |config| {
        let target = format!("a.test:{}", secured.port);
        config.injection = Some(TestAuthority::new().injection(&target));
    });
    for target in [&own, &other] {
        let mut client = proxy.dial().await;
        client.send(&format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        let request = host.accept().await.read_until("\r\n\r\n").await;
        assert_eq!(request, format!("GET / HTTP/1.1\r\nhost: {target}\r\n\r\n"));
    }
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {own} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")).await;
    let request = host.accept().await.read_until("\r\n\r\n").await;
    assert_eq!(request, "GET / HTTP/1.1\r\n\r\n");
}

#[tokio::test]
async fn injection_alone_does_not_allow_its_host() {
    let (host, authority) = (TestHost::bind().await, TestAuthority::new());
    let target = format!("a.test:{}", host.port);
    let mut proxy = TestProxy::start_with(rules(&["b.test"], true), |config| {
        config.injection = Some(authority.injection(&target));
    });
    proxy.questions.close();
    let response = proxy.exchange("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
    assert!(host.has_no_connection().await);
}
