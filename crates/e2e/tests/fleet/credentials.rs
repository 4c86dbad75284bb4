//! A fleet that is set up as in `docs/fleet.md`: certificates by `jackfield fleet certs`, a server with the shipped
//! configuration, and each member and operator with the certificates of its role.

use super::agent;
use jackfield_e2e::{Client, Home};
use jackfield_test_support::nats::{Cluster, deployed_configuration, without_routes};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn output(home: &Home, args: &[&str]) -> (bool, String, String) {
    let done = home.run(args, SOON);
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

fn client_of(home: &Home, agent: &[String]) -> Client {
    let mut client = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": agent } });
    client.notify("_jackfield/connect", &agent);
    client.hello_aware();
    client
}

/// Each role has the permissions that it needs, and the server logs no violation.
#[test]
fn members_and_operators_work_with_the_certificates_of_their_roles() {
    let home = Home::new();
    let certificates = home.path().join("certs");
    let cluster = Cluster::start_with(|clients, routes, store| {
        let (place, server) = (certificates.to_str().unwrap(), clients.ip().to_string());
        let (ok, listed, stderr) = output(&home, &["fleet", "certs", place, "--server", &server]);
        assert!(ok, "{stderr}");
        assert_eq!(listed.lines().count(), 5, "{listed}");
        let (ok, listed, _) = output(&home, &["fleet", "certs", place, "--server", &server]);
        assert!(ok && listed.is_empty(), "nothing is written twice: {listed}");
        let own = certificates.join("servers").join(&server);
        without_routes(&deployed_configuration(clients, routes, &own, store))
    });
    let servers = cluster.servers()[0].url().replace("nats://", "tls://");
    let of_role = |role: &str| certificates.join(role).to_str().unwrap().to_owned();
    let member = |role: &str| {
        let home = Home::new();
        let certs = of_role(role);
        let flags = ["--fleet", &servers, "--fleet-certs", &certs, "--role", role];
        let cell = ["--host-name", role, "--shards", "4", "--replicas", "1"];
        let daemon = home.serve(&[&flags[..], &cell].concat());
        (home, daemon)
    };
    let (host, host_daemon) = member("host");
    let (gateway, gateway_daemon) = member("gateway");

    let mut client = client_of(&gateway, &agent(&host, &host.path().join("memory")));
    let session = client.open(host.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    client.ask("session/delete", &json!({ "sessionId": session }));
    let operator = of_role("operator");
    let at = ["--fleet", servers.as_str(), "--fleet-certs", &operator];
    for (command, expected) in [
        (&["fleet", "status", "--format", "json"][..], "\"healthy\": true"),
        (&["fleet", "hosts"], "host"),
        (&["fleet", "audit"], "session/prompt"),
        (&["host", "drain", "host", "--timeout", "20"], ""),
    ] {
        let (ok, stdout, stderr) = output(&home, &[command, &at].concat());
        assert!(ok, "{command:?}: {stderr}");
        assert!(stdout.contains(expected), "{command:?}: {stdout}");
    }
    drop(client);
    gateway_daemon.stop();
    host_daemon.stop();
    let log = cluster.servers()[0].said();
    assert!(!log.contains("Violation"), "{log}");
}

#[test]
fn servers_on_the_network_are_refused_without_credentials() {
    let home = Home::new();
    let servers = ["--fleet", "nats://192.0.2.1:4222"];
    for command in [&["serve"][..], &["fleet", "status"], &["host", "drain", "a"]] {
        let (ok, _, stderr) = output(&home, &[command, &servers].concat());
        assert!(!ok, "{command:?}");
        for part in ["192.0.2.1", "jackfield fleet certs", "--fleet-certs"] {
            assert!(stderr.contains(part), "{command:?}: {stderr}");
        }
    }
}
