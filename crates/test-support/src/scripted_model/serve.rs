//! The server's state, and how a step of the script goes out.

use super::reply::{Piece, Reply};
use crate::fake_model::http::HttpRequest;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// With the query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Null if it was no JSON.
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
pub(super) struct Server {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) steps: VecDeque<Reply>,
    /// By the end of the path.
    pub(super) pages: BTreeMap<String, Reply>,
    pub(super) asked: Vec<Asked>,
    pub(super) gone: usize,
    pub(super) stopping: bool,
    /// To be shut down when the server stops.
    open: BTreeMap<u64, TcpStream>,
    conns: u64,
}

impl Server {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        for stream in state.open.values() {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn wait(&self, max: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), max, |it| !is_so(it));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Serves one connection to its end.
    pub(super) fn converse(&self, stream: TcpStream) {
        let key = self.enter(&stream);
        // Pieces must not wait for each other.
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        while let Ok(Some(request)) = HttpRequest::read(&mut stream) {
            let reply = self.reply(&request);
            let sent = send(stream.get_mut(), &reply);
            if matches!(sent, Ok(Sent::Gone) | Err(_)) {
                self.change(|it| it.gone += 1);
            }
            if !matches!(sent, Ok(Sent::All)) || request.wants_close() {
                break;
            }
        }
        let _ = stream.get_ref().shutdown(Shutdown::Both);
        self.state().open.remove(&key);
    }

    fn enter(&self, stream: &TcpStream) -> u64 {
        let mut state = self.state();
        state.conns += 1;
        let key = state.conns;
        if let Ok(twin) = stream.try_clone() {
            state.open.insert(key, twin);
        }
        if state.stopping {
            let _ = stream.shutdown(Shutdown::Both);
        }
        key
    }

    fn reply(&self, request: &HttpRequest) -> Reply {
        let path = request.path.trim_end_matches('/');
        let mut state = self.state();
        if !path.ends_with("/chat/completions") {
            let page = state.pages.iter().find(|(it, _)| path.ends_with(it.as_str()));
            return page.map_or_else(|| Reply::status(404), |(_, reply)| reply.clone());
        }
        let query = if request.query.is_empty() { "" } else { "?" };
        state.asked.push(Asked {
            method: request.method.clone(),
            target: format!("{}{query}{}", request.path, request.query),
            headers: request.headers.clone(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
        });
        self.changed.notify_all();
        state.steps.pop_front().unwrap_or_else(|| {
            Reply::status(500).body(r#"{"error":{"message":"the script has no step left"}}"#)
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

enum Sent {
    All,
    /// As the script has it.
    Closed,
    /// The client left in the middle.
    Gone,
}

fn send(stream: &mut TcpStream, reply: &Reply) -> io::Result<Sent> {
    let lines = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let (status, lines) = (reply.status, lines.collect::<String>());
    let end = if reply.closes { "connection: close" } else { "transfer-encoding: chunked" };
    let head = format!("HTTP/1.1 {status} Scripted\r\n{lines}{end}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    for piece in &reply.pieces {
        match piece {
            Piece::Bytes(bytes) if bytes.is_empty() => {}
            Piece::Bytes(bytes) if reply.closes => stream.write_all(bytes)?,
            Piece::Bytes(bytes) => {
                let size = format!("{:x}\r\n", bytes.len());
                stream.write_all(&[size.as_bytes(), bytes, b"\r\n"].concat())?;
            }
            Piece::Pause(pause) if is_gone_within(stream, Some(*pause))? => return Ok(Sent::Gone),
            Piece::Pause(_) => {}
            Piece::Hang => {
                is_gone_within(stream, None)?;
                return Ok(Sent::Gone);
            }
            Piece::Cut => return Ok(Sent::Closed),
        }
    }
    if reply.closes {
        return Ok(Sent::Closed);
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(Sent::All)
}

/// Waits so long for the client to leave; without a limit until it does.
fn is_gone_within(stream: &mut TcpStream, limit: Option<Duration>) -> io::Result<bool> {
    // A pause of nothing is none, and the socket refuses it.
    if limit == Some(Duration::ZERO) {
        return Ok(false);
    }
    stream.set_read_timeout(limit)?;
    // A client says nothing while it is answered: whatever is read, it has given up.
    let read = stream.read(&mut [0]);
    stream.set_read_timeout(None)?;
    match read {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Ok(false)
        }
        _ => Ok(true),
    }
}
