//! Headers that the proxy of a sandbox adds to requests: the server gets the secret, and the agent does not.

use crate::sandbox::{SandboxScene, TestedLayer};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::Arc,
    thread,
};

/// Serves one request over TLS with the body `served`, and returns its head.
fn serve_one_request(listener: &TcpListener, config: ServerConfig) -> String {
    let (stream, _) = listener.accept().unwrap();
    let tls = ServerConnection::new(Arc::new(config)).unwrap();
    let mut reader = BufReader::new(StreamOwned::new(tls, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ended early: {head}");
    }
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved";
    reader.get_mut().write_all(response).unwrap();
    reader.get_mut().conn.send_close_notify();
    reader.get_mut().flush().unwrap();
    head
}

fn server_config(made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> ServerConfig {
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

#[test]
fn server_gets_a_header_that_the_agent_cannot_read() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let trusted = tempfile::NamedTempFile::new().unwrap();
    fs::write(&trusted, made.cert.pem()).unwrap();
    let variables = [("SSL_CERT_FILE", trusted.path().to_str().unwrap())];
    let scene = SandboxScene::with_variables(TestedLayer::Bubblewrap, &variables);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    let secret = scene.home.path().join("config/header");
    fs::write(&secret, "Bearer hunter2").unwrap();
    let policy = format!(
        "[sandbox.workspace.network]\nhosts = [\"{host}\"]\nprivate = [\"{host}\"]\n\
         headers = [{{ host = \"{host}\", name = \"Authorization\", value_file = \"{}\" }}]\n",
        secret.display()
    );
    fs::write(scene.home.path().join("config/policy.toml"), policy).unwrap();
    let config = server_config(&made);
    let server = thread::spawn(move || serve_one_request(&listener, config));

    let text = format!(
        "import http.client, os, urllib.parse\n\
         proxy = urllib.parse.urlparse(os.environ['http_proxy'])\n\
         connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)\n\
         connection.request('GET', 'http://{host}/v1', headers={{'Authorization': 'none'}})\n\
         response = connection.getresponse()\n\
         print(response.status, response.read().decode(), response.headers)\n\
         print(dict(os.environ))\n\
         try: print(open('{}').read())\n\
         except OSError as error: print('not readable:', error.strerror)\n",
        secret.display()
    );
    fs::write(scene.work.join("fetch.py"), text).unwrap();
    let mut client = scene.connect(&scene.home.fake_agent(&[]), "workspace");
    let session = client.open(&scene.work);
    client.prompt(&session, "terminal /usr/bin/python3 fetch.py");
    let printed = client.text();
    assert!(printed.contains("200 served"), "{printed}");
    assert!(printed.contains("not readable:"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let head = server.join().unwrap();
    assert!(head.starts_with("GET /v1 HTTP/1.1\r\n"), "{head}");
    let sent: Vec<&str> =
        head.lines().filter(|it| it.to_ascii_lowercase().starts_with("authorization:")).collect();
    assert!(matches!(*sent, [header] if header.ends_with(" Bearer hunter2")), "{head}");
    scene.daemon.stop();
}
