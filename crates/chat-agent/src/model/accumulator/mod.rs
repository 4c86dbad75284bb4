//! Accumulates the payloads of a stream into deltas and a complete response. No I/O.

#[cfg(test)]
mod tests;

use super::{
    FinishReason, ModelResponse, ModelTokenUsage, ResponseDelta,
    call_assembler::ToolCallAssembler,
    error::find_error_message,
    reasoning::{ReasoningSplitter, ResponsePart},
    text_call_filter::TextCallFilter,
};
use serde_json::Value;

/// An error that a server sends in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InStreamError {
    /// The HTTP status that the error stands for, if the server sends one.
    pub(crate) status: Option<u16>,
    /// The payload as the server sent it, not redacted.
    pub(crate) json: String,
}

pub(crate) struct ResponseAccumulator {
    response: ModelResponse,
    calls: ToolCallAssembler,
    reasoning: ReasoningSplitter,
    text_calls: TextCallFilter,
    /// The number of payloads in the format of Chat Completions.
    valid_payloads: usize,
    has_output: bool,
    is_done: bool,
}

impl ResponseAccumulator {
    /// `offered` are the names of the offered tools. `id_prefix` starts the ids of calls to which
    /// the server gave none, and must be different for each response.
    pub(crate) fn new(offered: Vec<String>, id_prefix: &str) -> ResponseAccumulator {
        ResponseAccumulator {
            response: ModelResponse::default(),
            calls: ToolCallAssembler::new(id_prefix),
            reasoning: ReasoningSplitter::default(),
            text_calls: TextCallFilter::new(offered),
            valid_payloads: 0,
            has_output: false,
            is_done: false,
        }
    }

    /// Adds the data of one event, or a whole body.
    pub(crate) fn push(
        &mut self,
        data: &str,
        on_delta: &mut dyn FnMut(ResponseDelta<'_>),
    ) -> Result<(), InStreamError> {
        let data = data.trim();
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            (self.is_done, self.has_output) = (true, true);
            return Ok(());
        }
        let payload: Value = match serde_json::from_str(data) {
            Ok(payload) => payload,
            Err(error) => {
                tracing::warn!(%error, bytes = data.len(), "stream payload is not valid JSON");
                return Ok(());
            }
        };
        if let Some(error) = parse_error(&payload) {
            return Err(error);
        }
        let is_valid = payload.get("choices").is_some() || payload["usage"].is_object();
        self.valid_payloads += usize::from(is_valid);
        self.read_usage(&payload["usage"]);
        // We request one choice. If a server sends several, only the first is read.
        let first = payload["choices"]
            .as_array()
            .and_then(|it| it.iter().find(|it| it["index"].as_u64().unwrap_or(0) == 0));
        if let Some(choice) = first {
            self.read_choice(choice, on_delta);
        }
        Ok(())
    }

    /// Whether the model has produced output or ended the response, that is, has read its prompt.
    pub(crate) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether `[DONE]` was received.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether no payload had the format of Chat Completions.
    pub(crate) fn has_unexpected_format(&self) -> bool {
        self.valid_payloads == 0 && !self.is_done
    }

    /// Ends the stream and emits the text that was held back.
    pub(crate) fn finish(mut self, on_delta: &mut dyn FnMut(ResponseDelta<'_>)) -> ModelResponse {
        if let Some(part) = self.reasoning.finish() {
            self.add_part(part.as_part(), on_delta);
        }
        let ResponseAccumulator { mut response, calls: mut assembler, text_calls, .. } = self;
        let found = text_calls.finish(&mut |text| {
            response.text.push_str(text);
            on_delta(ResponseDelta::Text(text));
        });
        // A server that parses calls may also leave them in the text.
        if assembler.is_empty() {
            response.has_text_calls = !found.calls.is_empty();
            found.calls.iter().for_each(|it| assembler.push(it, on_delta));
        }
        let calls = assembler.finish(on_delta);
        let (calls, nameless): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|it| !it.name.is_empty());
        let nameless = nameless.into_iter().map(|it| it.arguments);
        let garbled: Vec<String> = found.garbled.into_iter().chain(nameless).collect();
        response.garbled = (!garbled.is_empty()).then(|| garbled.join("\n"));
        response.calls = calls;
        response
    }

    fn read_choice(&mut self, choice: &Value, on_delta: &mut dyn FnMut(ResponseDelta<'_>)) {
        // A response that is not streamed has `message` instead of `delta`.
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let reasoning = [&delta["reasoning_content"], &delta["reasoning"]];
        if let Some(thought) =
            reasoning.iter().filter_map(|it| it.as_str()).find(|it| !it.is_empty())
        {
            self.add_part(ResponsePart::Thought(thought), on_delta);
        }
        self.read_content(&delta["content"], ContentKind::Text, on_delta);
        self.read_content(&delta["refusal"], ContentKind::Text, on_delta);
        for entry in delta["tool_calls"].as_array().into_iter().flatten() {
            self.has_output = true;
            self.calls.push(entry, on_delta);
        }
        if delta["function_call"].is_object() {
            self.has_output = true;
            self.calls.push(&delta["function_call"], on_delta);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.has_output = true;
            self.response.finish_reason = match reason {
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" | "refusal" => FinishReason::Refusal,
                _ => FinishReason::Stop,
            };
        }
    }

    /// Reads a string, or a list of parts with text or thoughts.
    fn read_content(
        &mut self,
        content: &Value,
        kind: ContentKind,
        on_delta: &mut dyn FnMut(ResponseDelta<'_>),
    ) {
        match content {
            Value::String(text) => match kind {
                ContentKind::Text => self.read_text(text, on_delta),
                ContentKind::Thought => self.add_part(ResponsePart::Thought(text), on_delta),
            },
            Value::Array(parts) => {
                for part in parts {
                    self.read_content(part, kind, on_delta);
                }
            }
            Value::Object(part) => {
                let member = |key: &str| part.get(key).unwrap_or(&Value::Null);
                self.read_content(member("text"), kind, on_delta);
                self.read_content(member("thinking"), ContentKind::Thought, on_delta);
            }
            _ => {}
        }
    }

    fn read_text(&mut self, text: &str, on_delta: &mut dyn FnMut(ResponseDelta<'_>)) {
        self.has_output |= !text.is_empty();
        let mut reasoning = std::mem::take(&mut self.reasoning);
        reasoning.push(text, &mut |part| self.add_part(part, on_delta));
        self.reasoning = reasoning;
    }

    fn add_part(&mut self, part: ResponsePart<'_>, on_delta: &mut dyn FnMut(ResponseDelta<'_>)) {
        let ResponseAccumulator { response, text_calls, .. } = self;
        match part {
            ResponsePart::Thought(thought) if !thought.is_empty() => {
                self.has_output = true;
                response.thought.push_str(thought);
                on_delta(ResponseDelta::Thought(thought));
            }
            ResponsePart::Thought(_) => {}
            ResponsePart::Text(text) => text_calls.push(text, &mut |text| {
                response.text.push_str(text);
                on_delta(ResponseDelta::Text(text));
            }),
        }
    }

    /// Some servers send the usage with each payload; the last one is final.
    fn read_usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let number = |it: &Value| it.as_u64().unwrap_or(0);
        self.response.tokens = Some(ModelTokenUsage {
            input: number(&usage["prompt_tokens"]),
            output: number(&usage["completion_tokens"]),
            thought: number(&usage["completion_tokens_details"]["reasoning_tokens"]),
            cached: number(&usage["prompt_tokens_details"]["cached_tokens"]),
            cost_nanos: read_cost(usage),
        });
    }
}

/// What a content string is, unless one of its parts says otherwise.
#[derive(Debug, Clone, Copy)]
enum ContentKind {
    Text,
    Thought,
}

/// Reads the price of a response. `OpenRouter` and `LiteLLM` call it `cost`, `DeepInfra`
/// `estimated_cost`; all of them use US dollars.
fn read_cost(usage: &Value) -> Option<u64> {
    let dollars = [&usage["cost"], &usage["estimated_cost"]].into_iter().find_map(Value::as_f64)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let to_nanos = |dollars: f64| (dollars * 1e9).round() as u64;
    (0.0..1e9).contains(&dollars).then(|| to_nanos(dollars))
}

fn parse_error(payload: &Value) -> Option<InStreamError> {
    let error = &payload["error"];
    let is_error = error.is_object() || error.is_string() || payload["object"] == "error";
    if !is_error {
        return None;
    }
    let codes = [
        &error["code"],
        &error["status"],
        &error["status_code"],
        &payload["code"],
        &payload["status"],
    ];
    let status = codes.iter().find_map(|it| {
        let number = it.as_u64().or_else(|| it.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|it| (400..600).contains(it))
    });
    if find_error_message(payload).is_none() {
        tracing::warn!("error in the stream has no message");
    }
    Some(InStreamError { status, json: payload.to_string() })
}
