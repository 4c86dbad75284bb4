//! One scripted response.

use serde_json::{Value, json};
use std::time::Duration;

/// A step of the script. Without pieces, the body of the response is empty.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) pieces: Vec<ReplyPiece>,
    /// The end of the connection is the end of the body, as in HTTP/1.0.
    pub(super) closes: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ReplyPiece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Until the client disconnects or the server stops.
    Hang,
    /// Drops the connection.
    Cut,
}

impl Reply {
    /// A response with this status and an empty body.
    pub fn status(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), pieces: Vec::new(), closes: false }
    }

    /// An empty stream of events.
    pub fn stream() -> Reply {
        Reply::status(200).header("content-type", "text/event-stream")
    }

    /// A complete JSON response.
    pub fn json(body: &Value) -> Reply {
        Reply::status(200).header("content-type", "application/json").body(&body.to_string())
    }

    /// The model sends this text in a few chunks.
    pub fn say(text: &str) -> Reply {
        let mut reply = Reply::stream().delta(&json!({"role": "assistant", "content": ""}));
        for word in text.split_inclusive(' ') {
            reply = reply.delta(&json!({"content": word}));
        }
        reply.finish("stop")
    }

    /// The model calls a tool; `arguments` is JSON text.
    pub fn call(name: &str, arguments: &str) -> Reply {
        Reply::calls(&[(name, arguments)])
    }

    /// Several calls in one response, each with its arguments in two pieces.
    pub fn calls(calls: &[(&str, &str)]) -> Reply {
        let mut reply = Reply::stream();
        for (index, (name, arguments)) in calls.iter().enumerate() {
            let middle = arguments.char_indices().nth(arguments.chars().count() / 2);
            let (start, end) = arguments.split_at(middle.map_or(0, |(at, _)| at));
            let id = format!("call-{index}-{name}");
            let function = json!({"name": name, "arguments": start});
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            let rest = json!({"index": index, "function": {"arguments": end}});
            reply =
                reply.delta(&json!({"tool_calls": [call]})).delta(&json!({"tool_calls": [rest]}));
        }
        reply.finish("tool_calls")
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds bytes that are sent at once.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Reply {
        self.pieces.push(ReplyPiece::Bytes(bytes.to_vec()));
        self
    }

    #[must_use]
    pub fn body(self, text: &str) -> Reply {
        self.bytes(text.as_bytes())
    }

    /// Adds an event with this payload.
    #[must_use]
    pub fn data(self, payload: &str) -> Reply {
        self.body(&format!("data: {payload}\n\n"))
    }

    /// Adds an event with a delta of the first choice.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Reply {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        self.data(&json!({"object": "chat.completion.chunk", "choices": [choice]}).to_string())
    }

    /// Adds the end of a stream: the reason, a usage of 10 and 5 tokens, and `[DONE]`.
    #[must_use]
    pub fn finish(self, reason: &str) -> Reply {
        let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        self.data(&json!({"choices": [choice]}).to_string())
            .data(&json!({"choices": [], "usage": usage}).to_string())
            .data("[DONE]")
    }

    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Reply {
        self.pieces.push(ReplyPiece::Pause(pause));
        self
    }

    /// Sends nothing more until the client disconnects.
    #[must_use]
    pub fn hang(mut self) -> Reply {
        self.pieces.push(ReplyPiece::Hang);
        self
    }

    /// Drops the connection.
    #[must_use]
    pub fn cut(mut self) -> Reply {
        self.pieces.push(ReplyPiece::Cut);
        self
    }

    /// Ends the body by closing the connection.
    #[must_use]
    pub fn closing(mut self) -> Reply {
        self.closes = true;
        self
    }

    /// All bytes of the body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.pieces.iter().filter_map(|it| match it {
            ReplyPiece::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        bytes.collect::<Vec<_>>().concat()
    }
}
