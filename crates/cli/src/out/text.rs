//! A session as text: what the agent says is data, what it does are short lines beside it.

use super::{BRIGHT, DIM, Out, WARNING, clean, one_line, paint};
use crate::report::Failure;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the short lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Beside the data: only the agent's words are what was asked for.
    Stderr,
    /// They are part of the data, as in a log.
    Stdout,
    /// Nowhere, and the words only at the end.
    Nowhere,
}

const LINE_CHARS_MAX: usize = 160;
const STDERR_LINES_MAX: usize = 5;

/// Tells one session as it goes.
#[derive(Debug)]
pub(crate) struct Transcript {
    out: Out,
    side: Side,
    /// A thought that has not reached the end of its line.
    thought: String,
    tools: BTreeMap<String, Tool>,
    /// The names of the options of each ask, by number and id.
    options: BTreeMap<(u64, String), String>,
    /// The agent's latest words without a tool call between them.
    words: String,
    words_are_over: bool,
    /// Lines of a user's message begin with a mark.
    in_user_line: bool,
}

/// A tool call, as far as it is known.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tool {
    pub(crate) title: String,
    pub(crate) kind: String,
}

impl Transcript {
    pub(crate) fn new(out: &Out, side: Side) -> Transcript {
        Transcript {
            out: out.clone(),
            side,
            thought: String::new(),
            tools: BTreeMap::new(),
            options: BTreeMap::new(),
            words: String::new(),
            words_are_over: false,
            in_user_line: false,
        }
    }

    /// What is known of a tool call that an ask names, put together with what the ask says itself.
    pub(crate) fn tool(&mut self, call: &Value) -> Tool {
        let id = text(call, "toolCallId");
        let known = self.tools.get(id).cloned().unwrap_or_default();
        let either = |said: &str, known: String| {
            if said.is_empty() { known } else { said.to_owned() }
        };
        let tool = Tool {
            title: either(text(call, "title"), known.title),
            kind: either(text(call, "kind"), known.kind),
        };
        self.tools.insert(id.to_owned(), tool.clone());
        tool
    }

    /// The agent's latest words, without those before its last tool call.
    pub(crate) fn final_words(&self) -> &str {
        &self.words
    }

    /// A new turn begins: its words are not those of the last one.
    pub(crate) fn begin(&mut self) {
        self.words_are_over = true;
    }

    /// Everything was said: no line stays open.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.end_thought()?;
        self.in_user_line = false;
        self.out.end_line()
    }

    /// One `session/update`.
    pub(crate) fn update(&mut self, update: &Value) -> Result<(), Failure> {
        let kind = text(update, "sessionUpdate");
        if kind != "agent_thought_chunk" {
            self.end_thought()?;
        }
        if kind != "user_message_chunk" && self.in_user_line {
            self.in_user_line = false;
            self.out.end_line()?;
        }
        match kind {
            "agent_message_chunk" => self.say(&words_of(&update["content"])),
            "user_message_chunk" => self.repeat(&words_of(&update["content"])),
            "agent_thought_chunk" => self.think(&words_of(&update["content"])),
            "tool_call" | "tool_call_update" => self.work(kind, update),
            "plan" => self.plan(update),
            "current_mode_update" => self.detail("mode", text(update, "currentModeId")),
            "session_info_update" => self.detail("title", text(update, "title")),
            _ => self.detail("heard", kind),
        }
    }

    fn say(&mut self, words: &str) -> Result<(), Failure> {
        if self.words_are_over {
            self.words_are_over = false;
            self.words.clear();
            if self.side != Side::Nowhere {
                self.out.end_line()?;
            }
        }
        self.words.push_str(words);
        if self.side == Side::Nowhere { Ok(()) } else { self.out.data(words) }
    }

    fn repeat(&mut self, words: &str) -> Result<(), Failure> {
        let mut lines = words.split('\n');
        if self.side == Side::Nowhere {
            return Ok(());
        }
        if !self.in_user_line {
            self.in_user_line = true;
            self.out.end_line()?;
            self.user_line(lines.next().unwrap_or_default())?;
        }
        lines.try_for_each(|line| self.user_line(line))
    }

    fn user_line(&self, line: &str) -> Result<(), Failure> {
        let line = paint(BRIGHT, format!("> {}", clean(line)));
        self.print(&line)
    }

    fn think(&mut self, words: &str) -> Result<(), Failure> {
        self.thought.push_str(words);
        while let Some((line, rest)) = self.thought.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.thought = rest;
            self.line("think", &line)?;
        }
        Ok(())
    }

    fn end_thought(&mut self) -> Result<(), Failure> {
        let thought = std::mem::take(&mut self.thought);
        self.line("think", &thought)
    }

    fn work(&mut self, kind: &str, update: &Value) -> Result<(), Failure> {
        self.words_are_over = true;
        let tool = self.tool(update);
        match (kind, text(update, "status")) {
            (_, "failed") => self.line("tool", &format!("{}: failed", tool.title)),
            ("tool_call", _) => self.line("tool", &tool.title),
            (_, "completed") => self.detail("tool", &format!("{}: done", tool.title)),
            _ => Ok(()),
        }
    }

    fn plan(&mut self, update: &Value) -> Result<(), Failure> {
        let entries = update["entries"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |entry: &&Value, status: &str| text(entry, "status") == status;
        let done = entries.iter().filter(|it| is(it, "completed")).count();
        let current = entries
            .iter()
            .find(|it| is(it, "in_progress"))
            .or_else(|| entries.iter().find(|it| is(it, "pending")));
        let current = current.map_or("", |it| text(it, "content"));
        self.line("plan", &format!("{done}/{} {current}", entries.len()))
    }

    /// One `_jackfield/…` notice: a fact that ACP has no words for.
    pub(crate) fn notice(&mut self, fact: &Value) -> Result<(), Failure> {
        self.finish()?;
        match text(fact, "is") {
            "opened" => {
                let (agent, cwd) = (text(fact, "agent"), text(fact, "cwd"));
                self.remark(&format!("session opened: {agent} in {cwd}"))
            }
            "bound" => {
                self.remark(&format!("session {} by a new agent process", text(fact, "rung")))
            }
            "cancelled" => match fact["step"].as_u64() {
                Some(0 | 1) | None => self.remark("asked to stop"),
                Some(2) => self.remark("asked to stop again"),
                Some(_) => self.remark("did not stop: its process is ended"),
            },
            "ended" => self.ended(fact),
            "asked" => {
                let title = self.asked(fact);
                self.line("ask", &title)
            }
            "answered" => self.answered(fact),
            "gone" => self.gone(fact),
            "quiet" => self.remark(&format!("quiet: {}", text(fact, "waits"))),
            "slept" => self.remark(&format!("asleep: {}", text(fact, "why"))),
            "closed" => self.remark("session closed"),
            "forked" => {
                let (from, seq) = (text(fact, "from"), fact["seqThere"].as_u64().unwrap_or(0));
                self.remark(&format!("session forked from {from} after event {seq}"))
            }
            "withdrawn" => {
                let (number, why) = (fact["prompt"].as_u64().unwrap_or(0), text(fact, "why"));
                self.remark(&format!("prompt {number} did not run: {why}"))
            }
            "prompted" => {
                self.begin();
                Ok(())
            }
            other => self.detail("heard", other),
        }
    }

    /// Keeps what is asked about and what can be chosen, for when it is answered.
    pub(crate) fn asked(&mut self, fact: &Value) -> String {
        let params = &fact["frame"]["params"];
        let number = fact["ask"].as_u64().unwrap_or(0);
        for option in params["options"].as_array().into_iter().flatten() {
            let (id, name) = (text(option, "optionId"), text(option, "name"));
            self.options.insert((number, id.to_owned()), name.to_owned());
        }
        match text(params, "message") {
            "" => self.tool(&params["toolCall"]).title,
            message => message.to_owned(),
        }
    }

    fn ended(&mut self, fact: &Value) -> Result<(), Failure> {
        let (answer, turn) = (&fact["answer"], fact["turn"].as_u64().unwrap_or(0));
        match (text(fact, "how"), text(answer, "stopReason")) {
            ("stopped", "end_turn") => Ok(()),
            ("stopped", reason) => self.remark(&format!("turn {turn} ended: {reason}")),
            (how, _) => self.remark(&format!("turn {turn} {how}: {}", text(answer, "message"))),
        }
    }

    fn answered(&mut self, fact: &Value) -> Result<(), Failure> {
        let (answer, by) = (&fact["answer"], text(fact, "by"));
        let result = &answer["result"];
        let what = match (text(answer, "void"), text(&result["outcome"], "optionId")) {
            ("", "") if result["action"].is_string() => text(result, "action"),
            ("", "") => "no option chosen",
            ("", option) => {
                let number = fact["ask"].as_u64().unwrap_or(0);
                self.options.get(&(number, option.to_owned())).map_or(option, String::as_str)
            }
            (void, _) => void,
        };
        self.line("ask", &format!("answered by {by}: {what}"))
    }

    fn gone(&mut self, fact: &Value) -> Result<(), Failure> {
        self.remark(&format!("agent ended: {}", text(fact, "status")))?;
        let stderr: Vec<&str> = text(fact, "stderr").lines().collect();
        let tail = stderr.len().saturating_sub(STDERR_LINES_MAX);
        stderr[tail..].iter().try_for_each(|line| self.line("|", line))
    }

    fn remark(&mut self, text: &str) -> Result<(), Failure> {
        self.print(&paint(WARNING, format!("-- {}", one_line(text, LINE_CHARS_MAX))))
    }

    /// A short line about what happens beside the words.
    fn line(&self, word: &str, text: &str) -> Result<(), Failure> {
        let text = one_line(text, LINE_CHARS_MAX);
        if text.is_empty() { Ok(()) } else { self.print(&paint(DIM, format!("{word:<5} {text}"))) }
    }

    /// The same for those who want to know everything.
    fn detail(&self, word: &str, text: &str) -> Result<(), Failure> {
        if self.out.is_verbose() { self.line(word, text) } else { Ok(()) }
    }

    fn print(&self, line: &str) -> Result<(), Failure> {
        match self.side {
            Side::Stdout => return self.out.line(line),
            Side::Stderr => self.out.note(line),
            Side::Nowhere => {}
        }
        Ok(())
    }
}

/// A content block as words.
fn words_of(content: &Value) -> String {
    match text(content, "type") {
        "text" => text(content, "text").to_owned(),
        "resource_link" => format!("[{}]", text(content, "uri")),
        "resource" => format!("[{}]", text(&content["resource"], "uri")),
        other => format!("[{other}]"),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
