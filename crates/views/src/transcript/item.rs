//! The items of a transcript section, and their Markdown.

use super::{
    call::TranscriptCall,
    markdown::{escape_line, fence_block, inline_code, plain_text, prefix_lines, shorten_lines},
    sanitize::sanitize_markdown,
};
use crate::text::describe::str_member;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) enum TranscriptItem {
    /// The joined chunks of one agent message.
    AgentText {
        message: String,
        text: String,
    },
    Thought(String),
    /// A user message as the agent echoed it.
    User(String),
    Call(Box<TranscriptCall>),
    Plan(Value),
    Request(TranscriptRequest),
    /// A sentence about the session or a turn.
    Remark(String),
    /// The last lines that an agent wrote to stderr.
    Stderr(String),
}

/// A request of the agent to the user, and its answer.
#[derive(Debug, Default)]
pub(super) struct TranscriptRequest {
    /// The tool call that needs permission, if any.
    pub(super) call: Option<String>,
    /// The question of an elicitation.
    pub(super) message: String,
    /// Why the policy decided as it did.
    pub(super) why: String,
    /// The client that answered, and the chosen option.
    pub(super) answer: Option<(String, String)>,
    /// The answer applies to all similar requests.
    pub(super) is_always: bool,
}

/// Calls and their permission requests, by call id.
#[derive(Debug, Default)]
pub(super) struct CallIndex<'a> {
    calls: BTreeMap<&'a str, &'a TranscriptCall>,
    requests: BTreeMap<&'a str, Vec<&'a TranscriptRequest>>,
}

impl<'a> CallIndex<'a> {
    pub(super) fn new(items: &'a [TranscriptItem]) -> CallIndex<'a> {
        let mut index = CallIndex::default();
        for item in items {
            match item {
                TranscriptItem::Call(call) => drop(index.calls.insert(&call.id, call)),
                TranscriptItem::Request(request @ TranscriptRequest { call: Some(id), .. }) => {
                    index.requests.entry(id).or_default().push(request);
                }
                _ => {}
            }
        }
        index
    }
}

impl TranscriptItem {
    /// Renders Markdown without a newline at its end; an empty text if there is nothing to render.
    pub(super) fn render(&self, index: &CallIndex<'_>) -> String {
        match self {
            TranscriptItem::AgentText { text, .. } => sanitize_markdown(&plain_text(text)),
            TranscriptItem::Thought(text) => match sanitize_markdown(&plain_text(text)) {
                text if text.is_empty() => text,
                text => {
                    format!("<details>\n<summary>Thought</summary>\n\n{text}\n\n</details>")
                }
            },
            TranscriptItem::User(text) => render_quote(text),
            TranscriptItem::Call(call) => {
                let requests = index.requests.get(call.id.as_str()).into_iter().flatten();
                call.render(&requests.map(|it| it.describe_answer()).collect::<Vec<_>>())
            }
            TranscriptItem::Plan(entries) => render_plan(entries),
            TranscriptItem::Request(request) => {
                let call = request.call.as_deref().and_then(|it| index.calls.get(it));
                match call {
                    // The request is rendered in the line of its call.
                    Some(call) if call.is_made => String::new(),
                    Some(call) => request.render(call.title()),
                    None => request.render(""),
                }
            }
            TranscriptItem::Remark(text) => render_remark(text),
            TranscriptItem::Stderr(text) if text.trim().is_empty() => String::new(),
            TranscriptItem::Stderr(text) => {
                fence_block("", &shorten_lines(&plain_text(text), 0, 5))
            }
        }
    }
}

impl TranscriptRequest {
    fn render(&self, call_title: &str) -> String {
        let titles = [self.message.as_str(), call_title, "?"];
        let title = titles.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_default();
        format!("- **ask** {}: {}", inline_code(title), self.describe_answer())
    }

    /// The answer, and the client that gave it.
    fn describe_answer(&self) -> String {
        let Some((by, chosen)) = &self.answer else { return "not answered".to_owned() };
        let always = if self.is_always { ", always" } else { "" };
        let mut answer = format!("{}{always}, by {}", escape_line(chosen), escape_line(by));
        if by == "policy" && !self.why.is_empty() {
            answer.push_str(": ");
            answer.push_str(&escape_line(&self.why));
        }
        answer
    }
}

/// Renders a user message as a quote.
pub(super) fn render_quote(text: &str) -> String {
    match sanitize_markdown(&plain_text(text)) {
        text if text.is_empty() => text,
        text => prefix_lines("> ", &text),
    }
}

/// Renders a sentence about the session.
pub(super) fn render_remark(text: &str) -> String {
    let line = escape_line(text);
    let mut chars = line.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("*{first}{}*", chars.as_str())
}

/// Renders a plan as a task list. Its list mark differs from that of calls, so it is a list of its own.
fn render_plan(entries: &Value) -> String {
    let entry = |it: &Value| {
        let (tick, note) = match str_member(it, "status") {
            "completed" => ("x", ""),
            "in_progress" => (" ", " (in progress)"),
            _ => (" ", ""),
        };
        format!("* [{tick}] {}{note}", escape_line(str_member(it, "content")))
    };
    let entries: Vec<String> = entries.as_array().into_iter().flatten().map(entry).collect();
    entries.join("\n")
}
