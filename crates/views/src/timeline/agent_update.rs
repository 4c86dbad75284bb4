//! The updates of an agent in its turn: text, thoughts, tool calls, plans and settings.

use super::{LastOutput, SessionTimeline, TimelineStep, TimelineUpdate, content_text, step};
use crate::current_model::{model_in_options, option_values};
use jackfield_protocol::acp::Method;
use serde_json::Value;

impl SessionTimeline {
    pub(super) fn on_update(&mut self, frame: &Value, out: &mut TimelineUpdate) {
        let update = &frame["params"]["update"];
        let Some(kind) = update["sessionUpdate"].as_str() else {
            // An extension notification of the agent.
            let method = frame["method"].as_str().filter(|it| *it != Method::SessionUpdate.name());
            return out.push_steps(method.map(|it| TimelineStep::note(it, None, None)));
        };
        match kind {
            "agent_message_chunk" => self.on_text(update, out),
            "agent_thought_chunk" => self.on_thought(update, out),
            "tool_call" | "tool_call_update" => {
                // Reasoning after a tool call is a new thought.
                self.last_output = LastOutput::Nothing;
                out.push_steps(self.calls.apply_update(update, kind == "tool_call"));
            }
            "plan" => {
                let entries = update["entries"].as_array().cloned().unwrap_or_default();
                out.push_step(TimelineStep::Plan(entries));
            }
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str().or(update["modeId"].as_str());
                out.push_steps(mode.map(|it| TimelineStep::ModeChanged(it.to_owned())));
            }
            "config_option_update" => self.on_options(&update["configOptions"], out),
            "session_info_update" => out.push_steps(step::info_steps(update)),
            // Usage is reported at the end of the turn, prompts are events of their own, and commands
            // are a menu.
            "usage_update" | "user_message_chunk" | "available_commands_update" => {}
            other => out.push_step(TimelineStep::note(other, step::find_detail(update), None)),
        }
    }

    fn on_text(&mut self, update: &Value, out: &mut TimelineUpdate) {
        let content = &update["content"];
        let text = content_text(content);
        if text.as_deref() == Some("") {
            return;
        }
        out.push_steps(self.calls.start_announced());
        self.last_output = LastOutput::Text;
        match text {
            Some(text) => {
                let ttft_ms = self.waiting_since.take().map(|it| out.at.saturating_sub(it));
                out.push_step(TimelineStep::Text { text, message: message_id(update), ttft_ms });
            }
            None => out.push_step(TimelineStep::Block(content.clone())),
        }
    }

    fn on_thought(&mut self, update: &Value, out: &mut TimelineUpdate) {
        let text = content_text(&update["content"]).filter(|it| !it.is_empty());
        let Some(text) = text else { return };
        out.push_steps(self.calls.start_announced());
        let starts = matches!(self.last_output, LastOutput::Nothing | LastOutput::Text);
        self.last_output = LastOutput::Thought;
        out.push_step(TimelineStep::Thought { text, message: message_id(update), starts });
    }

    pub(super) fn on_options(&mut self, options: &Value, out: &mut TimelineUpdate) {
        let values = option_values(options);
        if !values.is_empty() {
            out.push_step(TimelineStep::OptionsChanged(values));
        }
        // An unchanged model is reported too: a reader that started later does not know that it is
        // unchanged, and must get the same number of steps.
        if let Some(model) = model_in_options(options) {
            self.set_model(model, out);
        }
    }
}

/// The id of the message that a chunk belongs to, if the agent sends one.
fn message_id(update: &Value) -> Option<String> {
    update["messageId"].as_str().map(str::to_owned)
}
