//! A session told as it goes, for people: what the agent says, and short lines about what it does.
//! Where they are printed, in which colors and how long they may be is not decided here.

pub(crate) mod facts;

pub use facts::{Tool, by_whom};

use crate::options;
use facts::{Options, Tools, about, last_lines, remark, text, words_of};
use jackfield_events::{EventBody, ReceivedEvent, UserAsked};
use jackfield_protocol::acp::Method;
use serde_json::Value;

/// What to print next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The agent's words as they are: the next may go on in the same line.
    Words(String),
    /// One line of what a user said.
    UserLine(String),
    /// What happens beside the words, in a short line that begins with a word for it.
    Line { word: &'static str, text: String },
    /// The same for those who want to know everything.
    Detail { word: &'static str, text: String },
    /// What happened to the session or to a turn.
    Remark(String),
    /// The agent's words end here, also in the middle of a line.
    EndLine,
}

/// Tells one session: updates and facts go in, in order.
#[derive(Debug, Default)]
pub struct Text {
    /// A thought that has not reached the end of its line.
    thought: String,
    tools: Tools,
    options: Options,
    /// The agent's latest words without a tool call between them.
    words: String,
    words_are_over: bool,
    in_user_message: bool,
}

impl Text {
    /// What is known of a tool call that an ask names, put together with what the ask says itself.
    pub fn tool(&mut self, call: &Value) -> Tool {
        self.tools.learn(call)
    }

    /// The agent's latest words, without those before its last tool call.
    pub fn final_words(&self) -> &str {
        &self.words
    }

    /// One message of the hub: `{"method":…,"params":…}`.
    pub fn message(&mut self, message: &Value) -> Vec<Piece> {
        let params = &message["params"];
        match Method::from_name(text(message, "method")) {
            Some(Method::SessionUpdate) => self.update(&params["update"]),
            Some(Method::ControlTurn | Method::ControlAsk | Method::ControlSession) => {
                self.notice(params)
            }
            _ => Vec::new(),
        }
    }

    /// One `session/update`.
    pub fn update(&mut self, update: &Value) -> Vec<Piece> {
        let kind = text(update, "sessionUpdate");
        let mut told = Vec::new();
        if kind != "agent_thought_chunk" {
            self.end_thought(&mut told);
        }
        if kind != "user_message_chunk" && self.in_user_message {
            self.in_user_message = false;
            told.push(Piece::EndLine);
        }
        let detail = |word, text: &str| Piece::Detail { word, text: text.to_owned() };
        match kind {
            "agent_message_chunk" => self.say(words_of(&update["content"]), &mut told),
            "user_message_chunk" => self.repeat(&words_of(&update["content"]), &mut told),
            "agent_thought_chunk" => self.think(&words_of(&update["content"]), &mut told),
            "tool_call" | "tool_call_update" => told.extend(self.work(kind, update)),
            "plan" => told.push(plan(update)),
            "current_mode_update" => told.push(detail("mode", text(update, "currentModeId"))),
            "session_info_update" => told.push(detail("title", text(update, "title"))),
            "available_commands_update" => told.push(detail("menu", &commands(update))),
            "config_option_update" => {
                let options = options::described(update).into_iter();
                told.extend(options.map(|(name, value)| detail("set", &format!("{name} {value}"))));
            }
            _ => told.push(detail("heard", kind)),
        }
        told
    }

    /// The params of a `_jackfield/…` notification. An event of a newer daemon is named, not explained.
    fn notice(&mut self, params: &Value) -> Vec<Piece> {
        if let Ok(event) = ReceivedEvent::from_value(params.clone()) {
            return self.event(&event);
        }
        let mut told = self.finish();
        told.push(Piece::Detail { word: "heard", text: text(params, "is").to_owned() });
        told
    }

    /// One event that ACP has no message for.
    pub fn event(&mut self, event: &ReceivedEvent) -> Vec<Piece> {
        let mut told = self.finish();
        match &event.body {
            // The words of the last turn are over.
            EventBody::Prompted(_) => self.words_are_over = true,
            EventBody::Asked(asked) => {
                let text = self.asked(asked);
                told.push(Piece::Line { word: "ask", text });
                told.extend(asked.call.iter().flat_map(about));
            }
            EventBody::Answered(answered) => {
                let by = by_whom(&answered.by, answered.peer.as_ref());
                let chosen = self.options.chosen(answered);
                told.push(Piece::Line { word: "ask", text: format!("answered by {by}: {chosen}") });
            }
            EventBody::Ended(_) => told.extend(remark(&event.body).map(Piece::Remark)),
            EventBody::Gone(exited) => {
                told.extend(remark(&event.body).map(Piece::Remark));
                let line = |it: &str| Piece::Line { word: "|", text: it.to_owned() };
                told.extend(last_lines(&exited.stderr).into_iter().map(line));
            }
            body => told.push(match remark(body) {
                Some(remark) => Piece::Remark(remark),
                None => Piece::Detail { word: "heard", text: body.kind().to_string() },
            }),
        }
        told
    }

    /// Remembers the options for the answer; returns what is asked.
    pub fn asked(&mut self, asked: &UserAsked<Value>) -> String {
        self.options.learn(asked);
        let params = &asked.frame["params"];
        match text(params, "message") {
            "" => self.tool(&params["toolCall"]).title,
            message => message.to_owned(),
        }
    }

    /// Everything was said: no line stays open.
    pub fn finish(&mut self) -> Vec<Piece> {
        let mut told = Vec::new();
        self.end_thought(&mut told);
        self.in_user_message = false;
        told.push(Piece::EndLine);
        told
    }

    fn say(&mut self, words: String, told: &mut Vec<Piece>) {
        if self.words_are_over {
            self.words_are_over = false;
            self.words.clear();
            told.push(Piece::EndLine);
        }
        self.words.push_str(&words);
        told.push(Piece::Words(words));
    }

    fn repeat(&mut self, words: &str, told: &mut Vec<Piece>) {
        if !self.in_user_message {
            self.in_user_message = true;
            told.push(Piece::EndLine);
        }
        told.extend(words.split('\n').map(|it| Piece::UserLine(it.to_owned())));
    }

    fn think(&mut self, words: &str, told: &mut Vec<Piece>) {
        self.thought.push_str(words);
        while let Some(end) = self.thought.find('\n') {
            let line: String = self.thought.drain(..=end).collect();
            told.push(Piece::Line { word: "think", text: line.trim_end().to_owned() });
        }
    }

    fn end_thought(&mut self, told: &mut Vec<Piece>) {
        let text = std::mem::take(&mut self.thought);
        if !text.is_empty() {
            told.push(Piece::Line { word: "think", text });
        }
    }

    fn work(&mut self, kind: &str, update: &Value) -> Option<Piece> {
        self.words_are_over = true;
        let title = self.tool(update).title;
        match (kind, text(update, "status")) {
            (_, "failed") => Some(Piece::Line { word: "tool", text: format!("{title}: failed") }),
            ("tool_call", _) => Some(Piece::Line { word: "tool", text: title }),
            (_, "completed") => {
                Some(Piece::Detail { word: "tool", text: format!("{title}: done") })
            }
            _ => None,
        }
    }
}

fn plan(update: &Value) -> Piece {
    let entries = update["entries"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |entry: &&Value, status: &str| text(entry, "status") == status;
    let done = entries.iter().filter(|it| is(it, "completed")).count();
    let current = entries
        .iter()
        .find(|it| is(it, "in_progress"))
        .or_else(|| entries.iter().find(|it| is(it, "pending")));
    let current = current.map_or("", |it| text(it, "content"));
    Piece::Line { word: "plan", text: format!("{done}/{} {current}", entries.len()) }
}

/// What can be typed after a slash.
fn commands(update: &Value) -> String {
    let commands = update["availableCommands"].as_array().into_iter().flatten();
    let names: Vec<String> = commands.map(|it| format!("/{}", text(it, "name"))).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::received;
    use proptest::prelude::*;
    use serde_json::json;

    fn chunk(kind: &str, words: &str) -> Value {
        json!({ "sessionUpdate": kind, "content": { "type": "text", "text": words } })
    }

    fn line(word: &'static str, text: &str) -> Piece {
        Piece::Line { word, text: text.to_owned() }
    }

    /// What is told of these updates, without the ends of lines.
    fn told(text: &mut Text, updates: &[Value]) -> Vec<Piece> {
        let told = updates.iter().flat_map(|it| text.update(it)).collect::<Vec<_>>();
        told.into_iter().filter(|it| *it != Piece::EndLine).collect()
    }

    #[test]
    fn a_thought_is_told_by_the_line_and_its_rest_before_anything_else() {
        let think = |words| chunk("agent_thought_chunk", words);
        let updates = [think("a b"), think(" c\nd\ne"), chunk("agent_message_chunk", "So.")];
        let pieces = told(&mut Text::default(), &updates);
        let words = Piece::Words("So.".into());
        assert_eq!(pieces, [line("think", "a b c"), line("think", "d"), line("think", "e"), words]);
    }

    #[test]
    fn who_wants_to_know_hears_of_commands_and_options() {
        let detail = |word, text: &str| Piece::Detail { word, text: text.to_owned() };
        let menu =
            json!([{ "name": "compact", "description": "" }, { "name": "web", "input": {} }]);
        let menu =
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": menu });
        let options =
            json!([{ "id": "model", "currentValue": "a", "options": [{ "value": "a" }] }]);
        let set = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
        let pieces = told(&mut Text::default(), &[menu, set]);
        assert_eq!(pieces, [detail("menu", "/compact /web"), detail("set", "model a (of a)")]);
    }

    #[test]
    fn the_final_words_are_those_behind_the_last_tool_call() {
        let mut text = Text::default();
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls" });
        let failed =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed" });
        let say = |words| chunk("agent_message_chunk", words);
        let pieces = told(&mut text, &[say("I look."), call, failed, say("No "), say("luck.")]);
        assert_eq!(pieces[1..3], [line("tool", "ls"), line("tool", "ls: failed")]);
        assert_eq!(text.final_words(), "No luck.");
        text.event(&received(&json!({ "is": "prompted" })));
        text.update(&say("Again."));
        assert_eq!(text.final_words(), "Again.");
    }

    #[test]
    fn an_answer_is_told_by_the_name_of_the_option() {
        let mut text = Text::default();
        let options = json!([{ "optionId": "o1", "name": "Allow once" }]);
        let call = json!({ "toolCallId": "t", "title": "rm x" });
        let frame = json!({ "params": { "toolCall": call, "options": options } });
        let asked = text.event(&received(&json!({ "is": "asked", "ask": 3, "frame": frame })));
        assert_eq!(asked.last(), Some(&line("ask", "rm x")));
        let outcome = json!({ "result": { "outcome": { "optionId": "o1" } } });
        let answered = json!({ "is": "answered", "ask": 3, "by": "zed", "answer": outcome });
        let answered = text.event(&received(&answered));
        assert_eq!(answered.last(), Some(&line("ask", "answered by zed: Allow once")));
    }

    #[test]
    fn process_of_an_answer_and_of_a_refusal_is_told_beside_the_name() {
        let peer = json!({ "pid": 7, "uid": 1000, "exe": "/bin/zed" });
        let answered = json!({ "is": "answered", "ask": 3, "by": "zed", "peer": peer,
                               "answer": { "void": "x" } });
        let answered = Text::default().event(&received(&answered));
        let Some(Piece::Line { text, .. }) = answered.last() else { panic!("{answered:?}") };
        assert!(text.starts_with("answered by zed, pid 7, uid 1000, /bin/zed: "), "{text}");
        let refused = json!({ "is": "refused", "operation": "_jackfield/stop", "by": "zed",
                              "why": "below an agent", "peer": { "uid": 0 } });
        let expected = "refused `_jackfield/stop` of zed, uid 0: below an agent";
        let refused = Text::default().event(&received(&refused));
        assert_eq!(refused.last(), Some(&Piece::Remark(expected.to_owned())));
    }

    #[test]
    fn a_good_end_is_not_worth_a_word_and_a_bad_one_is() {
        let end = |how: &str, answer: Value| {
            let fact = json!({ "is": "ended", "turn": 2, "how": how, "answer": answer });
            Text::default().event(&received(&fact))[1..].to_vec()
        };
        assert_eq!(end("stopped", json!({ "stopReason": "end_turn" })), []);
        let remark = |it: &str| vec![Piece::Remark(it.to_owned())];
        let cancelled = end("stopped", json!({ "stopReason": "cancelled" }));
        assert_eq!(cancelled, remark("turn 2 ended: cancelled"));
        let failed = end("failed", json!({ "message": "no key" }));
        assert_eq!(failed, remark("turn 2 failed: no key"));
    }

    proptest! {
        #[test]
        fn words_are_told_whole_however_they_are_cut(
            words in proptest::collection::vec("[a-z \n]{0,6}", 0..12),
            aside in "agent_thought_chunk|user_message_chunk|plan|tool_call",
        ) {
            let mut text = Text::default();
            let mut said = String::new();
            for it in &words {
                for update in [chunk("agent_message_chunk", it), chunk(&aside, "x\ny")] {
                    for piece in text.update(&update) {
                        if let Piece::Words(words) = piece {
                            said.push_str(&words);
                        }
                    }
                }
            }
            prop_assert_eq!(said, words.concat());
        }
    }
}
