//! The published server configuration `deploy/nats.conf` with the addresses of a test.

use std::{fs, net::SocketAddr, path::Path};

/// Uses the certificates of this folder, which `jackfield fleet certs` wrote for the server.
pub fn deployed_configuration(
    clients: SocketAddr,
    routes: SocketAddr,
    certificates: &Path,
    store: &Path,
) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats.conf");
    let mut text = fs::read_to_string(path).expect("it is part of the project");
    // Included paths are relative to the including file.
    let authorization = certificates.join("authorization.conf");
    let authorization = fs::read_to_string(authorization).expect("it was written");
    for (from, to) in [
        ("0.0.0.0:4222", clients.to_string()),
        ("0.0.0.0:6222", routes.to_string()),
        ("/etc/nats/", format!("{}/", certificates.display())),
        ("include \"authorization.conf\"", authorization),
        ("/var/lib/nats", store.display().to_string()),
    ] {
        assert!(text.contains(from), "deploy/nats.conf has no {from}");
        text = text.replace(from, &to);
    }
    text
}

/// The same for a single server. With routes it would wait for the others.
pub fn without_routes(configuration: &str) -> String {
    let (before, cluster) = configuration.split_once("cluster {").expect("it has routes");
    let (_, after) = cluster.split_once("\n}\n").expect("the block ends");
    format!("{before}{after}")
}
