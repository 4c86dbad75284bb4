//! What holds for the answers of all routes, asked for over a socket as clients do.

use crate::{
    http::{RequestGuard, WebListener, serve_http},
    rest::{Dirs, Front, document, routes},
};
use jackfield_agents::{find::ProgramLocations, probe::AgentSurvey};
use jackfield_catalog::Catalog;
use jackfield_transport::{Authenticator, BearerToken, EndpointAddress, HubDialer};
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixListener, UnixStream},
    time::timeout,
};

/// How long an answer may take before the test says that it hangs.
const PATIENCE: Duration = Duration::from_mins(2);

struct Daemon {
    dir: tempfile::TempDir,
    at: SocketAddr,
    token: String,
}

impl Daemon {
    fn start() -> Daemon {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("hub");
        tokio::spawn(run_hub(UnixListener::bind(&socket).unwrap()));
        let token = BearerToken::create_or_read(&dir.path().join("token")).unwrap();
        let door = WebListener::bind(&"http://127.0.0.1:0".parse().unwrap(), None).unwrap();
        let EndpointAddress::Http(at) = *door.address() else { panic!("it is HTTP") };
        let porter = RequestGuard {
            authenticator: Authenticator::from(&token),
            hosts: vec![],
            origins: vec![],
        };
        let routes = routes(&front(dir.path(), EndpointAddress::Unix(socket)));
        tokio::spawn(serve_http(vec![door], porter, routes, std::future::pending()));
        Daemon { at, token: token.reveal().to_owned(), dir }
    }

    /// The head and the body of the answer; of one that goes on, what came with the head.
    async fn ask(&self, method: &str, path: &str, with_token: bool) -> (String, String) {
        let shown = format!("Authorization: Bearer {}\r\n", self.token);
        let shown = if with_token { shown.as_str() } else { "" };
        let host = "Host: localhost\r\nConnection: close\r\nContent-Length: 0\r\n";
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\n{host}{shown}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let is_stream = path.ends_with("/events");
        loop {
            let read = timeout(PATIENCE, stream.read_buf(&mut heard)).await;
            let count = read.unwrap_or_else(|_| panic!("{method} {path} hangs")).unwrap();
            let text = String::from_utf8_lossy(&heard);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && (count == 0 || is_stream)
            {
                return (head.to_ascii_lowercase(), body.to_owned());
            }
            assert_ne!(count, 0, "{method} {path} was not answered: {text}");
        }
    }
}

fn front(dir: &Path, hub: EndpointAddress) -> Front {
    let probes = dir.join("probes");
    let places = || ProgramLocations::new(std::iter::empty());
    Front {
        hub: HubDialer::new(hub, None),
        survey: Arc::new(move || AgentSurvey::new(Catalog::default(), places(), &probes)),
        commands: [].into(),
        hosted: None,
        dirs: Dirs { projects: dir.join("p"), uploads: dir.join("u"), roots: vec![] },
        metrics: None,
    }
}

/// A hub that knows how it is, and nothing else.
async fn run_hub(listener: UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer_all(stream));
    }
}

async fn answer_all(mut stream: UnixStream) {
    let mut heard = Vec::new();
    while stream.read_buf(&mut heard).await.is_ok_and(|count| 0 < count) {
        while let Some(end) = heard.iter().position(|it| *it == b'\n') {
            let line: Vec<u8> = heard.drain(..=end).collect();
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
async fn no_answer_of_any_route_may_be_stored_by_a_cache() {
    let daemon = Daemon::start();
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
            let (head, _) = daemon.ask(method, path, with_token).await;
            let lines = head.lines().filter(|it| it.starts_with("cache-control:"));
            let lines: Vec<&str> = lines.collect();
            let is_forbidden = lines.len() == 1 && lines[0].starts_with("cache-control: no-store");
            assert!(is_forbidden, "{method} {path}: {head}");
        }
    }
}

#[tokio::test]
async fn strangers_hear_that_the_daemon_is_ready_and_nothing_else() {
    let daemon = Daemon::start();
    let (head, body) = daemon.ask("GET", "/readyz", false).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(body, r#"{"ready":true}"#);
    let (_, body) = daemon.ask("GET", "/readyz", true).await;
    let known: Value = serde_json::from_str(&body).unwrap();
    let all = json!({ "ready": true, "version": "9.8.7", "sessions": 12, "agents": 34 });
    assert_eq!(known, all);
}

#[tokio::test]
async fn strangers_do_not_hear_why_the_daemon_is_not_ready() {
    let daemon = Daemon::start();
    std::fs::remove_file(daemon.dir.path().join("hub")).unwrap();
    let (head, body) = daemon.ask("GET", "/readyz", false).await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    assert!(body.contains("the daemon is not ready: try again"), "{body}");
    let (_, known) = daemon.ask("GET", "/readyz", true).await;
    assert!(!known.contains("is not ready"), "{known}");
}
