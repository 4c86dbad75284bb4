//! Tests whether a server and its model are suitable for the agent.
//!
//! Two requests are sent to the model: one that it answers with text, and one that it answers with
//! tool calls. Everything else is read from the pages that servers have in addition to the common
//! API.

mod assessment;
mod server_kind;
#[cfg(test)]
mod tests;

pub use assessment::{ModelFitness, ProbeFinding};

use crate::{
    ChatSettings,
    model::{ModelClient, ModelError, ModelInfo, ModelRequest, ResponseDelta},
};
use serde::Serialize;
use serde_json::json;
use server_kind::ServerKind;
use std::time::Instant;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent result")]
pub struct ProbeReport {
    /// The value to use for `OPENAI_BASE_URL`.
    pub url: String,
    pub model: String,
    /// The context window in tokens, and the page that reported it.
    pub window: Option<u64>,
    pub window_from: Option<&'static str>,
    /// Whether the text is streamed.
    #[serde(rename = "streams")]
    pub streams_text: bool,
    #[serde(rename = "calls")]
    pub call_support: ToolCallSupport,
    /// Whether the arguments of calls are streamed.
    pub streams_calls: bool,
    /// Whether one response can have several calls.
    pub parallel_calls: bool,
    /// Whether the reasoning is separate from the text.
    #[serde(rename = "thinks")]
    pub separates_reasoning: bool,
    pub first_token_ms: u64,
    pub tokens_per_second: Option<f64>,
    pub fitness: ModelFitness,
    #[serde(rename = "flaws")]
    pub findings: Vec<ProbeFinding>,
}

/// How the model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallSupport {
    /// As the API defines it.
    Native,
    /// In its text, from which we parse the calls.
    Text,
    /// In its text, in a form that cannot be parsed.
    Garbled,
    /// The server rejects requests with tools.
    Refused,
    /// The model was offered a tool and answered with text only.
    None,
}

/// Probes a server. The error is a message for the user: what failed and, on the next line, the
/// message of the server.
pub async fn probe_model_server(
    settings: &ChatSettings,
    model: Option<&str>,
) -> Result<ProbeReport, String> {
    let base_url = add_version_path(&settings.base_url);
    let settings = &ChatSettings { base_url, ..settings.clone() };
    probe_with(settings, model).await.map_err(|error| error.to_string())
}

async fn probe_with(
    settings: &ChatSettings,
    model: Option<&str>,
) -> Result<ProbeReport, ModelError> {
    let client = ModelClient::new(settings)?;
    let models = list_models(&client).await?;
    let is_listed = |id: &str| models.iter().any(|it| it.id == id);
    let model = match model {
        Some(model) => model.to_owned(),
        None if models.is_empty() || is_listed(&settings.model) => settings.model.clone(),
        None => models[0].id.clone(),
    };
    let text = probe_text(&client, &model).await?;
    let calls = probe_calls(&client, &model).await?;
    let listed_window = models.iter().find(|it| it.id == model).and_then(|it| it.window);
    // The model is loaded by now, so a server that loads models on demand can report its window.
    let (server, window) = ServerKind::detect(&client, &model, listed_window).await;
    let mut report = ProbeReport {
        url: settings.base_url.clone(),
        model,
        window: window.map(|(tokens, _)| tokens),
        window_from: window.map(|(_, from)| from),
        streams_text: 1 < text.deltas,
        call_support: calls.support,
        streams_calls: calls.is_streamed,
        parallel_calls: calls.is_parallel,
        separates_reasoning: text.has_thought || calls.has_thought,
        first_token_ms: text.first_token_ms,
        tokens_per_second: text.tokens_per_second,
        fitness: ModelFitness::Good,
        findings: Vec::new(),
    };
    report.assess(server);
    Ok(report)
}

/// A server may have no list of models and still serve one.
async fn list_models(client: &ModelClient) -> Result<Vec<ModelInfo>, ModelError> {
    match client.list_models().await {
        Err(
            ModelError::Status { status: 404 | 405 | 501, .. }
            | ModelError::UnexpectedFormat { .. },
        ) => Ok(Vec::new()),
        result => result,
    }
}

/// Adds `/v1` to a URL without a path, because that is where servers have the API.
fn add_version_path(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let has_no_path = url.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    if has_no_path { format!("{url}/v1") } else { url.to_owned() }
}

struct TextProbe {
    deltas: u32,
    first_token_ms: u64,
    tokens_per_second: Option<f64>,
    has_thought: bool,
}

async fn probe_text(client: &ModelClient, model: &str) -> Result<TextProbe, ModelError> {
    let request = user_request(model, "Count from 1 to 30 in words, separated by commas.");
    let (started, mut first, mut deltas) = (Instant::now(), None, 0_u32);
    let response = client.send_request(&request, |_| {
        first.get_or_insert_with(Instant::now);
        deltas += 1;
    });
    let response = response.await?;
    let first = first.unwrap_or_else(Instant::now);
    let reported = response.tokens.map(|it| it.output).filter(|it| 0 < *it);
    let tokens = reported.and_then(|it| u32::try_from(it).ok()).unwrap_or(deltas);
    let seconds = first.elapsed().as_secs_f64();
    // The speed of a response that arrives at once cannot be measured.
    let tokens_per_second = (1 < deltas && 0.0 < seconds).then(|| f64::from(tokens) / seconds);
    let first_token_ms =
        u64::try_from(first.duration_since(started).as_millis()).unwrap_or(u64::MAX);
    let has_thought = !response.thought.is_empty();
    Ok(TextProbe { deltas, first_token_ms, tokens_per_second, has_thought })
}

struct CallProbe {
    support: ToolCallSupport,
    is_streamed: bool,
    is_parallel: bool,
    has_thought: bool,
}

async fn probe_calls(client: &ModelClient, model: &str) -> Result<CallProbe, ModelError> {
    let mut request = user_request(
        model,
        "What is the weather in Paris and in Rome? Call the tool once for each city, both at once.",
    );
    let city =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let function =
        json!({"name": "weather", "description": "The weather of a city", "parameters": city});
    request.tools = vec![json!({"type": "function", "function": function})];
    let mut deltas = 0;
    let response = client.send_request(&request, |it| {
        deltas += usize::from(matches!(it, ResponseDelta::ToolCall { .. }));
    });
    let response = response.await?;
    let support = if client.rejects_tools(model) {
        ToolCallSupport::Refused
    } else if response.has_text_calls {
        ToolCallSupport::Text
    } else if !response.calls.is_empty() {
        ToolCallSupport::Native
    } else if response.garbled.is_some() {
        ToolCallSupport::Garbled
    } else {
        ToolCallSupport::None
    };
    Ok(CallProbe {
        support,
        is_streamed: response.calls.len() < deltas,
        is_parallel: 1 < response.calls.len(),
        has_thought: !response.thought.is_empty(),
    })
}

fn user_request(model: &str, text: &str) -> ModelRequest {
    let messages = vec![json!({"role": "user", "content": text})];
    ModelRequest { model: model.to_owned(), messages, ..ModelRequest::default() }
}
