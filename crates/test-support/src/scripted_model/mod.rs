//! A Chat Completions server that answers each request with the next step of a script: a text, a call, or exact bytes with
//! pauses and a dropped connection.
//!
//! HTTP/1.1 on 127.0.0.1, one thread per connection. The server stops when its value is dropped. `GET …/models` and other
//! `GET`s are answered with the pages of [`ScriptedModel::serve`] and use no step. A request without a step left fails with
//! 500.
//!
//! ```
//! use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
//!
//! let model = ScriptedModel::start([
//!     Reply::call("read", r#"{"path":"a.txt"}"#),
//!     Reply::say("It says hello."),
//!     Reply::status(503).header("retry-after", "1").body("busy"),
//! ]);
//! assert!(model.url().ends_with("/v1"));
//! assert_eq!(model.left(), 3);
//! ```

mod reply;
mod serve;

pub use reply::Reply;
pub use serve::ReceivedRequest;

use crate::loopback::Loopback;
use serde_json::Value;
use serve::ScriptServer;
use std::{sync::Arc, time::Duration};

/// A running server; it stops and closes every connection when it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    server: Arc<ScriptServer>,
    loopback: Loopback,
}

impl ScriptedModel {
    /// Starts on a free port with these steps.
    pub fn start(steps: impl IntoIterator<Item = Reply>) -> ScriptedModel {
        let server = Arc::new(ScriptServer::default());
        let serving = Arc::clone(&server);
        let loopback = Loopback::start(0, move |stream| serving.serve_connection(stream));
        let loopback = loopback.expect("loopback has a free port");
        let model = ScriptedModel { server, loopback };
        steps.into_iter().for_each(|step| model.then(step));
        model
    }

    /// `http://127.0.0.1:PORT/v1`: what `OPENAI_BASE_URL` takes.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.loopback.addr)
    }

    /// Adds a step at the end of the script.
    pub fn then(&self, step: Reply) {
        self.server.state().steps.push_back(step);
    }

    /// Sets the response to requests whose path has this suffix, except for chat completions.
    pub fn serve(&self, path: &str, reply: Reply) {
        self.server.state().pages.insert(path.to_owned(), reply);
    }

    /// Sets the response to `GET /models`.
    pub fn serve_models(&self, models: &Value) {
        self.serve("/models", Reply::json(models));
    }

    /// The number of unused steps.
    pub fn left(&self) -> usize {
        self.server.state().steps.len()
    }

    /// The requests for chat completions so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.server.state().asked.clone()
    }

    /// Waits for this many requests; returns false after the timeout.
    pub fn wait_asked(&self, count: usize, max: Duration) -> bool {
        self.server.wait(max, |it| count <= it.asked.len())
    }

    /// Waits until this many clients disconnected during a response; returns false after the timeout.
    pub fn wait_gone(&self, count: usize, max: Duration) -> bool {
        self.server.wait(max, |it| count <= it.gone)
    }

    /// The number of clients that disconnected during a response.
    pub fn gone(&self) -> usize {
        self.server.state().gone
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.stop();
    }
}
