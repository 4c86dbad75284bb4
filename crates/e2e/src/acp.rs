//! ACP over WebSocket and over HTTP, behind the same [`Client`] as the other transports: lines out, lines in.

use crate::{Client, http::Web};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};
use tungstenite::{
    Message, WebSocket, client::IntoClientRequest as _, error::Error, protocol::Role,
};

impl Web {
    /// The same web server through another address, such as a proxy.
    #[must_use]
    pub fn by_way_of(&self, address: SocketAddr) -> Web {
        Web { address, ..self.clone() }
    }

    /// A client over a WebSocket, and the socket that disconnects it.
    pub fn websocket(&self) -> (Client, TcpStream) {
        let mut request =
            format!("ws://{}/acp", self.address).into_client_request().expect("a URL");
        let shown = format!("Bearer {}", self.token).parse().expect("a header");
        request.headers_mut().insert("authorization", shown);
        let stream = TcpStream::connect(self.address).expect("the front listens");
        let (socket, _) = tungstenite::client(request, stream).expect("a WebSocket");
        let another = || socket.get_ref().try_clone().expect("a second handle");
        let (mut into, cut) =
            (WebSocket::from_raw_socket(another(), Role::Client, None), another());
        let mut from = socket;
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut heard = theirs.try_clone().expect("a second handle");
        thread::spawn(move || {
            // A failed write ends the thread, and with it the other half of the socket.
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

    /// A client over HTTP, and the value that disconnects it.
    pub fn http(&self) -> (Client, Arc<Surfer>) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let surfer = Arc::new(Surfer {
            web: self.clone(),
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

/// Does what the official SDKs do between a client and HTTP: one request per message, one stream for the connection and
/// one for each session.
pub struct Surfer {
    web: Web,
    heard: Mutex<UnixStream>,
    connection: Mutex<String>,
    streams: Mutex<BTreeSet<String>>,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Surfer {
    fn say(self: &Arc<Surfer>, line: &str) {
        let message: Value = serde_json::from_str(line).expect("a client speaks JSON");
        if message["method"] == "initialize" {
            let answer = self.web.ask("POST", "/acp", &[], Some(&message));
            answer.header("acp-connection-id").clone_into(&mut lock(&self.connection));
            self.listen("");
            return self.hear(&answer.text());
        }
        let session = message.pointer("/params/sessionId").and_then(Value::as_str);
        if let Some(session) = session {
            self.listen(session);
        }
        let headers = headers(&lock(&self.connection), session.unwrap_or_default());
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let answer = self.web.ask("POST", "/acp", &headers, Some(&message));
        assert_eq!(answer.status, 202, "{line}");
    }

    /// Opens the stream of a session or of the connection, unless it is open.
    fn listen(self: &Arc<Surfer>, session: &str) {
        if !lock(&self.streams).insert(session.to_owned()) {
            return;
        }
        let headers = headers(&lock(&self.connection), session);
        let mut headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        headers.push("Accept: text/event-stream");
        let mut events = self.web.stream("GET", "/acp", &headers, None);
        lock(&self.sockets).push(events.socket());
        let surfer = Arc::clone(self);
        thread::spawn(move || {
            while let Some(event) = events.next() {
                let message = event.json();
                if let Some(session) = message.pointer("/result/sessionId").and_then(Value::as_str)
                {
                    surfer.listen(session);
                }
                surfer.hear(&event.data);
            }
        });
    }

    fn hear(&self, line: &str) {
        // A disconnected client receives nothing.
        let _gone = lock(&self.heard).write_all(format!("{line}\n").as_bytes());
    }

    /// Closes every connection without notice.
    pub fn cut(&self) {
        for socket in &*lock(&self.sockets) {
            let _gone = socket.shutdown(Shutdown::Both);
        }
        let _gone = lock(&self.heard).shutdown(Shutdown::Both);
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().expect("no thread panics while it holds the lock")
}

/// The headers of a request in this session, or in none.
pub fn headers(connection: &str, session: &str) -> Vec<String> {
    let mut headers = vec![format!("Acp-Connection-Id: {connection}")];
    if !session.is_empty() {
        headers.push(format!("Acp-Session-Id: {session}"));
    }
    headers
}
