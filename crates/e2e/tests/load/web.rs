//! As little HTTP as the load needs: one request on a connection of its own, or on one that is kept.

use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const WITHIN: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub(super) struct Web {
    pub(super) at: SocketAddr,
    pub(super) token: String,
}

/// A run and its session.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) run: String,
    pub(super) session: String,
}

impl Web {
    pub(super) async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// The head of a request, without its last empty line.
    pub(super) fn head(&self, method: &str, path: &str) -> String {
        let Web { at, token } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n")
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let mut stream = self.connect().await;
        let body = body.to_string();
        let request = format!(
            "{}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.head("POST", path),
            body.len(),
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(WITHIN, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 202"), "{path}: {answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Begins a run in a session of its own.
    pub(super) async fn start(&self, body: &Value) -> Run {
        Run::of(&self.post("/api/runs", body).await)
    }

    pub(super) async fn prompt(&self, session: &str, message: &str) -> Run {
        let path = format!("/api/sessions/{session}/prompt");
        Run::of(&self.post(&path, &json!({ "message": message })).await)
    }
}

impl Run {
    fn of(answer: &Value) -> Run {
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        Run { run: text("runId"), session: text("sessionId") }
    }
}
