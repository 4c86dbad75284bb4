//! The fold from facts to agent events.

use super::{AgentEvent, Status, TokenUsage};
use crate::story::{Step, Story, TurnEnded};
use crate::usage::Tokens;
use jackfield_events::ReceivedEvent;
use serde_json::Value;

/// Folded from the facts of a session, in order, from any fact on. Whoever wants the same events of
/// a turn again, and as many for each fact, starts at its `prompted` or before; only what was known
/// earlier may be missing in them: the model, what the session had cost.
#[derive(Debug, Default)]
pub struct AgentEvents {
    story: Story,
}

impl AgentEvents {
    pub fn fold(&mut self, event: &ReceivedEvent) -> Vec<AgentEvent> {
        let told = self.story.fold(event);
        let mut events = Vec::new();
        for placed in told.steps {
            self.tell(placed.step, event, &mut events);
        }
        events
    }

    fn tell(&self, step: Step, event: &ReceivedEvent, events: &mut Vec<AgentEvent>) {
        match step {
            Step::Awake { rung, model } => {
                let session_id = event.session.as_ref().map(ToString::to_string);
                let status = Status { model, detail: rung, session_id, ..status("initializing") };
                events.push(AgentEvent::Status(status));
            }
            Step::Model(model) => {
                events.push(AgentEvent::Status(Status { model: Some(model), ..status("model") }));
            }
            Step::Mode(mode) => events.push(AgentEvent::Mode { mode }),
            Step::Options(options) => events.push(AgentEvent::Config { options }),
            Step::TurnBegan { .. } => {
                let model = self.story.model().map(str::to_owned);
                events.push(AgentEvent::Status(Status { model, ..status("running") }));
            }
            Step::Text { text, ttft_ms, .. } => {
                if ttft_ms.is_some() {
                    events.push(AgentEvent::Status(Status { ttft_ms, ..status("streaming") }));
                }
                events.push(AgentEvent::TextDelta { delta: text });
            }
            Step::Thought { text, starts, .. } => {
                if starts {
                    events.push(AgentEvent::ThinkingStart);
                }
                events.push(AgentEvent::ThinkingDelta { delta: text });
            }
            Step::Block(block) => events.push(in_words(&block)),
            Step::CallBegan(call) => events.push(AgentEvent::ToolUse {
                id: call.id,
                name: call.name,
                input: call.input,
                title: call.title,
                kind: call.kind,
                parent_tool_use_id: call.parent,
            }),
            Step::CallEnded { id, content, is_error, .. } => {
                events.push(AgentEvent::ToolResult { tool_use_id: id, content, is_error });
            }
            Step::Plan(entries) => events.push(AgentEvent::Plan { entries }),
            Step::Asked(asked) => events.push(AgentEvent::PermissionRequest {
                ask: asked.ask,
                tool_use_id: asked.call.id,
                name: asked.call.name,
                title: asked.call.title,
                input: asked.call.input,
                options: asked.options,
            }),
            Step::Answered { ask, call, option, by } => {
                let (tool_use_id, option_id) = (call, option);
                events.push(AgentEvent::PermissionResponse { ask, tool_use_id, option_id, by });
            }
            Step::TurnEnded { ended, .. } => end(*ended, events),
            Step::Unmapped(line) => events.push(AgentEvent::Raw { line: line.to_string() }),
            Step::Note { label, detail, ms } => {
                let status = Status { detail, elapsed_ms: ms, ..status(&label) };
                events.push(AgentEvent::Status(status));
            }
        }
    }
}

fn status(label: &str) -> Status {
    Status { label: label.to_owned(), ..Status::default() }
}

fn end(ended: TurnEnded, events: &mut Vec<AgentEvent>) {
    let dollars = ended.cost.filter(|it| it.currency == "USD").map(|it| it.amount);
    events.push(AgentEvent::Usage {
        usage: usage(&ended.tokens),
        cost_usd: dollars,
        duration_ms: ended.ms,
        stop_reason: ended.outcome.stop_reason,
    });
    if let Some(failure) = ended.outcome.failure {
        events.push(AgentEvent::Error { message: failure.message, code: failure.code });
    }
}

fn usage(tokens: &Tokens) -> TokenUsage {
    TokenUsage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cached_read_tokens: tokens.cached_read,
        cached_write_tokens: tokens.cached_write,
        thought_tokens: tokens.thought,
        total_tokens: tokens.total,
    }
}

/// A part of an answer that is no text: a link is told as one, of others that they are there.
fn in_words(block: &Value) -> AgentEvent {
    let resource = &block["resource"];
    if let Some(text) = resource["text"].as_str() {
        return AgentEvent::TextDelta { delta: text.to_owned() };
    }
    let uri = block["uri"].as_str().or(resource["uri"].as_str());
    let kind = block["type"].as_str().unwrap_or("content");
    if let Some(uri) = uri {
        let name = block["name"].as_str().or(block["title"].as_str()).unwrap_or(uri);
        return AgentEvent::TextDelta { delta: format!("[{name}]({uri})") };
    }
    let detail = block["mimeType"].as_str().map(str::to_owned);
    AgentEvent::Status(Status { detail, ..status(kind) })
}
