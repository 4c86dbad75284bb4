//! A Chat Completions server that answers each request with the next step of a script: a text, a
//! call, or exact bytes with pauses and a cut in the middle.
//!
//! HTTP/1.1 on 127.0.0.1, one thread per connection. The value stops the server when it is dropped.
//! `GET …/models` and other `GET`s are answered as told by [`ScriptedModel::serve`], and use up no
//! step. A request that finds no step left fails with 500 and says so.
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
pub use serve::Asked;

use crate::loopback::Loopback;
use serde_json::Value;
use serve::Server;
use std::{sync::Arc, time::Duration};

/// A running server; it stops, and ends every connection, when it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    server: Arc<Server>,
    loopback: Loopback,
}

impl ScriptedModel {
    /// On a free port, with these steps.
    pub fn start(steps: impl IntoIterator<Item = Reply>) -> ScriptedModel {
        let server = Arc::new(Server::default());
        let serving = Arc::clone(&server);
        let loopback = Loopback::start(0, move |stream| serving.converse(stream));
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

    /// Every request to a path that ends like this, other than for an answer, is answered so.
    pub fn serve(&self, path: &str, reply: Reply) {
        self.server.state().pages.insert(path.to_owned(), reply);
    }

    /// The answer to `GET /models`.
    pub fn serve_models(&self, models: &Value) {
        self.serve("/models", Reply::json(models));
    }

    /// How many steps nobody has asked for yet.
    pub fn left(&self) -> usize {
        self.server.state().steps.len()
    }

    /// The requests for an answer, so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.server.state().asked.clone()
    }

    /// Waits until so many answers were asked for; whether that came true in time.
    pub fn wait_asked(&self, count: usize, max: Duration) -> bool {
        self.server.wait(max, |it| count <= it.asked.len())
    }

    /// Waits until so many clients left in the middle of an answer; whether that came true in time.
    pub fn wait_gone(&self, count: usize, max: Duration) -> bool {
        self.server.wait(max, |it| count <= it.gone)
    }

    /// How many clients left in the middle of an answer.
    pub fn gone(&self) -> usize {
        self.server.state().gone
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.stop();
    }
}
