//! A session as text while it runs: the text of the agent, and short lines about its work. The caller
//! decides where and in which colors the lines are printed, and how long they may be.

pub(crate) mod describe;

pub use describe::{ToolSummary, describe_client};

use crate::options;
use describe::{
    OptionNames, ToolSummaries, block_text, describe_event, last_stderr_lines, request_details,
    str_member,
};
use jackfield_events::{EventBody, ReceivedEvent, UserAsked};
use jackfield_protocol::acp::Method;
use serde_json::Value;

/// What to print next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPiece {
    /// Text of the agent. The next piece may continue the same line.
    AgentText(String),
    /// One line of a user message.
    UserLine(String),
    /// A short line about the agent's work, with a label.
    Line { label: &'static str, text: String },
    /// A line for verbose output, with a label.
    Detail { label: &'static str, text: String },
    /// A sentence about the session or a turn.
    Remark(String),
    /// The text of the agent ends here, possibly in the middle of a line.
    EndLine,
}

/// Renders one session from its updates and events, in order.
#[derive(Debug, Default)]
pub struct TextRenderer {
    /// The unfinished last line of a thought.
    thought: String,
    tools: ToolSummaries,
    options: OptionNames,
    /// The agent's text since its last tool call.
    final_text: String,
    /// The id of the agent's last message; empty if the agent sends none.
    message_id: String,
    /// The agent has sent a thought since its last text.
    had_thought: bool,
    /// The next text of the agent replaces `final_text`.
    has_text_ended: bool,
    in_user_message: bool,
}

impl TextRenderer {
    /// Merges the tool call of a permission request and returns what is known about the call.
    pub fn merge_tool_call(&mut self, call: &Value) -> ToolSummary {
        self.tools.merge_call(call)
    }

    /// The agent's text after its last tool call.
    pub fn final_text(&self) -> &str {
        &self.final_text
    }

    /// Renders one message of the hub: `{"method":…,"params":…}`.
    pub fn render_message(&mut self, message: &Value) -> Vec<TextPiece> {
        let params = &message["params"];
        match Method::from_name(str_member(message, "method")) {
            Some(Method::SessionUpdate) => self.render_update(&params["update"]),
            Some(Method::ControlTurn | Method::ControlAsk | Method::ControlSession) => {
                self.render_notification(params)
            }
            _ => Vec::new(),
        }
    }

    /// Renders one `session/update`.
    pub fn render_update(&mut self, update: &Value) -> Vec<TextPiece> {
        let kind = str_member(update, "sessionUpdate");
        let mut out = Vec::new();
        if kind != "agent_thought_chunk" {
            self.flush_thought(&mut out);
        }
        if kind != "user_message_chunk" && self.in_user_message {
            self.in_user_message = false;
            out.push(TextPiece::EndLine);
        }
        let detail = |label, text: &str| TextPiece::Detail { label, text: text.to_owned() };
        match kind {
            "agent_message_chunk" => {
                let message_id = str_member(update, "messageId");
                self.push_text(message_id, block_text(&update["content"]), &mut out);
            }
            "user_message_chunk" => self.push_user_text(&block_text(&update["content"]), &mut out),
            "agent_thought_chunk" => self.push_thought(&block_text(&update["content"]), &mut out),
            "tool_call" | "tool_call_update" => out.extend(self.render_tool_call(kind, update)),
            "plan" => out.push(render_plan(update)),
            "current_mode_update" => out.push(detail("mode", str_member(update, "currentModeId"))),
            "session_info_update" => out.push(detail("title", str_member(update, "title"))),
            "available_commands_update" => out.push(detail("menu", &slash_commands(update))),
            "config_option_update" => {
                let options = options::describe_options(update).into_iter();
                out.extend(options.map(|(name, value)| detail("set", &format!("{name} {value}"))));
            }
            _ => out.push(detail("event", kind)),
        }
        out
    }

    /// Renders the params of a `_jackfield/…` notification. Of an event of a newer daemon only the kind
    /// is rendered.
    fn render_notification(&mut self, params: &Value) -> Vec<TextPiece> {
        if let Ok(event) = ReceivedEvent::from_value(params.clone()) {
            return self.render_event(&event);
        }
        let mut out = self.finish();
        let text = str_member(params, "is").to_owned();
        out.push(TextPiece::Detail { label: "event", text });
        out
    }

    /// Renders one event that has no ACP message.
    pub fn render_event(&mut self, event: &ReceivedEvent) -> Vec<TextPiece> {
        let mut out = self.finish();
        match &event.body {
            EventBody::Prompted(_) => self.has_text_ended = true,
            EventBody::Asked(asked) => {
                let text = self.render_question(asked);
                out.push(TextPiece::Line { label: "ask", text });
                out.extend(asked.call.iter().flat_map(request_details));
            }
            EventBody::Answered(answered) => {
                let client = describe_client(&answered.by, answered.peer.as_ref());
                let chosen = self.options.chosen_name(answered);
                let text = format!("answered by {client}: {chosen}");
                out.push(TextPiece::Line { label: "ask", text });
            }
            EventBody::Ended(_) => out.extend(describe_event(&event.body).map(TextPiece::Remark)),
            EventBody::Gone(exited) => {
                out.extend(describe_event(&event.body).map(TextPiece::Remark));
                let line = |it: &str| TextPiece::Line { label: "|", text: it.to_owned() };
                out.extend(last_stderr_lines(&exited.stderr).into_iter().map(line));
            }
            body => out.push(match describe_event(body) {
                Some(description) => TextPiece::Remark(description),
                None => TextPiece::Detail { label: "event", text: body.kind().to_string() },
            }),
        }
        out
    }

    /// Remembers the options of a request for its answer, and returns the question.
    pub fn render_question(&mut self, asked: &UserAsked<Value>) -> String {
        self.options.remember(asked);
        let params = &asked.frame["params"];
        match str_member(params, "message") {
            "" => self.merge_tool_call(&params["toolCall"]).title,
            message => message.to_owned(),
        }
    }

    /// Ends the open line.
    pub fn finish(&mut self) -> Vec<TextPiece> {
        let mut out = Vec::new();
        self.flush_thought(&mut out);
        self.in_user_message = false;
        out.push(TextPiece::EndLine);
        out
    }

    fn push_text(&mut self, message_id: &str, text: String, out: &mut Vec<TextPiece>) {
        let starts_message = self.had_thought || self.message_id != message_id;
        self.had_thought = false;
        message_id.clone_into(&mut self.message_id);
        if self.has_text_ended {
            self.has_text_ended = false;
            self.final_text.clear();
            out.push(TextPiece::EndLine);
        } else if starts_message {
            if !self.final_text.is_empty() && !self.final_text.ends_with('\n') {
                self.final_text.push('\n');
            }
            out.push(TextPiece::EndLine);
        }
        self.final_text.push_str(&text);
        out.push(TextPiece::AgentText(text));
    }

    fn push_user_text(&mut self, text: &str, out: &mut Vec<TextPiece>) {
        if !self.in_user_message {
            self.in_user_message = true;
            out.push(TextPiece::EndLine);
        }
        out.extend(text.split('\n').map(|it| TextPiece::UserLine(it.to_owned())));
    }

    fn push_thought(&mut self, text: &str, out: &mut Vec<TextPiece>) {
        self.had_thought = true;
        self.thought.push_str(text);
        while let Some(end) = self.thought.find('\n') {
            let line: String = self.thought.drain(..=end).collect();
            out.push(TextPiece::Line { label: "think", text: line.trim_end().to_owned() });
        }
    }

    fn flush_thought(&mut self, out: &mut Vec<TextPiece>) {
        let text = std::mem::take(&mut self.thought);
        if !text.is_empty() {
            out.push(TextPiece::Line { label: "think", text });
        }
    }

    fn render_tool_call(&mut self, kind: &str, update: &Value) -> Option<TextPiece> {
        self.has_text_ended = true;
        let title = self.merge_tool_call(update).title;
        let label = "tool";
        match (kind, str_member(update, "status")) {
            (_, "failed") => Some(TextPiece::Line { label, text: format!("{title}: failed") }),
            ("tool_call", _) => Some(TextPiece::Line { label, text: title }),
            (_, "completed") => Some(TextPiece::Detail { label, text: format!("{title}: done") }),
            _ => None,
        }
    }
}

fn render_plan(update: &Value) -> TextPiece {
    let entries = update["entries"].as_array().map_or(&[][..], Vec::as_slice);
    let has_status = |entry: &&Value, status: &str| str_member(entry, "status") == status;
    let done = entries.iter().filter(|it| has_status(it, "completed")).count();
    let current = entries
        .iter()
        .find(|it| has_status(it, "in_progress"))
        .or_else(|| entries.iter().find(|it| has_status(it, "pending")));
    let current = current.map_or("", |it| str_member(it, "content"));
    TextPiece::Line { label: "plan", text: format!("{done}/{} {current}", entries.len()) }
}

/// The commands that a user can type after a slash.
fn slash_commands(update: &Value) -> String {
    let commands = update["availableCommands"].as_array().into_iter().flatten();
    let names: Vec<String> = commands.map(|it| format!("/{}", str_member(it, "name"))).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::build_event;
    use proptest::prelude::*;
    use serde_json::json;

    fn chunk(kind: &str, text: &str) -> Value {
        json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
    }

    fn line(label: &'static str, text: &str) -> TextPiece {
        TextPiece::Line { label, text: text.to_owned() }
    }

    /// The pieces of these updates, without the ends of lines.
    fn render_all(renderer: &mut TextRenderer, updates: &[Value]) -> Vec<TextPiece> {
        let pieces = updates.iter().flat_map(|it| renderer.render_update(it)).collect::<Vec<_>>();
        pieces.into_iter().filter(|it| *it != TextPiece::EndLine).collect()
    }

    #[test]
    fn thought_is_rendered_by_line_and_its_rest_before_other_output() {
        let think = |text| chunk("agent_thought_chunk", text);
        let updates = [think("a b"), think(" c\nd\ne"), chunk("agent_message_chunk", "So.")];
        let pieces = render_all(&mut TextRenderer::default(), &updates);
        let answer = TextPiece::AgentText("So.".into());
        assert_eq!(
            pieces,
            [line("think", "a b c"), line("think", "d"), line("think", "e"), answer]
        );
    }

    #[test]
    fn commands_and_options_are_details() {
        let detail = |label, text: &str| TextPiece::Detail { label, text: text.to_owned() };
        let menu =
            json!([{ "name": "compact", "description": "" }, { "name": "web", "input": {} }]);
        let menu =
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": menu });
        let options =
            json!([{ "id": "model", "currentValue": "a", "options": [{ "value": "a" }] }]);
        let set = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
        let pieces = render_all(&mut TextRenderer::default(), &[menu, set]);
        assert_eq!(pieces, [detail("menu", "/compact /web"), detail("set", "model a (of a)")]);
    }

    #[test]
    fn final_text_is_the_text_after_the_last_tool_call() {
        let mut renderer = TextRenderer::default();
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls" });
        let failed =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed" });
        let answer = |text| chunk("agent_message_chunk", text);
        let pieces = render_all(
            &mut renderer,
            &[answer("I look."), call, failed, answer("No "), answer("luck.")],
        );
        assert_eq!(pieces[1..3], [line("tool", "ls"), line("tool", "ls: failed")]);
        assert_eq!(renderer.final_text(), "No luck.");
        renderer.render_event(&build_event(&json!({ "is": "prompted" })));
        renderer.render_update(&answer("Again."));
        assert_eq!(renderer.final_text(), "Again.");
    }

    #[test]
    fn each_message_of_a_turn_starts_on_its_own_line() {
        let message = |id: &str, text: &str| {
            let mut update = chunk("agent_message_chunk", text);
            update["messageId"] = json!(id);
            update
        };
        let usage = json!({ "sessionUpdate": "usage_update", "used": 1 });
        let mut renderer = TextRenderer::default();
        let updates = [message("1", "One"), usage, message("1", " word."), message("2", "Two.")];
        let updates = [&updates[..], &[chunk("agent_thought_chunk", "Hm"), message("2", "Three.")]];
        let mut printed = String::new();
        for piece in updates.concat().iter().flat_map(|it| renderer.render_update(it)) {
            match piece {
                TextPiece::AgentText(text) => printed.push_str(&text),
                TextPiece::EndLine if !printed.is_empty() => printed.push('\n'),
                _ => {}
            }
        }
        assert_eq!(printed, "One word.\nTwo.\nThree.");
        assert_eq!(renderer.final_text(), printed);
    }

    #[test]
    fn answer_is_rendered_with_the_name_of_the_option() {
        let mut renderer = TextRenderer::default();
        let options = json!([{ "optionId": "o1", "name": "Allow once" }]);
        let call = json!({ "toolCallId": "t", "title": "rm x" });
        let frame = json!({ "params": { "toolCall": call, "options": options } });
        let asked = renderer
            .render_event(&build_event(&json!({ "is": "asked", "ask": 3, "frame": frame })));
        assert_eq!(asked.last(), Some(&line("ask", "rm x")));
        let outcome = json!({ "result": { "outcome": { "optionId": "o1" } } });
        let answered = json!({ "is": "answered", "ask": 3, "by": "zed", "answer": outcome });
        let answered = renderer.render_event(&build_event(&answered));
        assert_eq!(answered.last(), Some(&line("ask", "answered by zed: Allow once")));
    }

    #[test]
    fn process_of_a_client_is_rendered_beside_its_name() {
        let peer = json!({ "pid": 7, "uid": 1000, "exe": "/bin/zed" });
        let answered = json!({ "is": "answered", "ask": 3, "by": "zed", "peer": peer,
                               "answer": { "void": "x" } });
        let answered = TextRenderer::default().render_event(&build_event(&answered));
        let Some(TextPiece::Line { text, .. }) = answered.last() else { panic!("{answered:?}") };
        assert!(text.starts_with("answered by zed, pid 7, uid 1000, /bin/zed: "), "{text}");
        let refused = json!({ "is": "refused", "operation": "_jackfield/stop", "by": "zed",
                              "why": "below an agent", "peer": { "uid": 0 } });
        let expected = "refused `_jackfield/stop` from zed, uid 0: below an agent";
        let refused = TextRenderer::default().render_event(&build_event(&refused));
        assert_eq!(refused.last(), Some(&TextPiece::Remark(expected.to_owned())));
    }

    #[test]
    fn only_an_unusual_end_of_a_turn_is_rendered() {
        let end = |how: &str, answer: Value| {
            let fact = json!({ "is": "ended", "turn": 2, "how": how, "answer": answer });
            TextRenderer::default().render_event(&build_event(&fact))[1..].to_vec()
        };
        assert_eq!(end("stopped", json!({ "stopReason": "end_turn" })), []);
        let remark = |it: &str| vec![TextPiece::Remark(it.to_owned())];
        let cancelled = end("stopped", json!({ "stopReason": "cancelled" }));
        assert_eq!(cancelled, remark("turn 2 ended: cancelled"));
        let failed = end("failed", json!({ "message": "no key" }));
        assert_eq!(failed, remark("turn 2 failed: no key"));
        let error = json!({ "message": "interrupted: the session was closed" });
        let interrupted = end("interrupted", error);
        assert_eq!(interrupted, remark("turn 2 interrupted: the session was closed"));
    }

    proptest! {
        #[test]
        fn agent_text_is_complete_however_it_is_chunked(
            chunks in proptest::collection::vec("[a-z \n]{0,6}", 0..12),
            other_kind in "agent_thought_chunk|user_message_chunk|plan|tool_call",
        ) {
            let mut renderer = TextRenderer::default();
            let mut rendered = String::new();
            for it in &chunks {
                for update in [chunk("agent_message_chunk", it), chunk(&other_kind, "x\ny")] {
                    for piece in renderer.render_update(&update) {
                        if let TextPiece::AgentText(text) = piece {
                            rendered.push_str(&text);
                        }
                    }
                }
            }
            prop_assert_eq!(rendered, chunks.concat());
        }
    }
}
