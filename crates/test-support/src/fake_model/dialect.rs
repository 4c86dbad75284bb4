//! The APIs that the server implements. A new one is a file like `chat.rs` and an entry here.

use std::io;

use serde_json::{Value, json};

use super::{
    chat, gemini, http::HttpRequest, messages, model_request::ModelRequest,
    provider_error::ProviderError, reply::StreamedReply, responses, script::ReplyScript,
};

/// One API.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    /// Whether it serves a POST to this path; any prefix may precede.
    pub(crate) serves: fn(path: &str) -> bool,
    pub(crate) streams: fn(&DialectRequest<'_>) -> bool,
    pub(crate) read: fn(body: &Value) -> ModelRequest,
    /// The response in one piece.
    pub(crate) whole: fn(&DialectRequest<'_>, &ReplyScript) -> Value,
    /// The response as events, including the closing ones.
    pub(crate) stream:
        fn(&DialectRequest<'_>, &ReplyScript, &mut StreamedReply<'_>) -> io::Result<()>,
    pub(crate) error: fn(&DialectRequest<'_>, &ProviderError) -> Value,
    /// The statuses whose response has a `retry-after` header.
    pub(crate) retry_after: &'static [u16],
    /// The response to a POST to this path, if it is a request to count tokens.
    pub(crate) count: fn(path: &str, tokens: usize) -> Option<Value>,
}

pub(crate) const DIALECTS: &[Dialect] =
    &[chat::DIALECT, responses::DIALECT, messages::DIALECT, gemini::DIALECT];

/// The creation time in every response; constant, which is easier to test.
pub(crate) const CREATED: u64 = 1_700_000_000;

/// The prompt tokens in every usage report.
pub(crate) const PROMPT_TOKENS: usize = 120;

/// The cached tokens among them.
pub(crate) const CACHED_TOKENS: usize = 20;

/// A request to a model.
pub(crate) struct DialectRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a Value,
    /// Unique; each dialect adds its own prefix.
    pub(crate) id: &'a str,
}

impl DialectRequest<'_> {
    /// The model's name: in the body, or in the path before a colon.
    pub(crate) fn model(&self) -> Value {
        let in_path = self.path.rsplit_once("/models/").and_then(|(_, it)| it.split_once(':'));
        in_path.map_or_else(|| self.body["model"].clone(), |(model, _)| json!(model))
    }
}

/// Whether the API key is `test-key`, wherever the API puts it.
pub(crate) fn has_test_key(request: &HttpRequest) -> bool {
    let bearer = request.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let own = ["x-api-key", "x-goog-api-key"].map(|it| request.header(it));
    let in_query = request.query.split('&').find_map(|it| it.strip_prefix("key="));
    let keys = [bearer, own[0], own[1], in_query];
    keys.iter().any(Option::is_some) && keys.iter().flatten().all(|it| *it == "test-key")
}

/// Two halves of a text, for fields that real servers send in pieces.
pub(crate) fn split_in_half(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2)).into()
}
