//! What the views for people say alike: which words a block has, how a fact is put into a sentence,
//! what a tool call is called, and which option an answer chose.

use super::Piece;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A content block as words.
pub(crate) fn words_of(content: &Value) -> String {
    match text(content, "type") {
        "text" => text(content, "text").to_owned(),
        "resource_link" => format!("[{}]", text(content, "uri")),
        "resource" => format!("[{}]", text(&content["resource"], "uri")),
        other => format!("[{other}]"),
    }
}

/// What happened to a session or a turn, as a sentence; nothing for what is told in other ways or
/// not worth a word.
pub(crate) fn remark(fact: &Value) -> Option<String> {
    let said = |name: &str| text(fact, name);
    let number = |name: &str| fact[name].as_u64().unwrap_or(0);
    let remark = match said("is") {
        "opened" => format!("session opened: {} in {}", said("agent"), said("cwd")),
        "forked" => {
            let (from, seq) = (said("from"), number("seqThere"));
            format!("session forked from {from} after event {seq}")
        }
        "moved" => {
            let (from, why) = (said("from"), said("why"));
            match said("to") {
                "" => format!("session moved from {from}: {why}"),
                to => format!("session moved from {from} to {to}: {why}"),
            }
        }
        "bound" => format!("session {} by a new agent process", said("rung")),
        "withdrawn" => format!("prompt {} did not run: {}", number("prompt"), said("why")),
        "cancelled" => match fact["step"].as_u64() {
            Some(0 | 1) | None => "asked to stop".to_owned(),
            Some(2) => "asked to stop again".to_owned(),
            Some(_) => "did not stop: its process is ended".to_owned(),
        },
        "ended" => {
            let (answer, turn) = (&fact["answer"], number("turn"));
            match (said("how"), text(answer, "stopReason")) {
                ("stopped", "end_turn") => return None,
                ("stopped", reason) => format!("turn {turn} ended: {reason}"),
                (how, _) => format!("turn {turn} {how}: {}", text(answer, "message")),
            }
        }
        "refused" => {
            format!("refused `{}` of {}: {}", said("operation"), by_whom(fact), said("why"))
        }
        "leftOut" => format!(
            "left out {} of the agent: {} bytes, and the limit is {}",
            said("what"),
            number("bytes"),
            number("limit")
        ),
        "served" => served(fact),
        "gone" => format!("agent ended: {}", said("status")),
        "quiet" => format!("quiet: {}", said("waits")),
        "slept" => format!("asleep: {}", said("why")),
        "closed" => "session closed".to_owned(),
        _ => return None,
    };
    Some(remark)
}

/// The name that a client gives itself, and what the operating system says about its process.
pub fn by_whom(fact: &Value) -> String {
    let peer = &fact["peer"];
    let number = |name: &str| peer[name].as_u64().map(|it| format!("{name} {it}"));
    let exe = peer["exe"].as_str().map(str::to_owned);
    let parts = [Some(text(fact, "by").to_owned()), number("pid"), number("uid"), exe];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What the daemon itself did for the agent, or why not.
fn served(fact: &Value) -> String {
    let call = &fact["call"];
    let args = call["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let what = match text(call, "method") {
        "fs/read_text_file" => format!("read {}", text(call, "path")),
        "fs/write_text_file" => format!("write {}", text(call, "path")),
        _ => {
            let words: Vec<&str> = std::iter::once(text(call, "command")).chain(args).collect();
            format!("run `{}`", words.join(" "))
        }
    };
    match (text(fact, "how"), text(fact, "why")) {
        ("done", _) => format!("the daemon did for the agent: {what}"),
        ("denied", why) => format!("the daemon refused the agent: {what}: {why}"),
        ("failed", why) => format!("the daemon could not do for the agent: {what}: {why}"),
        _ => format!("the agent ended while the daemon was to: {what}"),
    }
}

/// The commands and paths of a request, as the policy read them.
pub(crate) fn about(call: &Value) -> impl Iterator<Item = Piece> {
    let parts = [("runs", "commands"), ("mcp", "mcp"), ("path", "paths")];
    parts.into_iter().flat_map(move |(word, member)| {
        let texts = call[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(move |it| Piece::Line { word, text: it.to_owned() })
    })
}

/// What an agent printed last, before it ended.
pub(crate) fn last_lines(gone: &Value) -> Vec<&str> {
    const LINES_MAX: usize = 5;
    let lines: Vec<&str> = text(gone, "stderr").lines().collect();
    let tail = lines.len().saturating_sub(LINES_MAX);
    lines[tail..].to_vec()
}

/// A tool call, as far as it is known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tool {
    pub title: String,
    pub kind: String,
}

/// The tool calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct Tools(BTreeMap<String, Tool>);

impl Tools {
    /// What is known of a call, put together with what is said of it now.
    pub(crate) fn learn(&mut self, call: &Value) -> Tool {
        let tool = self.0.entry(text(call, "toolCallId").to_owned()).or_default();
        for (known, said) in [(&mut tool.title, "title"), (&mut tool.kind, "kind")] {
            let said = text(call, said);
            if !said.is_empty() {
                said.clone_into(known);
            }
        }
        tool.clone()
    }
}

/// The names of the options of each ask, by number and id.
#[derive(Debug, Default)]
pub(crate) struct Options(BTreeMap<(u64, String), String>);

impl Options {
    /// Keeps what can be chosen, for when it is answered.
    pub(crate) fn learn(&mut self, asked: &Value) {
        let number = asked["ask"].as_u64().unwrap_or(0);
        for option in asked["frame"]["params"]["options"].as_array().into_iter().flatten() {
            let (id, name) = (text(option, "optionId"), text(option, "name"));
            self.0.insert((number, id.to_owned()), name.to_owned());
        }
    }

    /// What was answered, in the words of the one who asked.
    pub(crate) fn chosen<'a>(&'a self, answered: &'a Value) -> &'a str {
        let answer = &answered["answer"];
        let result = &answer["result"];
        match (text(answer, "void"), text(&result["outcome"], "optionId")) {
            ("", "") if result["action"].is_string() => text(result, "action"),
            ("", "") => "no option chosen",
            ("", option) => {
                let number = answered["ask"].as_u64().unwrap_or(0);
                self.0.get(&(number, option.to_owned())).map_or(option, String::as_str)
            }
            (void, _) => void,
        }
    }
}
