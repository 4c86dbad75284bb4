//! The facts of one permission request, whatever words the agent has for them.
//!
//! Agents word the same thing in a dozen ways; the tests hold this against recordings of all that
//! we know. What a model may have written itself (a title, a description) is a *hint*: enough for a
//! deny or an ask, never for an allow. Where two members say different things, both count.

mod input;
mod tool;

use crate::{Shell, glob::Place};
use input::{Input, texts_of};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What an agent puts before the command in a text for people.
const RUNNING: &str = "Requesting approval to Running: ";

/// Texts for people that are longer than this together are not searched.
const HINT_BYTES_MAX: usize = 256 * 1024;

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
    /// Titles that may be its name, if it is not said, and all names if they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// All that it may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Shell>,
    /// Texts that may tell what it would run or touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Texts of its input that may be anything: no rule about commands, paths or kinds allows it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What it would touch, from the root on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The folders in which its commands run, if it names any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The MCP servers that it names as those that have the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// It asks a person to choose, and no rule can choose for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
    /// Its input has more parts than are looked at: nothing allows it, and every deny holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl Call {
    /// Reads the `params` of a `session/request_permission`, together with the tool call as earlier
    /// updates told it.
    pub fn of(
        agent: &str,
        cwd: &str,
        home: Option<&str>,
        params: &Value,
        known: Option<&Value>,
    ) -> Call {
        let told = Told::of(params, known.unwrap_or(&Value::Null));
        let kind = told.text("kind");
        let input = told.input(kind);
        let place = Place { cwd, home };
        let said = tool::names(&told, &input.commands);
        let (name, mut aliases) = match said.as_slice() {
            [name] => (Some(name.clone()), Vec::new()),
            _ => (None, said.clone()),
        };
        if name.is_none() {
            aliases.extend(tool::titles(&told));
        }
        let asks = |it: &String| matches!(it.as_str(), "AskUserQuestion" | "ask_user_question");
        let unique = |paths: Vec<String>| {
            let mut kept = BTreeSet::new();
            let paths = paths.iter().filter(|it| !it.is_empty()).map(|it| place.absolute(it));
            paths.filter(|it| kept.insert(it.clone())).collect::<Vec<String>>()
        };
        let mut paths = told.paths();
        paths.extend(input.paths);
        let known: BTreeSet<&str> = paths.iter().filter_map(|it| it.strip_prefix('/')).collect();
        let diffed = input.diffed.iter().filter(|it| !known.contains(it.as_str()));
        let diffed: Vec<String> = diffed.cloned().collect();
        paths.extend(diffed);
        let silent = input.commands.is_empty();
        let hints = if silent { told.hints(kind, paths.is_empty()) } else { Vec::new() };
        let hinted: usize = hints.iter().map(String::len).sum();
        Call {
            agent: agent.to_owned(),
            cwd: cwd.to_owned(),
            home: home.map(str::to_owned),
            kind: kind.map(str::to_owned),
            question: told.inputs().any(|it| has_questions(it, 0)) || said.iter().any(asks),
            mcp: tool::servers(&told, &said),
            name,
            aliases,
            title: told.text("title").map(str::to_owned),
            is_cut: input.is_cut || hinted > HINT_BYTES_MAX,
            hints,
            commands: input.commands,
            unknown: input.unknown,
            paths: unique(paths),
            folders: unique(input.folders),
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

    /// Whether its commands run in another folder than the session's.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        self.folders.iter().any(|it| *it != self.place().absolute("."))
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

    /// What the request itself says wins, unless it is empty.
    fn text(&self, key: &str) -> Option<&'a str> {
        let texts = [&self.own[key], &self.known[key]].into_iter().filter_map(Value::as_str);
        texts.into_iter().find(|it| !it.is_empty())
    }

    /// What the tool is called with, as the request says and as it was told before.
    fn inputs(&self) -> impl Iterator<Item = &'a Value> {
        let (own, known) = (&self.own["rawInput"], &self.known["rawInput"]);
        std::iter::once(own).chain((own != known).then_some(known))
    }

    /// Everything in the inputs: which of them is carried out is not said.
    fn input(&self, kind: Option<&str>) -> Input {
        let mut input = Input::new(kind);
        self.inputs().for_each(|it| input.read(it));
        for streamed in self.streamed() {
            let mut other = Input::new(kind);
            other.read(&streamed);
            if input.commands.is_empty() {
                input.commands.append(&mut other.commands);
                input.unknown.append(&mut other.unknown);
            }
            input.add_paths(other);
        }
        let titled = kind == Some("execute")
            && self.text("toolCallId").is_some_and(|it| it.starts_with("run_shell_command"));
        if input.commands.is_empty() && titled {
            // One agent tells it in the title, and nowhere else.
            input.commands.extend(self.text("title").map(Shell::of_line));
        }
        input
    }

    /// The paths that are told beside the input: places to look at, and files with a diff.
    fn paths(&self) -> Vec<String> {
        let lists = ["locations", "content"].iter().flat_map(|it| [&self.own[it], &self.known[it]]);
        let items = lists.filter_map(Value::as_array).flatten();
        items.filter_map(|it| it["path"].as_str()).map(str::to_owned).collect()
    }

    /// Texts in which a command or a path may stand, of a call that names no command.
    fn hints(&self, kind: Option<&str>, is_silent: bool) -> Vec<String> {
        let mut hints = Vec::new();
        if is_silent {
            let texts = self.text("title").into_iter().chain(self.texts());
            hints.extend(texts.map(|it| it.strip_prefix(RUNNING).unwrap_or(it).to_owned()));
        }
        if kind == Some("execute") {
            hints.extend(self.inputs().flat_map(texts_of).map(str::to_owned));
        }
        hints
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

    /// The texts under these pointers, in the request and in what was told before.
    fn all(&self, pointers: &[&str]) -> impl Iterator<Item = &'a str> {
        let both = [self.own, self.known, self.params].into_iter();
        let found = both.flat_map(|it| pointers.iter().filter_map(|at| it.pointer(at)?.as_str()));
        found.filter(|it| !it.is_empty())
    }
}

/// Whether an input, or an object in it, has a list of questions.
fn has_questions(input: &Value, depth: usize) -> bool {
    let Some(members) = input.as_object().filter(|_| depth < 4) else { return false };
    input["questions"].is_array() || members.values().any(|it| has_questions(it, depth + 1))
}

/// One line of at most eighty characters.
pub(crate) fn short(text: &str) -> String {
    let head: String = text.chars().take(4096).collect();
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
