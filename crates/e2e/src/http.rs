//! A small HTTP/1.1 client over a plain socket: the test controls every byte that it sends, and streams are read as they
//! arrive.

use crate::{Home, client::PATIENCE};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// The longest time until the next event of a stream. The comments that keep a silent stream open do not extend it.
const EVENT_WAIT_MAX: Duration = Duration::from_mins(1);

/// The web server of a daemon, and its token.
#[derive(Debug, Clone)]
pub struct Web {
    pub address: SocketAddr,
    /// Empty for a client without one.
    pub token: String,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// Names in lowercase.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A response that is a stream of events.
pub struct Events {
    reader: BufReader<TcpStream>,
    /// Decoded and not yet read.
    text: String,
    ended: bool,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    pub id: Option<String>,
    pub name: String,
    pub data: String,
}

/// The address of this scheme on which the daemon of this home listens. It was started with port 0, so that no other
/// process can have the port.
pub fn listening_address(home: &Home, scheme: &str) -> SocketAddr {
    let (printed, prefix) = (home.said(), format!("listening on {scheme}://"));
    let mut addresses = printed.lines().filter_map(|it| it.split(&prefix).nth(1));
    let address = addresses.next_back().expect("the daemon prints its address");
    address.parse().expect("an address")
}

impl Web {
    /// The front of the daemon that was last started in this home with `--listen http://…`.
    pub fn of(home: &Home) -> Web {
        let address = listening_address(home, "http");
        let token = fs::read_to_string(home.path().join("state/token")).expect("a token file");
        Web { address, token: token.trim().to_owned() }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[], Some(body))
    }

    pub fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask("PATCH", path, &[], Some(body))
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.ask("DELETE", path, &[], None)
    }

    /// Sends one request and reads its response; `headers` such as `Acp-Session-Id: s-1`.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: Option<&Value>) -> Reply {
        let mut reader = BufReader::new(self.send(method, path, headers, body));
        let (status, headers) = read_head(&mut reader);
        let mut body = Vec::new();
        if is_chunked(&headers) {
            while let Some(chunk) = read_chunk(&mut reader) {
                body.extend(chunk);
            }
        } else {
            reader.read_to_end(&mut body).expect("the front answers");
        }
        Reply { status, headers, body }
    }

    /// Opens a stream; `headers` such as `Last-Event-ID: 3`.
    pub fn stream(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: Option<&Value>,
    ) -> Events {
        let mut reader = BufReader::new(self.send(method, path, headers, body));
        let (status, headers) = read_head(&mut reader);
        let kind = headers.iter().find(|(name, _)| name == "content-type").map(|it| it.1.as_str());
        assert_eq!((status, kind), (200, Some("text/event-stream")), "{headers:?}");
        Events { reader, text: String::new(), ended: false }
    }

    fn send(&self, method: &str, path: &str, headers: &[&str], body: Option<&Value>) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the front listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if !self.token.is_empty() {
            head.extend(["Authorization: Bearer ", &self.token, "\r\n"]);
        }
        for header in headers {
            head.extend([header, "\r\n"]);
        }
        let body = body.map(Value::to_string);
        if let Some(body) = &body {
            let length = body.len().to_string();
            head.extend(["Content-Type: application/json\r\nContent-Length: ", &length, "\r\n"]);
        }
        let request = format!("{head}\r\n{}", body.unwrap_or_default());
        stream.write_all(request.as_bytes()).expect("the front reads");
        stream
    }
}

impl Reply {
    /// A header that must exist; its name in lowercase.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map_or_else(|| panic!("no `{name}`: {self:?}"), |it| &*it.1)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body of a response that must be successful.
    pub fn good(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, self.text());
        self.json()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Events {
    /// The socket, to disconnect it.
    pub fn socket(&self) -> TcpStream {
        self.reader.get_ref().try_clone().expect("a second handle")
    }

    /// The next event, `None` at the end. Comments are skipped.
    #[expect(clippy::should_implement_trait, reason = "it waits, and panics when it waits in vain")]
    pub fn next(&mut self) -> Option<Event> {
        let begin = Instant::now();
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                if event.is_some() {
                    return event;
                }
                continue;
            }
            if self.ended {
                return None;
            }
            assert!(begin.elapsed() < EVENT_WAIT_MAX, "the stream has only comments");
            match read_chunk(&mut self.reader) {
                Some(chunk) => self.text += &String::from_utf8(chunk).expect("text"),
                None => self.ended = true,
            }
        }
    }

    /// Reads up to an event that satisfies the condition; returns all that were read.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            let found = condition(&event);
            events.push(event);
            if found {
                return events;
            }
        }
        panic!("the stream ended before {what}: {events:#?}");
    }

    /// All events up to the end.
    pub fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut data: Vec<&str> = Vec::new();
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => event.id = Some(id.to_owned()),
            Some(("event", name)) => name.clone_into(&mut event.name),
            Some(("data", text)) => data.push(text),
            _ => {}
        }
    }
    event.data = data.join("\n");
    (!data.is_empty()).then_some(event)
}

fn read_head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut lines = std::iter::from_fn(|| {
        let mut line = String::new();
        reader.read_line(&mut line).expect("the front answers");
        let line = line.trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    });
    let status = lines.next().and_then(|it| it.split(' ').nth(1)?.parse().ok());
    let header = |it: String| {
        let (name, value) = it.split_once(':').expect("a header");
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    (status.expect("a status"), lines.map(header).collect())
}

fn is_chunked(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked")
}

/// The next chunk, `None` at the end or when the connection was cut.
fn read_chunk(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok().filter(|it| 0 < *it)?;
    let size = usize::from_str_radix(size.trim(), 16).ok().filter(|it| 0 < *it)?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}
