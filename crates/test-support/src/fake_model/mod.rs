//! A model server that needs no model: it answers as a word in the prompt says, so that real
//! agents can be driven through everything a turn can do.
//!
//! HTTP/1.1 on 127.0.0.1, one thread per connection. In a test it is a value that stops when it is
//! dropped; `fake-model` is the same as a program.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST …/chat/completions` | Chat Completions, streaming or not |
//! | `POST …/responses` | `OpenAI` Responses, streaming or not |
//! | `POST …/messages`, `…/messages/count_tokens` | Anthropic Messages, streaming or not |
//! | `POST …/models/ID:METHOD` | Gemini: `generateContent`, `streamGenerateContent`, `countTokens` |
//! | `GET …/models`, `GET …/models/ID` | `fake-model`, `fake-model-mini`, as the client's API has it |
//! | `GET /_log?since=N` | what was asked so far, as a list |
//! | `POST /_ctl {"error":N,"count":M}` | the next M requests to a model fail with status N |
//!
//! A row of the log has `i`, `method`, `path`; if it went to a model also `dialect`, `model`,
//! `stream`, `line`, `userTurns`, `afterTool`, `tools`, `calls`, `testKey` (whether the key was
//! `test-key`), `id` (part of every id in the answer), and when it is over `error` (the status) or
//! `end` (`done`, `gone`).
//!
//! Any prefix may stand before a path, so that the requests of several agents can be told apart; a
//! prefix `/e401/` makes every request under it fail with 401 (any status will do).
//!
//! The last line the user typed chooses the script by a word in capitals (context that agents wrap
//! in `<tags>` does not count):
//!
//! | word | what the model does |
//! | --- | --- |
//! | none of these | says "Hello from the fake model." in five chunks |
//! | `TOOL` | calls the shell tool: `echo hello-from-tool`; says what it answered |
//! | `TOUCH` | the same with a command that changes something, so that agents ask for permission |
//! | `SLEEP` | the same with a command that takes 30 s |
//! | `TWOTOOLS` | two calls in one answer |
//! | `WRITE /PATH` | calls the tool that writes a file; without a path, `hello-N.txt` |
//! | `THINK` | thoughts before the text |
//! | `SLOW` | 50 chunks, 200 ms apart |
//! | `HANG` | one chunk, then nothing for a minute |
//! | `CUT` | two chunks, then the connection is dropped |
//! | `COUNT` | "I see N user messages.": proves that an agent resumed |
//! | `LONG` | 200 kB of text in 3000 chunks |
//! | `ECHO TEXT` | says TEXT |
//! | `ERR429` | fails with that status, 400 to 599 |
//! | `ERR429ONCE` | only the first request with that line fails |
//!
//! A request for JSON gets a value that fits its schema. Errors have the shape of the API.
//!
//! Tools are picked from those the request offers and their required arguments filled from the
//! JSON schema; codex, which takes JavaScript from models it knows, gets JavaScript. After the
//! answer of a tool the model says what it was, and the turn is over.

mod chat;
mod dialect;
mod gemini;
pub(crate) mod http;
mod messages;
mod models;
mod problem;
mod reply;
mod responses;
mod script;
mod serve;
mod talk;
mod tools;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use crate::loopback::Loopback;
use serde_json::Value;
use serve::Server;

/// A running server; it stops, and ends every connection, when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    /// Where it listens, on 127.0.0.1.
    pub addr: SocketAddr,
    server: Arc<Server>,
    /// `None` when somebody waits for its end.
    loopback: Option<Loopback>,
}

impl FakeModel {
    /// On a free port; files are written into the working directory of whoever calls the tool.
    pub fn start() -> FakeModel {
        FakeModel::start_on(0, PathBuf::new()).expect("loopback has a free port")
    }

    /// On this port (0: a free one); files without a path in the prompt go into `files`.
    pub fn start_on(port: u16, files: PathBuf) -> io::Result<FakeModel> {
        let server = Arc::new(Server::new(files));
        let serving = Arc::clone(&server);
        let loopback = Loopback::start(port, move |stream| serving.converse(stream))?;
        Ok(FakeModel { addr: loopback.addr, server, loopback: Some(loopback) })
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What was asked so far, as `GET /_log` gives it.
    pub fn log(&self) -> Vec<Value> {
        self.server.log(0)
    }

    /// The next `count` requests to a model fail with this status.
    pub fn fail_next(&self, status: u16, count: u32) {
        self.server.fail_next(status, count);
    }

    /// Waits until the server ends, which it does by itself only if its socket breaks.
    pub fn wait(mut self) {
        if let Some(loopback) = self.loopback.take() {
            loopback.wait();
        }
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.stop();
    }
}
