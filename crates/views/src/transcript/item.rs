//! What a part of a transcript consists of, each as Markdown.

use super::{
    call::Call,
    contain::contained,
    markdown::{code, fenced, plain, prefixed, shortened, words},
};
use crate::text::facts::text;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) enum Item {
    /// What the agent said, in pieces of one message.
    Words {
        message: String,
        text: String,
    },
    Thought(String),
    /// What a user said, as the agent tells it.
    User(String),
    Call(Box<Call>),
    Plan(Value),
    Ask(Ask),
    /// What happened, in a sentence.
    Remark(String),
    /// What an agent printed outside the protocol.
    Printed(String),
}

/// What the agent wanted to know, and what it was told.
#[derive(Debug, Default)]
pub(super) struct Ask {
    /// The tool call that it is about, if any.
    pub(super) call: Option<String>,
    /// The question, if it is not that.
    pub(super) message: String,
    /// What a rule says to it, in words.
    pub(super) why: String,
    /// By whom, and what.
    pub(super) answer: Option<(String, String)>,
    /// The answer stands for all that are like it.
    pub(super) always: bool,
}

/// Calls and the asks about them, by the ids of the calls.
#[derive(Debug, Default)]
pub(super) struct Among<'a> {
    calls: BTreeMap<&'a str, &'a Call>,
    asks: BTreeMap<&'a str, Vec<&'a Ask>>,
}

impl<'a> Among<'a> {
    pub(super) fn of(items: &'a [Item]) -> Among<'a> {
        let mut among = Among::default();
        for item in items {
            match item {
                Item::Call(call) => drop(among.calls.insert(&call.id, call)),
                Item::Ask(ask @ Ask { call: Some(id), .. }) => {
                    among.asks.entry(id).or_default().push(ask);
                }
                _ => {}
            }
        }
        among
    }
}

impl Item {
    /// Markdown without a newline at its end; nothing if there is nothing to show.
    pub(super) fn render(&self, among: &Among<'_>) -> String {
        match self {
            Item::Words { text, .. } => contained(&plain(text)),
            Item::Thought(text) => match contained(&plain(text)) {
                text if text.is_empty() => text,
                text => {
                    format!("<details>\n<summary>Thought</summary>\n\n{text}\n\n</details>")
                }
            },
            Item::User(text) => quoted(text),
            Item::Call(call) => {
                let asks = among.asks.get(call.id.as_str()).into_iter().flatten();
                call.render(&asks.map(|it| it.settled()).collect::<Vec<_>>())
            }
            Item::Plan(entries) => plan(entries),
            Item::Ask(ask) => {
                let call = ask.call.as_deref().and_then(|it| among.calls.get(it));
                match call {
                    // It stands in the line of its call.
                    Some(call) if call.made => String::new(),
                    Some(call) => ask.render(call.title()),
                    None => ask.render(""),
                }
            }
            Item::Remark(text) => remark(text),
            Item::Printed(text) if text.trim().is_empty() => String::new(),
            Item::Printed(text) => fenced("", &shortened(&plain(text), 0, 5)),
        }
    }
}

impl Ask {
    fn render(&self, about: &str) -> String {
        let titles = [self.message.as_str(), about, "?"];
        let title = titles.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_default();
        format!("- **ask** {}: {}", code(title), self.settled())
    }

    /// What it was answered with, and by whom.
    fn settled(&self) -> String {
        let Some((by, chosen)) = &self.answer else { return "not answered".to_owned() };
        let always = if self.always { ", and from now on" } else { "" };
        let mut settled = format!("{}{always}, by {}", words(chosen), words(by));
        if by == "policy" && !self.why.is_empty() {
            settled.push_str(": ");
            settled.push_str(&words(&self.why));
        }
        settled
    }
}

/// What a user said.
pub(super) fn quoted(text: &str) -> String {
    match contained(&plain(text)) {
        text if text.is_empty() => text,
        text => prefixed("> ", &text),
    }
}

/// A sentence of ours.
pub(super) fn remark(text: &str) -> String {
    let line = words(text);
    let mut chars = line.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("*{first}{}*", chars.as_str())
}

/// The steps as boxes to tick. Another mark than that of the calls: they are another list.
fn plan(entries: &Value) -> String {
    let entry = |it: &Value| {
        let (tick, note) = match text(it, "status") {
            "completed" => ("x", ""),
            "in_progress" => (" ", " (in progress)"),
            _ => (" ", ""),
        };
        format!("* [{tick}] {}{note}", words(text(it, "content")))
    };
    let entries: Vec<String> = entries.as_array().into_iter().flatten().map(entry).collect();
    entries.join("\n")
}
