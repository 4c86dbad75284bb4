//! Tests the shipped configuration of a NATS server with the certificates of `jackfield fleet
//! certs` on a real server: unauthenticated clients have no access, and each role only the access
//! that it needs.

use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt as _;
use jackfield_fleet::{
    FleetConnection, FleetRole, HostInstance, HostRequest, HostResponse, write_certificates,
};
use jackfield_nats_access::{ClientRole, NatsServers};
use jackfield_test_support::nats::{Cluster, deployed_configuration, without_routes};
use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(30);
const CELL: &str = "cell";

/// One server with the configuration of `deploy/nats.conf`, and the certificates for it.
struct SecuredServer {
    cluster: Cluster,
    certificates: TempDir,
}

impl SecuredServer {
    /// `edit` modifies the configuration.
    fn start(edit: impl FnOnce(&str) -> String) -> SecuredServer {
        let certificates = tempfile::tempdir().unwrap();
        let cluster = Cluster::start_with(|clients, routes, store| {
            let server = clients.ip().to_string();
            write_certificates(certificates.path(), std::slice::from_ref(&server), CELL).unwrap();
            let own = certificates.path().join("servers").join(&server);
            edit(&deployed_configuration(clients, routes, &own, store))
        });
        SecuredServer { cluster, certificates }
    }

    fn directory(&self, role: FleetRole) -> PathBuf {
        self.certificates.path().join(role.name())
    }

    fn url(&self) -> String {
        self.cluster.servers()[0].url().replace("nats://", "tls://")
    }

    fn servers(&self, role: FleetRole) -> NatsServers {
        let client_role = match role {
            FleetRole::Operator => ClientRole::Operator,
            FleetRole::Host | FleetRole::Gateway => ClientRole::Member,
        };
        NatsServers::new(vec![self.url()], Some(self.directory(role)), client_role).unwrap()
    }

    async fn connect(&self, role: FleetRole) -> FleetConnection {
        FleetConnection::connect(&self.servers(role), CELL).await.unwrap()
    }

    async fn client(&self, role: FleetRole) -> RoleClient {
        let (tx, refusals) = mpsc::channel(64);
        let options = self.servers(role).connect_options().event_callback(move |event| {
            if let Event::ServerError(error) = event {
                // The channel is closed when the test has ended.
                let _ = tx.try_send(error.to_string());
            }
            std::future::ready(())
        });
        RoleClient { client: options.connect(self.url()).await.unwrap(), refusals }
    }
}

/// A client with the certificate of a role, and the refusals that the server has sent to it.
struct RoleClient {
    client: Client,
    refusals: mpsc::Receiver<String>,
}

impl RoleClient {
    async fn assert_cannot_publish(&mut self, subject: &str) {
        self.client.publish(subject.to_owned(), "{}".into()).await.unwrap();
        self.assert_refused(&format!("publish to \"{subject}\"")).await;
    }

    async fn assert_cannot_subscribe(&mut self, subject: &str) {
        let _subscriber = self.client.subscribe(subject.to_owned()).await.unwrap();
        self.assert_refused(&format!("subscription to \"{subject}\"")).await;
    }

    async fn assert_refused(&mut self, what: &str) {
        self.client.flush().await.unwrap();
        let refusal = within_timeout(what, self.refusals.recv()).await.unwrap();
        let refusal = refusal.to_lowercase();
        assert!(refusal.contains("permissions violation"), "{refusal}");
        assert!(refusal.contains(&what.to_lowercase()), "{refusal}, not {what}");
    }
}

async fn within_timeout<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or_else(|_| panic!("no {what} in {TIMEOUT:?}"))
}

/// Whether the server accepts a connection.
async fn can_connect(options: ConnectOptions, url: &str) -> bool {
    let connected = within_timeout("answer", options.connect(url)).await;
    match connected {
        Ok(client) => client.flush().await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn clients_without_a_certificate_of_the_fleet_cannot_connect() {
    let server = SecuredServer::start(without_routes);
    let (plain, secure) = (server.cluster.servers()[0].url(), server.url());
    let authority = server.directory(FleetRole::Host).join("ca.pem");

    assert!(!can_connect(ConnectOptions::new(), &plain).await, "no TLS and no credentials");
    let trusting = || ConnectOptions::new().add_root_certificates(authority.clone());
    assert!(!can_connect(trusting(), &secure).await, "TLS without a certificate");
    let password = trusting().user_and_password("jackfield-host".into(), String::new());
    assert!(!can_connect(password, &secure).await, "the name of a role and no certificate");

    // The same names, signed by another authority.
    let others = tempfile::tempdir().unwrap();
    write_certificates(others.path(), &["n1".to_owned()], CELL).unwrap();
    let forged_directory = others.path().join(FleetRole::Host.name());
    let forged = trusting().add_client_certificate(
        forged_directory.join("cert.pem"),
        forged_directory.join("key.pem"),
    );
    assert!(!can_connect(forged, &secure).await, "a certificate of another fleet");

    // The certificate of a server is valid for routes, not for a client.
    let ip = server.cluster.servers()[0].address().ip().to_string();
    let own = server.certificates.path().join("servers").join(ip);
    let as_server = trusting().add_client_certificate(own.join("cert.pem"), own.join("key.pem"));
    assert!(!can_connect(as_server, &secure).await, "the certificate of a server");

    assert!(
        can_connect(server.servers(FleetRole::Host).connect_options(), &secure).await,
        "a host"
    );
}

#[tokio::test]
async fn roles_have_only_the_permissions_that_they_need() {
    let server = SecuredServer::start(without_routes);
    let mut prepared = server.connect(FleetRole::Host).await;
    prepared.create_streams(1).await.unwrap();

    let mut gateway = server.client(FleetRole::Gateway).await;
    for subject in [
        "cell.log.0.s-1",
        "cell.sum.s-1",
        "cell.own.a.s-1",
        "cell.host.a",
        "cell.relay.1.g",
        "cell.ask.a.1.drain",
        "$JS.API.STREAM.PURGE.cell-log-0",
        "$JS.API.STREAM.DELETE.cell-log-0",
        "$JS.API.STREAM.MSG.DELETE.cell-log-0",
        "$JS.API.STREAM.UPDATE.cell-log-0",
        "other.subject",
    ] {
        gateway.assert_cannot_publish(subject).await;
    }
    for subject in ["cell.relay.*.h", "cell.ask.>", ">"] {
        gateway.assert_cannot_subscribe(subject).await;
    }

    let mut operator = server.client(FleetRole::Operator).await;
    for subject in [
        "cell.log.0.s-1",
        "cell.ask.a.1.relay",
        "cell.ask.a.1.adopt",
        "cell.relay.1.h",
        "cell.audit",
        "$JS.API.DIRECT.GET.cell-log-0",
        "$JS.API.STREAM.MSG.GET.cell-log-0",
        "$JS.API.CONSUMER.CREATE.cell-log-0.x",
        "$JS.API.STREAM.CREATE.more",
    ] {
        operator.assert_cannot_publish(subject).await;
    }
    for subject in ["_INBOX_MEMBER.>", "cell.relay.*.g", "cell.ask.>", ">"] {
        operator.assert_cannot_subscribe(subject).await;
    }

    let mut host = server.client(FleetRole::Host).await;
    for subject in ["other.subject", "$JS.API.STREAM.DELETE.cell-log-0", "$SYS.REQ.SERVER.PING"] {
        host.assert_cannot_publish(subject).await;
    }
}

/// The servers authorize requests by subject, but a host reads the request from the message.
#[tokio::test]
async fn opening_a_host_connection_requires_the_gateway_role() {
    let server = SecuredServer::start(without_routes);
    let host = HostInstance { name: "a".into(), incarnation: "1".into() };
    let mut requests =
        server.connect(FleetRole::Host).await.listen_for_requests(&host).await.unwrap();
    tokio::spawn(async move {
        while let Some(received) = requests.next_request().await {
            let answer = match received.request {
                HostRequest::OpenConnection(_) => HostResponse::Done,
                _ => HostResponse::SessionsLeft(0),
            };
            received.respond(&answer).await;
        }
    });
    let open = HostRequest::OpenConnection("0123456789abcdef".to_owned());
    let gateway = server.connect(FleetRole::Gateway).await;
    assert_eq!(gateway.send_request(&host, &open, TIMEOUT).await.unwrap(), HostResponse::Done);

    // A subject that an operator may use, with a request that it may not send.
    let operator = server.client(FleetRole::Operator).await;
    let body = serde_json::to_vec(&open).unwrap();
    let mut answers = operator.client.subscribe("_INBOX.smuggled.*").await.unwrap();
    let subject = "cell.ask.a.1.drain";
    operator.client.publish_with_reply(subject, "_INBOX.smuggled.1", body.into()).await.unwrap();
    let drain = serde_json::to_vec(&HostRequest::SetDraining(true)).unwrap();
    operator.client.publish_with_reply(subject, "_INBOX.smuggled.2", drain.into()).await.unwrap();
    let first = within_timeout("answer", answers.next()).await.unwrap();
    let first: HostResponse = serde_json::from_slice(&first.payload).unwrap();
    assert_eq!(
        first,
        HostResponse::SessionsLeft(0),
        "the forbidden request is not answered, the next one is"
    );
}

#[tokio::test]
async fn only_servers_may_join_the_cluster() {
    let server = SecuredServer::start(|text| text.replace("nats://n2:6222", "nats://peer:6222"));
    let deployed = &server.cluster.servers()[0];
    let routes = deployed.route_address();
    let refusals = || deployed.said().matches("authentication error").count();
    let names = ["peer".to_owned(), "stranger".to_owned()];
    write_certificates(server.certificates.path(), &names, CELL).unwrap();
    let servers = server.certificates.path().join("servers");
    for (directory, joins) in [
        (servers.join("peer"), true),
        (servers.join("stranger"), false),
        (server.directory(FleetRole::Host), false),
    ] {
        within_timeout("end of the last route", async {
            while deployed.route_count() != 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        let refused_before = refusals();
        let other = Cluster::start_with(|clients, own_routes, store| {
            let given = directory.display();
            format!(
                "server_name: other\nlisten: \"{clients}\"\n\
                 jetstream {{ store_dir: \"{}\" }}\n\
                 cluster {{ name: jackfield, listen: \"{own_routes}\", routes: [\"nats://{routes}\"]\n\
                 tls {{ cert_file: \"{given}/cert.pem\", key_file: \"{given}/key.pem\",\n\
                 ca_file: \"{given}/ca.pem\", timeout: 5 }} }}\n",
                store.display()
            )
        });
        let joined = within_timeout("decision", async {
            loop {
                // The other server counts a route before its certificate is checked here.
                if deployed.route_count() != 0 {
                    return true;
                }
                if refusals() != refused_before {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert_eq!(joined.await, joins, "{}", directory.display());
        drop(other);
    }
}
