//! The facts of one permission request, whatever words the agent has for them.
//!
//! Agents word the same thing in a dozen ways; the tests hold this against recordings of all that
//! we know. What a model may have written itself (a title, a description) is a *hint*: enough for a
//! deny or an ask, never for an allow.

mod command;
mod paths;
mod tool;

use crate::{Shell, glob::Place};
use serde::Serialize;
use serde_json::Value;

/// What an agent wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    pub agent: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// ACP's kind, as the agent says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The agent's own name for the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Titles that may be its name, if it is not said: the model may have written them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it would run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Shell>,
    /// Texts that may tell what it would run or touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What it would touch, from the root on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The MCP server that has the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<String>,
    /// It asks a person to choose, and no rule can choose for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
}

impl Call {
    /// Reads the `params` of a `session/request_permission`, together with the tool call as earlier
    /// updates told it. What the request itself says wins, unless it is empty.
    pub fn of(
        agent: &str,
        cwd: &str,
        home: Option<&str>,
        params: &Value,
        known: Option<&Value>,
    ) -> Call {
        let told = Told::of(params, known.unwrap_or(&Value::Null));
        let kind = told.text("kind");
        let commands = command::commands(&told, kind);
        let place = Place { cwd, home };
        let paths = paths::paths(&told, &place);
        let name = tool::name(&told, &commands);
        let mcp = tool::server(&told, name.as_deref());
        let silent = commands.is_empty() && paths.is_empty();
        let hints = if silent { command::hints(&told) } else { Vec::new() };
        let aliases = if name.is_none() { tool::aliases(&told) } else { Vec::new() };
        let asks = |it: &str| matches!(it, "AskUserQuestion" | "ask_user_question");
        Call {
            agent: agent.to_owned(),
            cwd: cwd.to_owned(),
            home: home.map(str::to_owned),
            kind: kind.map(str::to_owned),
            question: told.input()["questions"].is_array() || name.as_deref().is_some_and(asks),
            name,
            aliases,
            title: told.text("title").map(str::to_owned),
            commands,
            hints,
            paths,
            mcp,
        }
    }

    /// The kind by which an allow knows it: what runs commands is no mere read, whatever it is called.
    pub fn kind(&self) -> &str {
        match &self.kind {
            _ if !self.commands.is_empty() => "execute",
            Some(kind) => kind,
            None => "other",
        }
    }

    /// In a few words, for explanations.
    pub fn summary(&self) -> String {
        if let Some(shell) = self.commands.first() {
            return format!("`{}`", short(shell.text()));
        }
        match (&self.name, self.paths.as_slice(), &self.title) {
            (Some(name), [path], _) => format!("`{name}` on `{path}`"),
            (Some(name), _, _) => format!("`{name}`"),
            (None, _, Some(title)) => format!("`{}`", short(title)),
            (None, [path, ..], None) => format!("{} of `{path}`", self.kind()),
            (None, [], None) => "the call".to_owned(),
        }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { cwd: &self.cwd, home: self.home.as_deref() }
    }
}

/// A tool call as the request tells it and as it was told before.
struct Told<'a> {
    params: &'a Value,
    own: &'a Value,
    known: &'a Value,
}

impl<'a> Told<'a> {
    fn of(params: &'a Value, known: &'a Value) -> Told<'a> {
        // The draft of the protocol's next version has it one level deeper.
        let own = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
        Told { params, own, known }
    }

    fn member(&self, key: &str) -> &'a Value {
        let own = &self.own[key];
        if is_empty(own) { &self.known[key] } else { own }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.member(key).as_str().filter(|it| !it.is_empty())
    }

    /// What the tool is called with.
    fn input(&self) -> &'a Value {
        let input = self.member("rawInput");
        let inner = ["arguments", "args", "input", "parameters"].iter().map(|it| &input[it]);
        // Some wrap it once more, beside the tool's name.
        inner.filter(|it| it.is_object()).find(|it| !is_empty(it)).unwrap_or(input)
    }

    /// The texts of its content.
    fn texts(&self) -> impl Iterator<Item = &'a str> {
        let both = [&self.own["content"], &self.known["content"]];
        let items = both.into_iter().filter_map(Value::as_array).flatten();
        items.filter_map(|it| it["content"]["text"].as_str())
    }

    /// The input as one agent streams it: a text of the content that is JSON. Only what was told
    /// before counts, since the request's own texts are for people.
    fn streamed(&self) -> impl Iterator<Item = Value> {
        let items = self.known["content"].as_array().into_iter().flatten();
        let texts = items.filter_map(|it| it["content"]["text"].as_str());
        texts.filter(|it| it.starts_with('{')).filter_map(|it| serde_json::from_str(it).ok())
    }

    /// The first text under one of these pointers, in the request and then in what was told before.
    fn first(&self, pointers: &[&str]) -> Option<&'a str> {
        let both = [self.own, self.known, self.params].into_iter();
        let mut found =
            both.flat_map(|it| pointers.iter().filter_map(|at| it.pointer(at)?.as_str()));
        found.find(|it| !it.is_empty())
    }
}

/// One line of at most eighty characters.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
        _ => false,
    }
}
