//! The server's state, and how it sends a step of the script.

use super::reply::{Reply, ReplyPiece};
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

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Null if it was not JSON.
    pub body: Value,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
pub(super) struct ScriptServer {
    state: Mutex<ScriptState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct ScriptState {
    pub(super) steps: VecDeque<Reply>,
    /// By the suffix of the path.
    pub(super) pages: BTreeMap<String, Reply>,
    pub(super) asked: Vec<ReceivedRequest>,
    pub(super) gone: usize,
    pub(super) stopping: bool,
    /// Connections to shut down when the server stops.
    open: BTreeMap<u64, TcpStream>,
    conns: u64,
}

impl ScriptServer {
    pub(super) fn state(&self) -> MutexGuard<'_, ScriptState> {
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

    pub(super) fn wait(&self, max: Duration, is_met: impl Fn(&ScriptState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), max, |it| !is_met(it));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Serves one connection to its end.
    pub(super) fn serve_connection(&self, stream: TcpStream) {
        let key = self.register_connection(&stream);
        // Pieces must not be delayed.
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        while let Ok(Some(request)) = HttpRequest::read(&mut stream) {
            let reply = self.next_reply(&request);
            let sent = send_reply(stream.get_mut(), &reply);
            if matches!(sent, Ok(SendOutcome::Gone) | Err(_)) {
                self.change_state(|it| it.gone += 1);
            }
            if !matches!(sent, Ok(SendOutcome::All)) || request.wants_close() {
                break;
            }
        }
        let _ = stream.get_ref().shutdown(Shutdown::Both);
        self.state().open.remove(&key);
    }

    fn register_connection(&self, stream: &TcpStream) -> u64 {
        let mut state = self.state();
        state.conns += 1;
        let key = state.conns;
        if let Ok(handle) = stream.try_clone() {
            state.open.insert(key, handle);
        }
        if state.stopping {
            let _ = stream.shutdown(Shutdown::Both);
        }
        key
    }

    fn next_reply(&self, request: &HttpRequest) -> Reply {
        let path = request.path.trim_end_matches('/');
        let mut state = self.state();
        if !path.ends_with("/chat/completions") {
            let page = state.pages.iter().find(|(it, _)| path.ends_with(it.as_str()));
            return page.map_or_else(|| Reply::status(404), |(_, reply)| reply.clone());
        }
        let query = if request.query.is_empty() { "" } else { "?" };
        state.asked.push(ReceivedRequest {
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

    fn change_state(&self, change: impl FnOnce(&mut ScriptState)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

enum SendOutcome {
    All,
    /// The script closed the connection.
    Closed,
    /// The client disconnected during the response.
    Gone,
}

fn send_reply(stream: &mut TcpStream, reply: &Reply) -> io::Result<SendOutcome> {
    let lines = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let (status, lines) = (reply.status, lines.collect::<String>());
    let end = if reply.closes { "connection: close" } else { "transfer-encoding: chunked" };
    let head = format!("HTTP/1.1 {status} Scripted\r\n{lines}{end}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    for piece in &reply.pieces {
        match piece {
            ReplyPiece::Bytes(bytes) if bytes.is_empty() => {}
            ReplyPiece::Bytes(bytes) if reply.closes => stream.write_all(bytes)?,
            ReplyPiece::Bytes(bytes) => {
                let size = format!("{:x}\r\n", bytes.len());
                stream.write_all(&[size.as_bytes(), bytes, b"\r\n"].concat())?;
            }
            ReplyPiece::Pause(pause) if has_client_left_within(stream, Some(*pause))? => {
                return Ok(SendOutcome::Gone);
            }
            ReplyPiece::Pause(_) => {}
            ReplyPiece::Hang => {
                has_client_left_within(stream, None)?;
                return Ok(SendOutcome::Gone);
            }
            ReplyPiece::Cut => return Ok(SendOutcome::Closed),
        }
    }
    if reply.closes {
        return Ok(SendOutcome::Closed);
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(SendOutcome::All)
}

/// Waits this long for the client to disconnect; without a limit until it does.
fn has_client_left_within(stream: &mut TcpStream, limit: Option<Duration>) -> io::Result<bool> {
    // The socket refuses a timeout of zero.
    if limit == Some(Duration::ZERO) {
        return Ok(false);
    }
    stream.set_read_timeout(limit)?;
    // A client sends nothing during a response, so any read means that it has disconnected.
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
