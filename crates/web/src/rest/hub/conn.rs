//! One connection: requests and their answers, and everything else in between.

use super::{Fact, Trouble};
use bytes::Bytes;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use jackfield_transport::{FrameReceiver, FrameSender, HubDialer};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The hub sends no longer lines than it accepts, and it accepts 16 MiB and a little.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Conn {
    hearing: FrameReceiver,
    speaking: FrameSender,
    next_id: u64,
    /// Heard while an answer was waited for.
    backlog: VecDeque<Heard>,
}

/// What came next.
#[derive(Debug)]
pub(crate) enum Heard {
    Fact(Fact),
    /// The answer to the request of this number.
    Answer(u64, Result<Value, Value>),
    /// Something that is of no use to us: an update, a question to an editor.
    Else,
}

impl Conn {
    pub(super) async fn dial(hub: &HubDialer) -> Result<Conn, Trouble> {
        let (hearing, speaking) = hub.dial().await?.into_frame_halves(LINE_BYTES_MAX);
        Ok(Conn { hearing, speaking, next_id: 0, backlog: VecDeque::new() })
    }

    /// Says who we are; the answer tells what the agent of this connection can do, if it has one.
    pub(crate) async fn hello(&mut self) -> Result<Value, Trouble> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": {
                "name": "jackfield-api",
                "title": "jackfield api",
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        self.call(Method::Initialize.name(), &params).await
    }

    /// Sends a request; its answer is heard like everything else. Returns its number.
    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> Result<u64, Trouble> {
        self.next_id += 1;
        let id = self.next_id;
        let frame = Frame::request(&id.to_string(), method, &params.to_string());
        self.speaking.send_frame(frame.bytes()).await?;
        Ok(id)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &Value) -> Result<(), Trouble> {
        let frame = Frame::notification(method, &params.to_string());
        Ok(self.speaking.send_frame(frame.bytes()).await?)
    }

    /// Sends a request and waits for its answer; what else comes is kept for [`Conn::next`].
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, Trouble> {
        let id = self.send(method, params).await?;
        loop {
            match self.hear().await? {
                Heard::Answer(it, answer) if it == id => return answer.map_err(Trouble::Refused),
                Heard::Else => {}
                heard => self.backlog.push_back(heard),
            }
        }
    }

    /// What comes next. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Result<Heard, Trouble> {
        match self.backlog.pop_front() {
            Some(heard) => Ok(heard),
            None => self.hear().await,
        }
    }

    /// Whether [`Conn::next`] has something without waiting.
    pub(crate) fn has_more(&self) -> bool {
        !self.backlog.is_empty() || self.hearing.has_more()
    }

    async fn hear(&mut self) -> Result<Heard, Trouble> {
        let line = self.hearing.next_frame().await?.ok_or(Trouble::Gone)?;
        Ok(read(&line))
    }
}

fn read(line: &Bytes) -> Heard {
    if let Some(fact) = Fact::of_line(line) {
        return Heard::Fact(fact);
    }
    let Ok(frame) = Frame::parse(line.clone()) else { return Heard::Else };
    let id = frame.id().filter(|_| frame.kind() == Kind::Response).and_then(|it| it.parse().ok());
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    match (id, frame.result(), frame.error()) {
        (Some(id), Some(result), _) => Heard::Answer(id, Ok(value(result))),
        (Some(id), None, error) => Heard::Answer(id, Err(value(error.unwrap_or("null")))),
        _ => Heard::Else,
    }
}
