//! A model server without a model: a word in the prompt chooses the response, so that tests can drive real agents through
//! everything that can happen in a turn.
//!
//! HTTP/1.1 on 127.0.0.1, one thread per connection. In a test, the server stops when its value is dropped; `fake-model` is
//! the same as a program.
//!
//! | request | response |
//! | --- | --- |
//! | `POST …/chat/completions` | Chat Completions, streaming or not |
//! | `POST …/responses` | `OpenAI` Responses, streaming or not |
//! | `POST …/messages`, `…/messages/count_tokens` | Anthropic Messages, streaming or not |
//! | `POST …/models/ID:METHOD` | Gemini: `generateContent`, `streamGenerateContent`, `countTokens` |
//! | `GET …/models`, `GET …/models/ID` | `fake-model`, `fake-model-mini`, in the format of the client's API |
//! | `GET /_log?since=N` | the requests so far, as a list |
//! | `POST /_ctl {"error":N,"count":M}` | the next M requests to a model fail with status N |
//!
//! An entry of the log has `i`, `method`, `path`; for a request to a model also `dialect`, `model`, `stream`, `line`,
//! `userTurns`, `afterTool`, `tools`, `calls`, `testKey` (whether the key was `test-key`), `id` (part of every id in the
//! response), and at its end `error` (the status) or `end` (`done`, `gone`).
//!
//! Any prefix may precede a path, to distinguish the requests of several agents; a prefix `/e401/` makes every request below
//! it fail with 401, or any other status.
//!
//! The last line that the user typed chooses the script by a word in capitals. Context that agents wrap in `<tags>` does not
//! count:
//!
//! | word | what the model does |
//! | --- | --- |
//! | none of these | sends "Hello from the fake model." in five chunks |
//! | `TOOL` | calls the shell tool: `echo hello-from-tool`; then sends its output |
//! | `TOUCH` | the same with a command that changes something, so that agents ask for permission |
//! | `SLEEP` | the same with a command that takes 30 s |
//! | `TWOTOOLS` | two calls in one response |
//! | `WRITE /PATH` | calls the tool that writes a file; without a path, `hello-N.txt` |
//! | `THINK` | reasoning before the text |
//! | `SLOW` | 50 chunks, 200 ms apart |
//! | `HANG` | one chunk, then nothing for a minute |
//! | `CUT` | two chunks, then the connection is dropped |
//! | `COUNT` | "I see N user messages.": shows that an agent resumed |
//! | `LONG` | 200 kB of text in 3000 chunks |
//! | `ECHO TEXT` | sends TEXT |
//! | `ERR429` | fails with that status, 400 to 599 |
//! | `ERR429ONCE` | only the first request with that line fails |
//!
//! A request for JSON gets a value that fits its schema. Errors have the format of the API.
//!
//! Tools are picked from those that the request offers, and their required arguments are filled from the JSON schema. codex,
//! which takes JavaScript from models it knows, gets JavaScript. After the result of a tool, the model sends that result
//! and ends the turn.

mod chat;
mod dialect;
mod gemini;
pub(crate) mod http;
mod messages;
mod model_request;
mod models;
mod provider_error;
mod reply;
mod responses;
mod script;
mod serve;
mod tools;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use crate::loopback::Loopback;
use serde_json::Value;
use serve::ModelServer;

/// A running server; it stops and closes every connection when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    /// The address, on 127.0.0.1.
    pub addr: SocketAddr,
    server: Arc<ModelServer>,
    /// `None` after `wait`.
    loopback: Option<Loopback>,
}

impl FakeModel {
    /// Starts on a free port; files are written into the working directory of the tool.
    pub fn start() -> FakeModel {
        FakeModel::start_on(0, PathBuf::new()).expect("loopback has a free port")
    }

    /// Starts on this port (0: a free one); files without a path in the prompt go into `files`.
    pub fn start_on(port: u16, files: PathBuf) -> io::Result<FakeModel> {
        let server = Arc::new(ModelServer::new(files));
        let serving = Arc::clone(&server);
        let loopback = Loopback::start(port, move |stream| serving.serve_connection(stream))?;
        Ok(FakeModel { addr: loopback.addr, server, loopback: Some(loopback) })
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The requests so far, as `GET /_log` returns them.
    pub fn log(&self) -> Vec<Value> {
        self.server.log(0)
    }

    /// The next `count` requests to a model fail with this status.
    pub fn fail_next(&self, status: u16, count: u32) {
        self.server.fail_next(status, count);
    }

    /// Waits until the server ends, which only happens if its socket fails.
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
