//! Tests of the responses of all routes over a real socket.

use crate::{
    http::{RequestGuard, WebListener, serve_http},
    login::DeviceLogins,
    rest::{LoginScope, RestConfig, WorkDirs, document, routes},
};
use jackfield_agents::{find::ProgramLocations, probe::AgentSurvey};
use jackfield_catalog::Catalog;
use jackfield_transport::{BearerToken, ClientAuthenticator, EndpointAddress, HubDialer};
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixListener, UnixStream},
    time::timeout,
};

/// The time limit for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

struct TestDaemon {
    dir: tempfile::TempDir,
    address: SocketAddr,
    token: String,
}

impl TestDaemon {
    fn start() -> TestDaemon {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("hub");
        tokio::spawn(run_hub(UnixListener::bind(&socket).unwrap()));
        let token = BearerToken::create_or_read(&dir.path().join("token")).unwrap();
        let listener = WebListener::bind(&"http://127.0.0.1:0".parse().unwrap(), None).unwrap();
        let EndpointAddress::Http(address) = *listener.address() else {
            panic!("not an HTTP address")
        };
        let logins = Arc::new(DeviceLogins::new(
            &dir.path().join("devices.json"),
            ClientAuthenticator::from(&token),
            Arc::new(|_| None),
        ));
        let guard = RequestGuard {
            authenticator: ClientAuthenticator::from(&token),
            logins: logins.clone(),
            hosts: vec![],
            origins: vec![],
        };
        let routes = routes(&rest_config(dir.path(), EndpointAddress::Unix(socket), logins));
        tokio::spawn(serve_http(vec![listener], guard, routes, std::future::pending()));
        TestDaemon { address, token: token.reveal().to_owned(), dir }
    }

    /// Sends a request. Returns the head and the body; of a streaming response, the body received with the head.
    async fn request_text(&self, method: &str, path: &str, with_token: bool) -> (String, String) {
        let token = format!("Authorization: Bearer {}\r\n", self.token);
        let token = if with_token { token.as_str() } else { "" };
        let host = "Host: localhost\r\nConnection: close\r\nContent-Length: 0\r\n";
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\n{host}{token}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        let is_stream = path.ends_with("/events");
        loop {
            let read = timeout(RESPONSE_TIMEOUT, stream.read_buf(&mut received)).await;
            let count = read.unwrap_or_else(|_| panic!("{method} {path}: no response")).unwrap();
            let text = String::from_utf8_lossy(&received);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && (count == 0 || is_stream)
            {
                return (head.to_ascii_lowercase(), body.to_owned());
            }
            assert_ne!(count, 0, "{method} {path}: incomplete response: {text}");
        }
    }
}

fn rest_config(dir: &Path, hub: EndpointAddress, logins: Arc<DeviceLogins>) -> RestConfig {
    let probes = dir.join("probes");
    let places = || ProgramLocations::new(std::iter::empty());
    RestConfig {
        hub: HubDialer::new(hub, None),
        survey: Arc::new(move || AgentSurvey::new(Catalog::default(), places(), &probes)),
        commands: [].into(),
        fleet: None,
        dirs: WorkDirs { projects: dir.join("p"), uploads: dir.join("u"), roots: vec![] },
        profile: crate::rest::ClientProfile::default(),
        approve: None,
        metrics: None,
        login: LoginScope { logins, tenant: None },
    }
}

/// Plays a hub that answers `initialize` and `_jackfield/status` only.
async fn run_hub(listener: UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer_all(stream));
    }
}

async fn answer_all(mut stream: UnixStream) {
    let mut received = Vec::new();
    while stream.read_buf(&mut received).await.is_ok_and(|count| 0 < count) {
        while let Some(end) = received.iter().position(|it| *it == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            let request: Value = serde_json::from_slice(&line).unwrap();
            let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
            match request["method"].as_str() {
                Some("initialize") => answer["result"] = json!({}),
                Some("_jackfield/status") => {
                    answer["result"] = json!({ "version": "9.8.7", "sessions": 12, "agents": 34 });
                }
                _ => answer["error"] = json!({ "code": -32602, "message": "not here" }),
            }
            if !request["id"].is_null() {
                let _ = stream.write_all(format!("{answer}\n").as_bytes()).await;
            }
        }
    }
}

#[tokio::test]
async fn no_response_of_any_route_may_be_cached() {
    let daemon = TestDaemon::start();
    let document: Value = serde_json::from_str(&document()).unwrap();
    let described = document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        let path = path.replace(['{', '}'], "");
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |it| (it.to_ascii_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    let others = [("GET", "/openapi.json"), ("GET", "/nowhere"), ("PUT", "/api/sessions")];
    let others = others.map(|it| (it.0.to_owned(), it.1.to_owned()));
    let all: Vec<(String, String)> = described.chain(others).collect();
    assert!(18 < all.len());
    for (method, path) in &all {
        for with_token in [true, false] {
            let (head, _) = daemon.request_text(method, path, with_token).await;
            let lines = head.lines().filter(|it| it.starts_with("cache-control:"));
            let lines: Vec<&str> = lines.collect();
            let is_forbidden = lines.len() == 1 && lines[0].starts_with("cache-control: no-store");
            assert!(is_forbidden, "{method} {path}: {head}");
        }
    }
}

#[tokio::test]
async fn unauthenticated_client_learns_only_that_the_daemon_is_ready() {
    let daemon = TestDaemon::start();
    let (head, body) = daemon.request_text("GET", "/readyz", false).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(body, r#"{"ready":true}"#);
    let (_, body) = daemon.request_text("GET", "/readyz", true).await;
    let status: Value = serde_json::from_str(&body).unwrap();
    let expected = json!({ "ready": true, "version": "9.8.7", "sessions": 12, "agents": 34 });
    assert_eq!(status, expected);
}

#[tokio::test]
async fn unauthenticated_client_does_not_learn_why_the_daemon_is_not_ready() {
    let daemon = TestDaemon::start();
    std::fs::remove_file(daemon.dir.path().join("hub")).unwrap();
    let (head, body) = daemon.request_text("GET", "/readyz", false).await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    assert!(body.contains("the daemon is not ready: try again"), "{body}");
    let (_, known) = daemon.request_text("GET", "/readyz", true).await;
    assert!(!known.contains("is not ready"), "{known}");
}
