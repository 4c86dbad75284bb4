//! A plain HTTP client over a real socket.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// The path that most clients use.
pub(crate) const CHAT: &str = "/a/test/v1/chat/completions";

/// One connection, which stays open between requests.
pub(crate) struct Http(pub(crate) BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    /// The payloads of a stream without `[DONE]`, which is not JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|it| it.strip_prefix("data: "));
        let data = data.filter(|it| *it != "[DONE]");
        data.map(|it| serde_json::from_str(it).expect("a JSON event")).collect()
    }

    /// The bytes of a stream, with the variable part of ids removed.
    pub(crate) fn bytes(&self, model: &FakeModel) -> String {
        let id = model.log().last().and_then(|it| it["id"].as_str().map(str::to_owned));
        self.body.replace(&id.expect("the log has the id"), "ID")
    }

    /// A field of all deltas, joined.
    pub(crate) fn joined_deltas(&self, field: &str) -> String {
        let events = self.events();
        let deltas = events.iter().map(|it| &it["choices"][0]["delta"][field]);
        deltas.filter_map(Value::as_str).collect()
    }
}

impl Http {
    pub(crate) fn connect(addr: SocketAddr) -> Http {
        let stream = TcpStream::connect(addr).expect("the server listens");
        stream.set_read_timeout(Some(BOUND)).expect("a bound for every wait");
        Http(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) {
        self.send_with(method, path, "authorization: Bearer test-key", body);
    }

    pub(crate) fn send_with(&mut self, method: &str, path: &str, header: &str, body: &str) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: fake\r\ncontent-length: {length}");
        let request = format!("{head}\r\n{header}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes()).expect("the server reads");
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        line
    }

    pub(crate) fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = self.line();
            assert!(!line.is_empty(), "the head is incomplete: {head}");
            head.push_str(&line);
        }
        head
    }

    pub(crate) fn response(&mut self) -> Response {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
        let mut body = Vec::new();
        if let Some(length) = length {
            body.resize(length.parse().expect("a length"), 0);
            self.0.read_exact(&mut body).expect("a whole body");
        } else {
            while self.chunk(&mut body) {}
        }
        Response { status, head, body: String::from_utf8(body).expect("UTF-8") }
    }

    /// Reads a chunk; returns whether more follow.
    pub(crate) fn chunk(&mut self, body: &mut Vec<u8>) -> bool {
        let line = self.line();
        let size = usize::from_str_radix(line.trim_end(), 16).expect("the size of a chunk");
        let start = body.len();
        body.resize(start + size, 0);
        self.0.read_exact(&mut body[start..]).expect("a whole chunk");
        self.line();
        0 < size
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &Value) -> Response {
        self.send(method, path, &body.to_string());
        self.response()
    }

    pub(crate) fn prompt(&mut self, text: &str) -> Response {
        self.call("POST", CHAT, &streamed(&[("user", text)]))
    }
}

pub(crate) fn streamed(messages: &[(&str, &str)]) -> Value {
    let messages: Value =
        messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    json!({"model": "fake-model", "stream": true, "messages": messages})
}

pub(crate) fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let end = Instant::now() + BOUND;
    while !is_true() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
