//! What leaves this machine has TLS, or is not served.

use jackfield_e2e::{Home, http::listening_address};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use std::{
    fs::{self, Permissions},
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    time::Duration,
};

/// A home whose configuration names a certificate.
fn certified() -> (Home, CertificateDer<'static>) {
    let home = Home::new();
    let config = home.path().join("config");
    fs::create_dir_all(&config).unwrap();
    let made = rcgen::generate_simple_self_signed(["build.example.org".to_owned()]).unwrap();
    fs::write(config.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(config.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(config.join("key.pem"), Permissions::from_mode(0o600)).unwrap();
    let settings =
        "[http]\nhosts = [\"build.example.org\"]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";
    fs::write(config.join("config.toml"), settings).unwrap();
    (home, made.cert.der().clone())
}

#[test]
fn a_client_elsewhere_is_served_with_tls_under_the_name_of_the_configuration() {
    let (home, trusted) = certified();
    let daemon = home.serve(&["--listen", "https://0.0.0.0:0"]);
    let port = listening_address(&home, "https").port();
    let token = home.run(&["token"], Duration::from_secs(20)).stdout;
    let token = String::from_utf8(token).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let ask = |host: &str| {
        let name = ServerName::try_from("build.example.org").unwrap();
        let tls = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let mut stream = StreamOwned::new(tls, TcpStream::connect(("127.0.0.1", port)).unwrap());
        let said = format!(
            "GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\
             Connection: close\r\n\r\n",
            token.trim()
        );
        stream.write_all(said.as_bytes()).unwrap();
        let mut heard = Vec::new();
        // The end is told or not: the answer has a length.
        let _end = stream.read_to_end(&mut heard);
        super::statuses(&String::from_utf8_lossy(&heard))
    };
    assert_eq!(ask("build.example.org"), [200]);
    assert_eq!(ask(&format!("127.0.0.1:{port}")), [200]);
    assert_eq!(ask("evil.example"), [421]);
    assert_eq!(ask("0.0.0.0"), [421]);
    daemon.stop();
}

#[test]
fn an_address_that_would_not_be_safe_is_refused_with_a_way_out() {
    let (home, _) = certified();
    let refused = |home: &Home, address: &str| {
        let output = home.run(&["serve", "--listen", address], Duration::from_secs(20));
        assert_eq!(output.status.code(), Some(1), "{address}");
        String::from_utf8(output.stderr).unwrap()
    };
    for address in ["http://0.0.0.0:0", "http://[::]:0", "http://192.0.2.1:0", "tcp://0.0.0.0:0"] {
        let said = refused(&home, address);
        assert!(said.contains("unencrypted") && said.contains("use `https://`"), "{said}");
        assert!(said.contains("`--insecure` permits"), "{said}");
    }
    let key = home.path().join("config/key.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let said = refused(&home, "https://127.0.0.1:0");
    assert!(
        said.contains("is accessible to others (mode 644)") && said.contains("chmod 600"),
        "{said}"
    );
    fs::remove_file(&key).unwrap();
    let said = refused(&home, "https://127.0.0.1:0");
    assert!(said.contains("failed to read certificate or key"), "{said}");
    let bare = Home::new();
    let said = refused(&bare, "https://127.0.0.1:0");
    assert!(said.contains("set `cert` and `key` under [http] in config.toml"), "{said}");
}
