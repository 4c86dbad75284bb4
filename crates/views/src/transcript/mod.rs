//! A session as Markdown: user messages as quotes, the text of the agent, its reasoning folded, each tool
//! call as a line with its edits and output, requests with their answers, the end of each turn, and the
//! usage.
//!
//! **Invariant:** foreign text does not change how the rest is parsed: its fences and its HTML end with it.
//! A viewer loads and runs nothing in it.

mod call;
#[cfg(test)]
mod corpus;
pub(crate) mod diff;
mod html;
mod item;
mod links;
mod markdown;
mod sanitize;
mod section;
#[cfg(test)]
mod strategy;

use crate::{
    SessionUsage,
    text::describe::{
        OptionNames, block_text, describe_client, describe_event, describe_failed_turn,
        last_stderr_lines, str_member,
    },
    timeline::TurnSummary,
    usage::{TABLE_HEADINGS, format_seconds},
};
use item::{TranscriptRequest, render_quote, render_remark};
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, TurnEnded, TurnStarted, UnaskedCall, UserAnswered,
    UserAsked,
};
use jackfield_protocol::acp::Method;
use markdown::{escape_line, inline_code};
use section::TranscriptSection;
use serde_json::Value;

/// The properties of a session in the header of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptHeader {
    pub session: String,
    pub title: Option<String>,
    pub agent: String,
    pub cwd: String,
    pub opened_at: String,
}

/// Folds the events of a session in order and returns the Markdown that each event completes: that of a
/// turn when it ends.
#[derive(Debug, Default)]
pub struct MarkdownTranscript {
    usage: SessionUsage,
    options: OptionNames,
    /// The running turn, or what followed the last one.
    section: TranscriptSection,
    /// The prompt of the running turn: some agents echo it.
    prompt: String,
    /// The remark about late messages was added.
    has_late_remark: bool,
}

impl MarkdownTranscript {
    pub fn render_header(header: &TranscriptHeader) -> String {
        let title = header.title.as_deref().map(escape_line).filter(|it| !it.is_empty());
        let title = title.unwrap_or_else(|| escape_line(&header.session));
        let mut rendered = format!("# {title}\n\n");
        let properties = [
            ("agent", &header.agent),
            ("directory", &header.cwd),
            ("opened", &header.opened_at),
            ("session", &header.session),
        ];
        for (name, value) in properties.into_iter().filter(|it| !it.1.is_empty()) {
            rendered.extend(["- ", name, ": ", &inline_code(value), "\n"]);
        }
        rendered
    }

    pub fn fold_event(&mut self, event: &ReceivedEvent) -> String {
        self.usage.fold_event(event);
        match &event.body {
            EventBody::Prompted(started) => return self.on_turn_started(started),
            EventBody::Ended(ended) => return self.on_turn_ended(ended, &event.body),
            EventBody::Said(message) => self.on_message(message),
            EventBody::Asked(asked) => self.on_asked(asked),
            EventBody::Answered(answered) => self.on_answered(answered),
            EventBody::Learned(learned) => {
                if let Some(request) = self.section.request_mut(learned.ask) {
                    request.is_always = true;
                }
            }
            EventBody::Configured(changed) => {
                if let Some(setting) = describe_setting(&changed.frame) {
                    self.section.add_remark(setting);
                }
            }
            EventBody::Unasked(UnaskedCall { call }) => {
                let title = str_member(call, "title");
                let remark = format!("done without the approval that a rule requires: {title}");
                self.section.add_remark(remark);
            }
            EventBody::Gone(exited) => {
                self.section.add_remark(describe_event(&event.body).unwrap_or_default());
                self.section.add_stderr(&last_stderr_lines(&exited.stderr));
            }
            EventBody::Bound(_)
            | EventBody::Served(_)
            | EventBody::Refused(_)
            | EventBody::HostRefused(_)
            | EventBody::LeftOut(_)
            | EventBody::Cancelled(_)
            | EventBody::Forked(_)
            | EventBody::Moved(_)
            | EventBody::Withdrawn(_)
            | EventBody::Closed => {
                self.section.add_remark(describe_event(&event.body).unwrap_or_default());
            }
            EventBody::Opened(_)
            | EventBody::Sandboxed(_)
            | EventBody::Imported(_)
            | EventBody::Queued(_)
            | EventBody::Reordered(_)
            | EventBody::Quiet(_)
            | EventBody::Slept(_) => {}
        }
        String::new()
    }

    /// Returns the rest of the transcript and the usage table.
    pub fn finish(&mut self) -> String {
        let mut out = self.take_section();
        self.append_usage(&mut out);
        out
    }

    fn on_turn_started(&mut self, started: &TurnStarted<Value>) -> String {
        let mut out = self.take_section();
        let blocks = started.frame["params"]["prompt"].as_array();
        let blocks: Vec<String> = blocks.into_iter().flatten().map(block_text).collect();
        self.prompt = blocks.join("\n");
        self.has_late_remark = false;
        let by = Some(escape_line(&started.by)).filter(|it| !it.is_empty());
        let by = by.map(|it| format!(", by {it}")).unwrap_or_default();
        append_block(&mut out, &format!("## Turn {}{by}", started.turn));
        append_block(&mut out, &render_quote(&self.prompt));
        out
    }

    fn on_turn_ended(&mut self, ended: &TurnEnded<Value>, body: &EventBody<Value>) -> String {
        let mut out = self.take_section();
        let TurnEnded { turn, outcome } = ended;
        let end = match (TurnSummary::from_outcome(outcome).failure, describe_event(body)) {
            (Some(failure), _) => describe_failed_turn(*turn, outcome, &failure.message),
            (None, Some(description)) => description,
            (None, None) => format!("turn {turn} ended: end_turn"),
        };
        let ms = self.usage.turns.iter().rfind(|it| it.turn == *turn).and_then(|it| it.ms);
        let duration = ms.map(|it| format!(" ({})", format_seconds(it))).unwrap_or_default();
        append_block(&mut out, &render_remark(&format!("{end}{duration}")));
        out
    }

    fn on_message(&mut self, message: &AgentMessage<Value>) {
        let update = &message.frame["params"]["update"];
        let rendered =
            ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];
        let is_late = message.late && rendered.contains(&str_member(update, "sessionUpdate"));
        if is_late && !self.has_late_remark {
            self.has_late_remark = true;
            self.section.add_remark("received after the end of the turn:".to_owned());
        }
        self.section.add_update(update);
    }

    fn on_asked(&mut self, asked: &UserAsked<Value>) {
        self.options.remember(asked);
        let params = &asked.frame["params"];
        let call = &params["toolCall"];
        let why = asked.decision.as_ref().map(|it| str_member(it, "why").to_owned());
        let request = TranscriptRequest {
            call: call.is_object().then(|| str_member(call, "toolCallId").to_owned()),
            message: str_member(params, "message").to_owned(),
            why: why.unwrap_or_default(),
            ..TranscriptRequest::default()
        };
        self.section.add_request(asked.ask, request, call);
    }

    fn on_answered(&mut self, answered: &UserAnswered<Value>) {
        let client = describe_client(&answered.by, answered.peer.as_ref());
        let chosen = self.options.chosen_name(answered).to_owned();
        if let Some(request) = self.section.request_mut(answered.ask) {
            request.answer = Some((client, chosen));
        } else {
            self.section.add_remark(format!("a request was answered by {client}: {chosen}"));
        }
    }

    /// Renders the current section and starts a new one.
    fn take_section(&mut self) -> String {
        let mut out = String::new();
        for it in std::mem::take(&mut self.section).render(&self.prompt) {
            append_block(&mut out, &it);
        }
        out
    }

    /// Appends the same table as in `sessions show`.
    fn append_usage(&self, out: &mut String) {
        if self.usage.turns.is_empty() {
            return;
        }
        let row =
            |cells: [String; 8]| format!("| {} |\n", cells.map(|it| escape_line(&it)).join(" | "));
        let mut table = row(TABLE_HEADINGS.map(str::to_lowercase));
        table.push_str(&row(TABLE_HEADINGS.map(|_| "---".to_owned())));
        table.extend(self.usage.turns.iter().map(|it| row(it.table_cells())));
        table.push_str(&row(self.usage.total().table_cells()));
        append_block(out, "## Usage");
        append_block(out, table.trim_end());
        if let Some(context) = self.usage.context {
            append_block(out, &format!("Context: {context}"));
        }
    }
}

/// Appends a block after a blank line.
fn append_block(out: &mut String, block: &str) {
    if !block.is_empty() {
        out.extend(["\n", block, "\n"]);
    }
}

/// Describes a changed setting as `name: value`.
fn describe_setting(frame: &Value) -> Option<String> {
    let params = &frame["params"];
    let (name, value) = match Method::from_name(str_member(frame, "method"))? {
        Method::SessionSetMode => ("mode", str_member(params, "modeId").to_owned()),
        Method::SessionSetModel => ("model", str_member(params, "modelId").to_owned()),
        Method::ControlRename => ("name", str_member(params, "name").to_owned()),
        Method::SessionSetConfigOption => {
            let value = &params["value"];
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (str_member(params, "configId"), value)
        }
        _ => return None,
    };
    Some(format!("{name}: {value}"))
}

#[cfg(test)]
mod tests {
    use super::{
        sanitize::is_closed,
        strategy::{agent_update, any_event, chunk},
        *,
    };
    use crate::test_events::{build_event, build_event_if_known};
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;

    fn markdown(events: &[Value]) -> String {
        let mut transcript = MarkdownTranscript::default();
        let mut rendered: String =
            events.iter().map(|it| transcript.fold_event(&build_event(it))).collect();
        rendered.push_str(&transcript.finish());
        rendered
    }

    #[test]
    fn answer_is_rendered_in_the_line_of_the_call() {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "rm x" });
        let options = json!([{ "optionId": "1", "name": "Yes" }]);
        let params = json!({ "toolCall": { "toolCallId": "t" }, "options": options });
        let answer = json!({ "result": { "outcome": { "optionId": "1" } } });
        let asked = json!({ "is": "asked", "ask": 4, "frame": { "params": params },
                            "decision": { "why": "by rule 1" } });
        let answered = |by: &str| json!({ "is": "answered", "ask": 4, "by": by, "answer": answer });
        let line = |events: &[Value]| markdown(events).trim().to_owned();
        let made = [agent_update(&call), asked.clone()];
        let open = "- **tool** `rm x`: asked (not answered), no result reported";
        assert_eq!(line(&made), open);
        let by_zed = [&made[..], &[answered("zed")]].concat();
        assert_eq!(line(&by_zed), open.replace("not answered", "Yes, by zed"));
        let learned = json!({ "is": "learned", "ask": 4 });
        let always = [&made[..], &[learned, answered("policy")]].concat();
        let answer = "Yes, always, by policy: by rule 1";
        assert_eq!(line(&always), open.replace("not answered", answer));
        // A call that was only requested is not rendered as a call.
        assert_eq!(line(&[asked, answered("zed")]), "- **ask** `?`: Yes, by zed");
    }

    #[test]
    fn echoed_prompt_is_rendered_once() {
        let prompt = json!([{ "type": "text", "text": "Do it" }]);
        let prompted = json!({ "is": "prompted", "turn": 1, "by": "zed",
                               "frame": { "params": { "prompt": prompt } } });
        let echo = [chunk("user_message_chunk", "Do "), chunk("user_message_chunk", "it")];
        let rendered = markdown(&[&[prompted][..], &echo].concat());
        assert_eq!(rendered.matches("> Do it").count(), 1, "{rendered}");
        let other = markdown(&[chunk("user_message_chunk", "And <this>")]);
        assert_eq!(other, "\n> And \\<this>\n");
    }

    #[test]
    fn late_message_is_marked() {
        let mut late = chunk("agent_message_chunk", "By the way");
        late["late"] = json!(true);
        assert_eq!(markdown(&[late]), "\n*Received after the end of the turn:*\n\nBy the way\n");
    }

    #[test]
    fn interruption_is_named_once() {
        let error = json!({ "message": "interrupted: the daemon ended during the turn" });
        let ended = json!({ "is": "ended", "turn": 2, "how": "interrupted", "answer": error });
        assert_eq!(
            markdown(&[ended]),
            "\n*Turn 2 interrupted: the daemon ended during the turn*\n"
        );
    }

    #[test]
    fn plan_is_rendered_once_in_its_last_state() {
        let plan = |status: &str| {
            let entries = json!([{ "content": "look", "status": status }, { "content": "leap" }]);
            agent_update(&json!({ "sessionUpdate": "plan", "entries": entries }))
        };
        let text = chunk("agent_message_chunk", "Go.");
        let rendered = markdown(&[plan("in_progress"), text, plan("completed")]);
        assert_eq!(rendered, "\n* [x] look\n* [ ] leap\n\nGo.\n");
    }

    proptest! {
        #[test]
        fn no_event_leaves_a_block_open(events in vec(any_event(), 0..12)) {
            let mut transcript = MarkdownTranscript::default();
            for event in &events {
                let Some(event) = build_event_if_known(event) else { continue };
                let rendered = transcript.fold_event(&event);
                prop_assert!(is_closed(&rendered), "{}", rendered);
            }
            let rendered = transcript.finish();
            prop_assert!(is_closed(&rendered), "{}", rendered);
        }
    }
}
