//! The wire APIs the server speaks. A new one is a file like `chat.rs` and a row here.

use std::io;

use serde_json::{Value, json};

use super::{
    chat, gemini, http::HttpRequest, messages, problem::Problem, reply::Reply, responses,
    script::Script, talk::Talk,
};

/// One wire API.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    /// Whether a POST to this path is meant for it; any prefix may stand before.
    pub(crate) serves: fn(path: &str) -> bool,
    pub(crate) streams: fn(&Asked<'_>) -> bool,
    pub(crate) read: fn(body: &Value) -> Talk,
    /// The answer in one piece.
    pub(crate) whole: fn(&Asked<'_>, &Script) -> Value,
    /// The answer in events, the closing ones included.
    pub(crate) stream: fn(&Asked<'_>, &Script, &mut Reply<'_>) -> io::Result<()>,
    pub(crate) error: fn(&Asked<'_>, &Problem) -> Value,
    /// The statuses whose answer says in a header when to come again.
    pub(crate) retry_after: &'static [u16],
    /// What it answers to a POST to this path if that asks how long a prompt is.
    pub(crate) count: fn(path: &str, tokens: usize) -> Option<Value>,
}

pub(crate) const DIALECTS: &[Dialect] =
    &[chat::DIALECT, responses::DIALECT, messages::DIALECT, gemini::DIALECT];

/// When every answer says it was made; the same bytes each time are easier to test.
pub(crate) const CREATED: u64 = 1_700_000_000;

/// How long every prompt is said to be.
pub(crate) const PROMPT_TOKENS: usize = 120;

/// How many of them are said to come from a cache.
pub(crate) const CACHED_TOKENS: usize = 20;

/// A request to a model, as a dialect sees it.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a Value,
    /// Unique; what stands before it is the dialect's business.
    pub(crate) id: &'a str,
}

impl Asked<'_> {
    /// The model's name: in the body, or in the path before a colon.
    pub(crate) fn model(&self) -> Value {
        let in_path = self.path.rsplit_once("/models/").and_then(|(_, it)| it.split_once(':'));
        in_path.map_or_else(|| self.body["model"].clone(), |(model, _)| json!(model))
    }
}

/// Whether the key of a request is `test-key`, in whichever place its API has for it.
pub(crate) fn has_test_key(request: &HttpRequest) -> bool {
    let bearer = request.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let own = ["x-api-key", "x-goog-api-key"].map(|it| request.header(it));
    let in_query = request.query.split('&').find_map(|it| it.strip_prefix("key="));
    let keys = [bearer, own[0], own[1], in_query];
    keys.iter().any(Option::is_some) && keys.iter().flatten().all(|it| *it == "test-key")
}

/// Two halves of a text, for what real servers send in pieces.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2)).into()
}
