//! ACP over WebSocket and over HTTP, as a [`Client`] like any other: lines out, lines in.

use crate::{Client, Home, client::PATIENCE};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};
use tungstenite::{
    Message, WebSocket, client::IntoClientRequest as _, error::Error, protocol::Role,
};

/// The web front of a daemon, and what it asks for.
#[derive(Debug, Clone)]
pub struct Door {
    pub at: SocketAddr,
    token: String,
}

impl Door {
    /// The front of the daemon of this home, which listens there.
    pub fn new(home: &Home, at: SocketAddr) -> Door {
        let token = fs::read_to_string(home.path().join("run/token")).expect("a token");
        Door { at, token: token.trim().to_owned() }
    }

    /// The same front by way of somebody else.
    #[must_use]
    pub fn by_way_of(&self, at: SocketAddr) -> Door {
        Door { at, ..self.clone() }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// One request; the head of its answer.
    pub fn request(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.at).expect("the front listens");
        let mut lines = vec![format!("{method} /acp HTTP/1.1"), "connection: close".to_owned()];
        lines.push(format!("host: localhost\r\nauthorization: Bearer {}", self.token));
        lines.push(format!("content-type: application/json\r\ncontent-length: {}", body.len()));
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let request = format!("{}\r\n\r\n{body}", lines.join("\r\n"));
        stream.write_all(request.as_bytes()).expect("the front takes it");
        Answer::read(stream)
    }

    /// A stream of events, which must be there.
    pub fn events(&self, headers: &[(&str, &str)]) -> Answer {
        let headers = [&[("accept", "text/event-stream")], headers].concat();
        let answer = self.request("GET", &headers, "");
        assert_eq!(answer.status, 200, "{:?}", answer.headers);
        answer
    }

    /// A client over a WebSocket, and the socket to cut it off by.
    pub fn websocket(&self) -> (Client, TcpStream) {
        let mut request = format!("ws://{}/acp", self.at).into_client_request().expect("a URL");
        let shown = format!("Bearer {}", self.token).parse().expect("a header");
        request.headers_mut().insert("authorization", shown);
        let stream = TcpStream::connect(self.at).expect("the front listens");
        let (socket, _) = tungstenite::client(request, stream).expect("a WebSocket");
        let another = || socket.get_ref().try_clone().expect("a second handle");
        let (mut into, cut) =
            (WebSocket::from_raw_socket(another(), Role::Client, None), another());
        let mut from = socket;
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut heard = theirs.try_clone().expect("a second handle");
        thread::spawn(move || {
            // A line that finds nobody ends the thread, and with it the socket's other half.
            while let Ok(message) = from.read() {
                if let Message::Text(text) = message
                    && heard.write_all(format!("{text}\n").as_bytes()).is_err()
                {
                    return;
                }
            }
            let _gone = heard.shutdown(Shutdown::Both);
        });
        thread::spawn(move || {
            for line in BufReader::new(theirs).lines().map_while(Result::ok) {
                if into.send(Message::text(line)).is_err() {
                    return;
                }
            }
            let _gone: Result<(), Error> = into.close(None).and_then(|()| into.flush());
        });
        (client(ours), cut)
    }

    /// A client over HTTP, and what to cut it off by.
    pub fn http(&self) -> (Client, Arc<Surfer>) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let surfer = Arc::new(Surfer {
            door: self.clone(),
            heard: Mutex::new(theirs.try_clone().expect("a second handle")),
            connection: Mutex::default(),
            streams: Mutex::default(),
            sockets: Mutex::default(),
        });
        let speaking = Arc::clone(&surfer);
        thread::spawn(move || {
            for line in BufReader::new(theirs).lines().map_while(Result::ok) {
                speaking.say(&line);
            }
        });
        (client(ours), surfer)
    }
}

fn client(stream: UnixStream) -> Client {
    let reader = stream.try_clone().expect("a second handle");
    Client::new(Box::new(reader), Box::new(stream))
}

/// What the official SDKs do between a client and HTTP: one request a message, one stream for the
/// connection and one for each session.
pub struct Surfer {
    door: Door,
    heard: Mutex<UnixStream>,
    connection: Mutex<String>,
    streams: Mutex<BTreeSet<String>>,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Surfer {
    fn say(self: &Arc<Surfer>, line: &str) {
        let message: Value = serde_json::from_str(line).expect("a client speaks JSON");
        if message["method"] == "initialize" {
            let answer = self.door.request("POST", &[], line);
            answer.header("acp-connection-id").clone_into(&mut lock(&self.connection));
            let body = answer.body();
            self.listen("");
            return self.hear(&body);
        }
        let connection = lock(&self.connection).clone();
        let session = message.pointer("/params/sessionId").and_then(Value::as_str);
        let mut headers = vec![("acp-connection-id", connection.as_str())];
        if let Some(session) = session {
            self.listen(session);
            headers.push(("acp-session-id", session));
        }
        let answer = self.door.request("POST", &headers, line);
        assert_eq!(answer.status, 202, "{line}");
    }

    /// Opens the stream of a session, or that of the connection, unless it is open.
    fn listen(self: &Arc<Surfer>, session: &str) {
        if !lock(&self.streams).insert(session.to_owned()) {
            return;
        }
        let connection = lock(&self.connection).clone();
        let headers = [("acp-connection-id", connection.as_str()), ("acp-session-id", session)];
        let headers = if session.is_empty() { &headers[..1] } else { &headers };
        let mut events = self.door.events(headers);
        lock(&self.sockets).push(events.socket());
        let surfer = Arc::clone(self);
        thread::spawn(move || {
            while let Some((_, data)) = events.next_event() {
                let message: Value = serde_json::from_str(&data).expect("the hub speaks JSON");
                if let Some(session) = message.pointer("/result/sessionId").and_then(Value::as_str)
                {
                    surfer.listen(session);
                }
                surfer.hear(&data);
            }
        });
    }

    fn hear(&self, line: &str) {
        // Who was cut off hears nothing.
        let _gone = lock(&self.heard).write_all(format!("{line}\n").as_bytes());
    }

    /// Cuts every connection, without a word.
    pub fn cut(&self) {
        for socket in &*lock(&self.sockets) {
            let _gone = socket.shutdown(Shutdown::Both);
        }
        let _gone = lock(&self.heard).shutdown(Shutdown::Both);
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().expect("nobody panics while it holds this")
}

/// The head of an answer, and its body as it comes.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    /// What was not cut into events yet.
    text: String,
}

impl Answer {
    fn read(stream: TcpStream) -> Answer {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a bound");
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a whole head");
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let pair = |it: &str| it.split_once(": ").map(|(a, b)| (a.to_lowercase(), b.to_owned()));
        let headers = std::iter::from_fn(|| pair(&line())).collect();
        Answer { status, headers, reader, text: String::new() }
    }

    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map_or_else(|| panic!("no `{name}` in {:?}", self.headers), |it| &*it.1)
    }

    pub fn body(mut self) -> String {
        let mut body = String::new();
        self.reader.read_to_string(&mut body).expect("a whole body");
        body
    }

    pub fn socket(&self) -> TcpStream {
        self.reader.get_ref().try_clone().expect("a second handle")
    }

    /// The id and the data of the next event; `None` when the stream has ended, or was cut off.
    pub fn next_event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let of = |it: &str| event.lines().find_map(|line| line.strip_prefix(it));
                if let (Some(id), Some(data)) = (of("id: "), of("data: ")) {
                    return Some((id.to_owned(), data.to_owned()));
                }
                continue;
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok().filter(|it| 0 < *it)?;
            let mut piece = vec![0; size + 2];
            self.reader.read_exact(&mut piece).ok()?;
            self.text += std::str::from_utf8(&piece[..size]).expect("events are text");
        }
    }
}
