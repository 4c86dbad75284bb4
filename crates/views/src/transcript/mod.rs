//! A session as Markdown, to be read where code is: what users said as quotes, the agent's words as
//! they are, its thoughts folded, each tool call in a line with what it changed and printed, what was
//! asked and who answered, how each turn ended, and what all of it has used.
//!
//! **Invariant:** nothing that anyone said changes how the rest is read: fences and HTML end where
//! their words do. Nothing in it is loaded or run by a viewer.

mod call;
mod contain;
#[cfg(test)]
mod corpus;
mod diff;
mod html;
mod item;
mod links;
mod markdown;
mod section;
#[cfg(test)]
mod strategy;

use crate::{
    Usage,
    story::Outcome,
    text::facts::{Options, by_whom, last_lines, remark, text, words_of},
    usage::{HEADINGS, seconds},
};
use item::{Ask, quoted};
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, TurnEnded, TurnStarted, UnaskedCall, UserAnswered,
    UserAsked,
};
use jackfield_protocol::acp::Method;
use markdown::{code, words};
use section::Section;
use serde_json::Value;

/// What stands at the top.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    pub session: String,
    pub title: Option<String>,
    pub agent: String,
    pub cwd: String,
    pub opened_at: String,
}

/// Folded from the facts of a session, in order. What a fact completes comes out as Markdown: a turn
/// when it is over.
#[derive(Debug, Default)]
pub struct Transcript {
    usage: Usage,
    options: Options,
    /// The running turn, or what came after the last.
    section: Section,
    /// The prompt of the running turn: some agents say it back.
    prompt: String,
    /// That the turn was over by now was told.
    late: bool,
}

impl Transcript {
    pub fn header(about: &About) -> String {
        let title = about.title.as_deref().map(words).filter(|it| !it.is_empty());
        let title = title.unwrap_or_else(|| words(&about.session));
        let mut header = format!("# {title}\n\n");
        let facts = [
            ("agent", &about.agent),
            ("directory", &about.cwd),
            ("opened", &about.opened_at),
            ("session", &about.session),
        ];
        for (name, value) in facts.into_iter().filter(|it| !it.1.is_empty()) {
            header.extend(["- ", name, ": ", &code(value), "\n"]);
        }
        header
    }

    pub fn fold(&mut self, event: &ReceivedEvent) -> String {
        self.usage.fold(event);
        match &event.body {
            EventBody::Prompted(started) => return self.begin(started),
            EventBody::Ended(ended) => return self.end(ended, &event.body),
            EventBody::Said(message) => self.said(message),
            EventBody::Asked(asked) => self.asked(asked),
            EventBody::Answered(answered) => self.answered(answered),
            EventBody::Learned(learned) => {
                if let Some(ask) = self.section.asked(learned.ask) {
                    ask.always = true;
                }
            }
            EventBody::Configured(changed) => {
                if let Some(setting) = configured(&changed.frame) {
                    self.section.remark(setting);
                }
            }
            EventBody::Unasked(UnaskedCall { call }) => {
                let title = text(call, "title");
                self.section.remark(format!("done without asking, against a rule: {title}"));
            }
            EventBody::Gone(exited) => {
                self.section.remark(remark(&event.body).unwrap_or_default());
                self.section.print(&last_lines(&exited.stderr));
            }
            EventBody::Bound(_)
            | EventBody::Served(_)
            | EventBody::Refused(_)
            | EventBody::LeftOut(_)
            | EventBody::Cancelled(_)
            | EventBody::Forked(_)
            | EventBody::Moved(_)
            | EventBody::Withdrawn(_)
            | EventBody::Closed => {
                self.section.remark(remark(&event.body).unwrap_or_default());
            }
            EventBody::Opened(_)
            | EventBody::Imported(_)
            | EventBody::Queued(_)
            | EventBody::Quiet(_)
            | EventBody::Slept(_) => {}
        }
        String::new()
    }

    /// There are no more: what is left, and the sum of it all.
    pub fn finish(&mut self) -> String {
        let mut shown = self.take();
        self.tell_usage(&mut shown);
        shown
    }

    fn begin(&mut self, started: &TurnStarted<Value>) -> String {
        let mut shown = self.take();
        let blocks = started.frame["params"]["prompt"].as_array();
        let blocks: Vec<String> = blocks.into_iter().flatten().map(words_of).collect();
        self.prompt = blocks.join("\n");
        self.late = false;
        let by = Some(words(&started.by)).filter(|it| !it.is_empty());
        let by = by.map(|it| format!(", by {it}")).unwrap_or_default();
        block(&mut shown, &format!("## Turn {}{by}", started.turn));
        block(&mut shown, &quoted(&self.prompt));
        shown
    }

    fn end(&mut self, ended: &TurnEnded<Value>, body: &EventBody<Value>) -> String {
        let mut shown = self.take();
        let TurnEnded { turn, outcome } = ended;
        let how = match (Outcome::of(outcome).failure, remark(body)) {
            (Some(failure), _) => format!("turn {turn} {}: {}", outcome.name(), failure.message),
            (None, Some(remark)) => remark,
            (None, None) => format!("turn {turn} ended: end_turn"),
        };
        let ms = self.usage.turns.iter().rfind(|it| it.turn == *turn).and_then(|it| it.ms);
        let time = ms.map(|it| format!(" ({})", seconds(it))).unwrap_or_default();
        block(&mut shown, &item::remark(&format!("{how}{time}")));
        shown
    }

    fn said(&mut self, message: &AgentMessage<Value>) {
        let update = &message.frame["params"]["update"];
        let shown = ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];
        let is_late = message.late && shown.contains(&text(update, "sessionUpdate"));
        if is_late && !self.late {
            self.late = true;
            self.section.remark("said after the turn had ended:".to_owned());
        }
        self.section.update(update);
    }

    fn asked(&mut self, asked: &UserAsked<Value>) {
        self.options.learn(asked);
        let params = &asked.frame["params"];
        let call = &params["toolCall"];
        let ask = Ask {
            call: call.is_object().then(|| text(call, "toolCallId").to_owned()),
            message: text(params, "message").to_owned(),
            why: asked.decision.as_ref().map(|it| text(it, "why").to_owned()).unwrap_or_default(),
            ..Ask::default()
        };
        self.section.ask(asked.ask, ask, call);
    }

    fn answered(&mut self, answered: &UserAnswered<Value>) {
        let by = by_whom(&answered.by, answered.peer.as_ref());
        let chosen = self.options.chosen(answered).to_owned();
        match self.section.asked(answered.ask) {
            Some(ask) => ask.answer = Some((by, chosen)),
            None => self.section.remark(format!("an ask was answered by {by}: {chosen}")),
        }
    }

    /// What is over, as Markdown.
    fn take(&mut self) -> String {
        let mut shown = String::new();
        for it in std::mem::take(&mut self.section).render(&self.prompt) {
            block(&mut shown, &it);
        }
        shown
    }

    /// The same table as `sessions show` has.
    fn tell_usage(&self, shown: &mut String) {
        if self.usage.turns.is_empty() {
            return;
        }
        let row = |cells: [String; 8]| format!("| {} |\n", cells.map(|it| words(&it)).join(" | "));
        let mut table = row(HEADINGS.map(str::to_lowercase));
        table.push_str(&row(HEADINGS.map(|_| "---".to_owned())));
        table.extend(self.usage.turns.iter().map(|it| row(it.cells())));
        table.push_str(&row(self.usage.sum().cells()));
        block(shown, "## Usage");
        block(shown, table.trim_end());
        if let Some(context) = self.usage.context {
            block(shown, &format!("Context: {context}"));
        }
    }
}

/// Puts a block behind the others, a blank line before it.
fn block(shown: &mut String, block: &str) {
    if !block.is_empty() {
        shown.extend(["\n", block, "\n"]);
    }
}

/// A setting that was changed.
fn configured(frame: &Value) -> Option<String> {
    let params = &frame["params"];
    let (what, to) = match Method::from_name(text(frame, "method"))? {
        Method::SessionSetMode => ("mode", text(params, "modeId").to_owned()),
        Method::SessionSetModel => ("model", text(params, "modelId").to_owned()),
        Method::SessionSetConfigOption => {
            let value = &params["value"];
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (text(params, "configId"), value)
        }
        _ => return None,
    };
    Some(format!("{what}: {to}"))
}

#[cfg(test)]
mod tests {
    use super::{
        contain::is_whole,
        strategy::{chunk, fact, said},
        *,
    };
    use crate::test_events::{received, received_any};
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;

    fn markdown(facts: &[Value]) -> String {
        let mut transcript = Transcript::default();
        let mut shown: String = facts.iter().map(|it| transcript.fold(&received(it))).collect();
        shown.push_str(&transcript.finish());
        shown
    }

    #[test]
    fn who_chose_what_stands_in_the_line_of_the_call() {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "rm x" });
        let options = json!([{ "optionId": "1", "name": "Yes" }]);
        let params = json!({ "toolCall": { "toolCallId": "t" }, "options": options });
        let answer = json!({ "result": { "outcome": { "optionId": "1" } } });
        let asked = json!({ "is": "asked", "ask": 4, "frame": { "params": params },
                            "decision": { "why": "by rule 1" } });
        let answered = |by: &str| json!({ "is": "answered", "ask": 4, "by": by, "answer": answer });
        let line = |facts: &[Value]| markdown(facts).trim().to_owned();
        let made = [said(&call), asked.clone()];
        let open = "- **tool** `rm x`: asked (not answered), no end was told";
        assert_eq!(line(&made), open);
        let by_zed = [&made[..], &[answered("zed")]].concat();
        assert_eq!(line(&by_zed), open.replace("not answered", "Yes, by zed"));
        let learned = json!({ "is": "learned", "ask": 4 });
        let always = [&made[..], &[learned, answered("policy")]].concat();
        let settled = "Yes, and from now on, by policy: by rule 1";
        assert_eq!(line(&always), open.replace("not answered", settled));
        // What is only asked about is not a call.
        assert_eq!(line(&[asked, answered("zed")]), "- **ask** `?`: Yes, by zed");
    }

    #[test]
    fn a_prompt_that_is_said_back_is_shown_once() {
        let prompt = json!([{ "type": "text", "text": "Do it" }]);
        let prompted = json!({ "is": "prompted", "turn": 1, "by": "zed",
                               "frame": { "params": { "prompt": prompt } } });
        let back = [chunk("user_message_chunk", "Do "), chunk("user_message_chunk", "it")];
        let shown = markdown(&[&[prompted][..], &back].concat());
        assert_eq!(shown.matches("> Do it").count(), 1, "{shown}");
        let other = markdown(&[chunk("user_message_chunk", "And <this>")]);
        assert_eq!(other, "\n> And \\<this>\n");
    }

    #[test]
    fn what_comes_after_the_end_is_said_to() {
        let mut late = chunk("agent_message_chunk", "By the way");
        late["late"] = json!(true);
        assert_eq!(markdown(&[late]), "\n*Said after the turn had ended:*\n\nBy the way\n");
    }

    #[test]
    fn a_plan_is_told_once_as_it_was_at_last() {
        let plan = |status: &str| {
            let entries = json!([{ "content": "look", "status": status }, { "content": "leap" }]);
            said(&json!({ "sessionUpdate": "plan", "entries": entries }))
        };
        let words = chunk("agent_message_chunk", "Go.");
        let shown = markdown(&[plan("in_progress"), words, plan("completed")]);
        assert_eq!(shown, "\n* [x] look\n* [ ] leap\n\nGo.\n");
    }

    proptest! {
        #[test]
        fn whatever_is_said_nothing_stays_open(facts in vec(fact(), 0..12)) {
            let mut transcript = Transcript::default();
            for fact in &facts {
                let Some(event) = received_any(fact) else { continue };
                let shown = transcript.fold(&event);
                prop_assert!(is_whole(&shown), "{}", shown);
            }
            let shown = transcript.finish();
            prop_assert!(is_whole(&shown), "{}", shown);
        }
    }
}
