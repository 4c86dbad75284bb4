//! The fold from events of the log to agent events.

use super::{AgentEvent, StatusEvent, TokenUsage};
use crate::timeline::{PermissionRequest, SessionTimeline, TimelineStep, TurnEnd};
use crate::usage::TokenCounts;
use jackfield_events::ReceivedEvent;
use serde_json::Value;

/// Folds the events of a session in order, starting at any event. A reader that starts at or before the
/// `prompted` of a turn gets the same agent events for that turn, and the same number per event. Only
/// earlier knowledge may be missing in them: the model and the previous cost of the session.
#[derive(Debug, Default)]
pub struct AgentEventView {
    timeline: SessionTimeline,
}

impl AgentEventView {
    pub fn fold_event(&mut self, event: &ReceivedEvent) -> Vec<AgentEvent> {
        let update = self.timeline.fold_event(event);
        let mut events = Vec::new();
        for entry in update.entries {
            self.push_events(entry.step, event, &mut events);
        }
        events
    }

    fn push_events(&self, step: TimelineStep, event: &ReceivedEvent, events: &mut Vec<AgentEvent>) {
        match step {
            TimelineStep::AgentReady { restored_by, model } => {
                let session_id = event.session.as_ref().map(ToString::to_string);
                let status = StatusEvent {
                    model,
                    detail: restored_by,
                    session_id,
                    ..new_status("initializing")
                };
                events.push(AgentEvent::Status(status));
            }
            TimelineStep::ModelChanged(model) => {
                events.push(AgentEvent::Status(StatusEvent {
                    model: Some(model),
                    ..new_status("model")
                }));
            }
            TimelineStep::ModeChanged(mode) => events.push(AgentEvent::Mode { mode }),
            TimelineStep::OptionsChanged(options) => events.push(AgentEvent::Config { options }),
            TimelineStep::TurnStarted { .. } => {
                let model = self.timeline.model().map(str::to_owned);
                events.push(AgentEvent::Status(StatusEvent { model, ..new_status("running") }));
            }
            TimelineStep::Text { text, ttft_ms, .. } => {
                if ttft_ms.is_some() {
                    events.push(AgentEvent::Status(StatusEvent {
                        ttft_ms,
                        ..new_status("streaming")
                    }));
                }
                events.push(AgentEvent::TextDelta { delta: text });
            }
            TimelineStep::Thought { text, starts, .. } => {
                if starts {
                    events.push(AgentEvent::ThinkingStart);
                }
                events.push(AgentEvent::ThinkingDelta { delta: text });
            }
            TimelineStep::Block(block) => events.push(block_event(&block)),
            TimelineStep::CallStarted(call) => events.push(AgentEvent::ToolUse {
                id: call.id,
                name: call.name,
                input: call.input,
                title: call.title,
                kind: call.kind,
                parent_tool_use_id: call.parent,
            }),
            TimelineStep::CallEnded { id, content, is_error, .. } => {
                events.push(AgentEvent::ToolResult { tool_use_id: id, content, is_error });
            }
            TimelineStep::Plan(entries) => events.push(AgentEvent::Plan { entries }),
            TimelineStep::PermissionRequested(request) => {
                events.push(permission_event(*request));
            }
            TimelineStep::PermissionAnswered { ask, call, option, by } => {
                let (tool_use_id, option_id) = (call, option);
                events.push(AgentEvent::PermissionResponse { ask, tool_use_id, option_id, by });
            }
            TimelineStep::TurnEnded { end, .. } => push_turn_end(*end, events),
            TimelineStep::Unmapped(line) => events.push(AgentEvent::Raw { line: line.to_string() }),
            TimelineStep::Note { label, detail, ms } => {
                let status = StatusEvent { detail, elapsed_ms: ms, ..new_status(&label) };
                events.push(AgentEvent::Status(status));
            }
        }
    }
}

fn new_status(label: &str) -> StatusEvent {
    StatusEvent { label: label.to_owned(), ..StatusEvent::default() }
}

fn push_turn_end(end: TurnEnd, events: &mut Vec<AgentEvent>) {
    let dollars = end.cost.filter(|it| it.currency == "USD").map(|it| it.amount);
    events.push(AgentEvent::Usage {
        usage: token_usage(&end.tokens),
        cost_usd: dollars,
        duration_ms: end.ms,
        stop_reason: end.summary.stop_reason,
    });
    if let Some(failure) = end.summary.failure {
        events.push(AgentEvent::Error { message: failure.message, code: failure.code });
    }
}

fn permission_event(request: PermissionRequest) -> AgentEvent {
    AgentEvent::PermissionRequest {
        ask: request.ask,
        tool_use_id: request.call.id,
        name: request.call.name,
        title: request.call.title,
        input: request.call.input,
        options: request.options,
    }
}

fn token_usage(tokens: &TokenCounts) -> TokenUsage {
    TokenUsage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cached_read_tokens: tokens.cached_read,
        cached_write_tokens: tokens.cached_write,
        thought_tokens: tokens.thought,
        total_tokens: tokens.total,
    }
}

/// The event for a content block that is not text: a link becomes text, other blocks a status.
fn block_event(block: &Value) -> AgentEvent {
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
    AgentEvent::Status(StatusEvent { detail, ..new_status(kind) })
}
