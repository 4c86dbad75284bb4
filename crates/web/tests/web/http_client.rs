//! An HTTP/1.1 client for the web server that shares no code with the server.

use crate::support::within;
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// The head of a response, and the connection for its body.
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The part of the body that was not split into events yet.
    text: String,
}

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

pub(crate) async fn request(
    at: SocketAddr,
    method: &str,
    headers: Headers<'_>,
    body: &str,
) -> HttpAnswer {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let mut head = format!("{method} /acp HTTP/1.1\r\nhost: {at}\r\n");
    for (name, value) in headers {
        head += &[*name, ": ", *value, "\r\n"].concat();
    }
    let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    // A server that refuses early need not read everything.
    let _refused = stream.write_all(whole.as_bytes()).await;
    let mut answer = HttpAnswer {
        status: 0,
        headers: HashMap::new(),
        stream,
        buffer: Vec::new(),
        text: String::new(),
    };
    let status = answer.line().await.expect("an answer");
    answer.status = status.split(' ').nth(1).unwrap().parse().unwrap();
    loop {
        let line = answer.line().await.expect("a whole head");
        let Some((name, value)) = line.split_once(": ") else { break };
        answer.headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    answer
}

pub(crate) async fn post(at: SocketAddr, headers: Headers<'_>, body: &str) -> HttpAnswer {
    request(at, "POST", &[&[JSON], headers].concat(), body).await
}

/// Opens an event stream, which must succeed.
pub(crate) async fn events(at: SocketAddr, headers: Headers<'_>) -> HttpAnswer {
    let answer = request(at, "GET", &[&[EVENTS], headers].concat(), "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    answer
}

impl HttpAnswer {
    async fn more(&mut self) -> bool {
        within(self.stream.read_buf(&mut self.buffer)).await.is_ok_and(|count| 0 < count)
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|it| it == b"\r\n") {
                let line = self.buffer.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Option<String> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(String::from_utf8(self.buffer.drain(..count).collect()).unwrap())
    }

    /// The body of a response with a content length.
    pub(crate) async fn body(mut self) -> String {
        let count = self.headers.get("content-length").map_or(0, |it| it.parse().unwrap());
        self.exactly(count).await.unwrap()
    }

    pub(crate) async fn json(self) -> Value {
        serde_json::from_str(&self.body().await).unwrap()
    }

    /// The next event; `None` at the end, which must be a proper one. Keepalive comments are
    /// skipped.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        within(self.read_event()).await
    }

    async fn read_event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let of = |name: &str| {
                    event.lines().find_map(|it| it.strip_prefix(name)).map(str::to_owned)
                };
                match (of("id: "), of("data: ")) {
                    (Some(id), Some(data)) => return Some(Event { id, data }),
                    other => assert_eq!((other, &*event), ((None, None), ":\n\n")),
                }
                continue;
            }
            let size = self.line().await.expect("the stream was cut off");
            let size = usize::from_str_radix(&size, 16).unwrap();
            let piece = self.exactly(size + 2).await.expect("the stream was cut off");
            if size == 0 {
                return None;
            }
            self.text += &piece[..size];
        }
    }

    /// The next event as `id data`.
    pub(crate) async fn shown(&mut self) -> String {
        let Event { id, data } = self.next().await.expect("one more event");
        format!("{id} {data}")
    }
}
