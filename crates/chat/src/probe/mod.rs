//! Whether a server and its model will do for an agent: asked, not believed.
//!
//! Two questions are put to the model: one that it answers in words, one that it answers with calls.
//! Everything else is read from the pages that the servers have beside the common interface.

#[cfg(test)]
mod tests;
mod verdict;
mod window;

pub use verdict::{Fitness, Flaw};

use crate::{
    Settings,
    model::{Ask, Delta, Model, Trouble},
};
use serde::Serialize;
use serde_json::json;
use std::time::Instant;
use window::Server;

/// What was found out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own")]
pub struct Probed {
    /// What `OPENAI_BASE_URL` should be.
    pub url: String,
    pub model: String,
    /// How many tokens the model sees at once, and who told.
    pub window: Option<u64>,
    pub window_from: Option<&'static str>,
    /// Whether words come one by one.
    pub streams: bool,
    pub calls: Calls,
    /// Whether the arguments of calls come in pieces.
    pub streams_calls: bool,
    /// Whether several calls come in one answer.
    pub parallel_calls: bool,
    /// Whether it tells its thoughts apart from its words.
    pub thinks: bool,
    pub first_token_ms: u64,
    pub tokens_per_second: Option<f64>,
    pub fitness: Fitness,
    pub flaws: Vec<Flaw>,
}

/// How the model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// As the interface has it.
    Native,
    /// In its text; we read them there.
    Text,
    /// In its text, and not so that they could be read.
    Garbled,
    /// The server will not have tools.
    Refused,
    /// It was offered a tool and answered in words.
    None,
}

/// Asks a server. The error is a sentence for people: what happened and, below it, what the server
/// said.
pub async fn probe(settings: &Settings, model: Option<&str>) -> Result<Probed, String> {
    let settings = &Settings { base_url: with_version(&settings.base_url), ..settings.clone() };
    let told = |trouble: Trouble| trouble.to_string();
    let server = Model::new(settings).map_err(told)?;
    let listed = match server.models().await {
        Ok(listed) => listed,
        // A server may have no list and still answer.
        Err(Trouble::Status { status: 404 | 405 | 501, .. } | Trouble::Foreign { .. }) => {
            Vec::new()
        }
        Err(trouble) => return Err(told(trouble)),
    };
    let is_listed = |id: &str| listed.iter().any(|it| it.id == id);
    let model = match model {
        Some(model) => model.to_owned(),
        None if listed.is_empty() || is_listed(&settings.model) => settings.model.clone(),
        None => listed[0].id.clone(),
    };
    let words = ask_for_words(&server, &model).await.map_err(told)?;
    let calls = ask_for_calls(&server, &model).await.map_err(told)?;
    let listed = listed.iter().find(|it| it.id == model).and_then(|it| it.window);
    // The model is loaded by now, and a server that loads late knows its window.
    let (kind, window) = Server::recognize(&server, &model, listed).await;
    let mut probed = Probed {
        url: settings.base_url.clone(),
        model,
        window: window.map(|(tokens, _)| tokens),
        window_from: window.map(|(_, from)| from),
        streams: 1 < words.pieces,
        calls: calls.calls,
        streams_calls: calls.in_pieces,
        parallel_calls: calls.parallel,
        thinks: words.thinks || calls.thinks,
        first_token_ms: words.first_ms,
        tokens_per_second: words.rate,
        fitness: Fitness::Good,
        flaws: Vec::new(),
    };
    verdict::judge(&mut probed, kind);
    Ok(probed)
}

/// A server alone has its interface under `/v1`.
fn with_version(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let is_bare = url.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    if is_bare { format!("{url}/v1") } else { url.to_owned() }
}

struct Words {
    pieces: usize,
    first_ms: u64,
    rate: Option<f64>,
    thinks: bool,
}

async fn ask_for_words(server: &Model, model: &str) -> Result<Words, Trouble> {
    let ask = question(model, "Count from 1 to 30 in words, separated by commas.");
    let (began, mut first, mut pieces) = (Instant::now(), None, 0_u32);
    let answer = server.ask(&ask, |_| {
        first.get_or_insert_with(Instant::now);
        pieces += 1;
    });
    let answer = answer.await?;
    let first = first.unwrap_or_else(Instant::now);
    let told = answer.tokens.map(|it| it.output).filter(|it| 0 < *it);
    let tokens = told.and_then(|it| u32::try_from(it).ok()).unwrap_or(pieces);
    let seconds = first.elapsed().as_secs_f64();
    // An answer in one piece does not tell how fast it was made.
    let rate = (1 < pieces && 0.0 < seconds).then(|| f64::from(tokens) / seconds);
    let first_ms = u64::try_from(first.duration_since(began).as_millis()).unwrap_or(u64::MAX);
    let thinks = !answer.thought.is_empty();
    Ok(Words { pieces: pieces as usize, first_ms, rate, thinks })
}

struct Called {
    calls: Calls,
    in_pieces: bool,
    parallel: bool,
    thinks: bool,
}

async fn ask_for_calls(server: &Model, model: &str) -> Result<Called, Trouble> {
    let mut ask = question(
        model,
        "What is the weather in Paris and in Rome? Call the tool once for each city, both at once.",
    );
    let city =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let function =
        json!({"name": "weather", "description": "The weather of a city", "parameters": city});
    ask.tools = vec![json!({"type": "function", "function": function})];
    let mut pieces = 0;
    let answer = server.ask(&ask, |it| pieces += usize::from(matches!(it, Delta::Call { .. })));
    let answer = answer.await?;
    let calls = if server.refuses_tools(model) {
        Calls::Refused
    } else if answer.written {
        Calls::Text
    } else if !answer.calls.is_empty() {
        Calls::Native
    } else if answer.garbled.is_some() {
        Calls::Garbled
    } else {
        Calls::None
    };
    let (in_pieces, parallel) = (answer.calls.len() < pieces, 1 < answer.calls.len());
    Ok(Called { calls, in_pieces, parallel, thinks: !answer.thought.is_empty() })
}

fn question(model: &str, text: &str) -> Ask {
    let messages = vec![json!({"role": "user", "content": text})];
    Ask { model: model.to_owned(), messages, ..Ask::default() }
}
