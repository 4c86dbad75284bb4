//! The facts of one permission request, normalized from the format of each agent.
//!
//! Agents describe the same action in a dozen formats; the tests compare the result with recordings
//! of all known agents. A text that the model may have written itself (a title, a description) is a
//! *hint*: sufficient for a deny or an ask, never for an allow. If two members contradict each
//! other, both count.

mod input;
mod tool_name;

use crate::{ShellCommand, glob::PathContext};
use input::{ToolInput, texts_of};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The prefix that one agent puts before the command in a text for the user.
const RUNNING_PREFIX: &str = "Requesting approval to Running: ";

/// Hints of more bytes in total are not searched.
const HINT_BYTES_MAX: usize = 256 * 1024;

/// The action that an agent requests permission for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallFacts {
    pub agent: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The ACP tool kind that the agent declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The agent's own name for the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Titles that may be the tool's name if no name is given, and all names if they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// All command lines that it may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ShellCommand>,
    /// Texts that may mention a command or a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Texts of its input whose meaning is unknown. With one of them, no rule about commands, paths
    /// or kinds allows the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Absolute paths that it would touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The folders in which its commands run, if it names any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The MCP servers that it names as the owners of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Whether it is a question to the user, which no allow rule can answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
    /// Whether its input has more parts than are analyzed: no rule allows it, and every deny rule
    /// about its contents matches.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl ToolCallFacts {
    /// Reads the `params` of a `session/request_permission`, and the tool call as earlier updates
    /// have described it.
    pub fn from_request(
        agent: &str,
        cwd: &str,
        home: Option<&str>,
        params: &Value,
        known: Option<&Value>,
    ) -> ToolCallFacts {
        let sources = ToolCallSources::new(params, known.unwrap_or(&Value::Null));
        let kind = sources.text("kind");
        let input = sources.read_inputs(kind);
        let context = PathContext { cwd, home };
        let names = tool_name::tool_names(&sources, &input.commands);
        let (name, mut aliases) = match names.as_slice() {
            [name] => (Some(name.clone()), Vec::new()),
            _ => (None, names.clone()),
        };
        if name.is_none() {
            aliases.extend(tool_name::one_word_titles(&sources));
        }
        let is_question_tool =
            |it: &String| matches!(it.as_str(), "AskUserQuestion" | "ask_user_question");
        let unique = |paths: Vec<String>| {
            let mut seen = BTreeSet::new();
            let paths = paths.iter().filter(|it| !it.is_empty()).map(|it| context.to_absolute(it));
            paths.filter(|it| seen.insert(it.clone())).collect::<Vec<String>>()
        };
        let mut paths = sources.paths();
        paths.extend(input.paths);
        let known: BTreeSet<&str> = paths.iter().filter_map(|it| it.strip_prefix('/')).collect();
        let diffed = input.diffed.iter().filter(|it| !known.contains(it.as_str()));
        let diffed: Vec<String> = diffed.cloned().collect();
        paths.extend(diffed);
        let hints =
            if input.commands.is_empty() { sources.hints(kind, &paths) } else { Vec::new() };
        let hint_bytes: usize = hints.iter().map(String::len).sum();
        ToolCallFacts {
            agent: agent.to_owned(),
            cwd: cwd.to_owned(),
            home: home.map(str::to_owned),
            kind: kind.map(str::to_owned),
            question: sources.inputs().any(|it| has_questions(it, 0))
                || names.iter().any(is_question_tool),
            mcp: tool_name::mcp_servers(&sources, &names),
            name,
            aliases,
            title: sources.text("title").map(str::to_owned),
            is_cut: input.is_cut || hint_bytes > HINT_BYTES_MAX,
            hints,
            commands: input.commands,
            unknown: input.unknown,
            paths: unique(paths),
            folders: unique(input.folders),
        }
    }

    /// The kind that rules use. A call that runs commands is `execute`, even if the agent declares
    /// another kind.
    pub fn kind(&self) -> &str {
        match &self.kind {
            _ if !self.commands.is_empty() => "execute",
            Some(kind) => kind,
            None => "other",
        }
    }

    /// A short description for explanations.
    pub fn summary(&self) -> String {
        if let Some(shell) = self.commands.first() {
            return format!("`{}`", shorten(shell.text()));
        }
        match (&self.name, self.paths.as_slice(), &self.title) {
            (Some(name), [path], _) => format!("`{name}` on `{path}`"),
            (Some(name), _, _) => format!("`{name}`"),
            (None, _, Some(title)) => format!("`{}`", shorten(title)),
            (None, [path, ..], None) => format!("{} of `{path}`", self.kind()),
            (None, [], None) => "the call".to_owned(),
        }
    }

    /// Whether its commands run in a folder other than the session's.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        self.folders.iter().any(|it| *it != self.path_context().to_absolute("."))
    }

    pub(crate) fn path_context(&self) -> PathContext<'_> {
        PathContext { cwd: &self.cwd, home: self.home.as_deref() }
    }
}

/// A tool call as the permission request and as earlier updates describe it.
struct ToolCallSources<'a> {
    params: &'a Value,
    /// The tool call in the request.
    own: &'a Value,
    /// The tool call according to earlier updates.
    known: &'a Value,
}

impl<'a> ToolCallSources<'a> {
    fn new(params: &'a Value, known: &'a Value) -> ToolCallSources<'a> {
        // The draft of ACP v2 has it one level deeper.
        let own = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
        ToolCallSources { params, own, known }
    }

    /// A text member of the tool call. The request wins over earlier updates, unless it is empty.
    fn text(&self, key: &str) -> Option<&'a str> {
        let texts = [&self.own[key], &self.known[key]].into_iter().filter_map(Value::as_str);
        texts.into_iter().find(|it| !it.is_empty())
    }

    /// The tool's input according to the request and according to earlier updates.
    fn inputs(&self) -> impl Iterator<Item = &'a Value> {
        let (own, known) = (&self.own["rawInput"], &self.known["rawInput"]);
        std::iter::once(own).chain((own != known).then_some(known))
    }

    /// Reads all inputs, because it is not known which of them the agent executes.
    fn read_inputs(&self, kind: Option<&str>) -> ToolInput {
        let mut input = ToolInput::new(kind);
        self.inputs().for_each(|it| input.add_value(it));
        for streamed in self.streamed_inputs() {
            let mut other = ToolInput::new(kind);
            other.add_value(&streamed);
            if input.commands.is_empty() {
                input.commands.append(&mut other.commands);
                input.unknown.append(&mut other.unknown);
            }
            input.add_paths(other);
        }
        let has_command_title = kind == Some("execute")
            && self.text("toolCallId").is_some_and(|it| it.starts_with("run_shell_command"));
        if input.commands.is_empty() && has_command_title {
            // One agent has the command only in the title.
            input.commands.extend(self.text("title").map(ShellCommand::from_line));
        }
        input
    }

    /// The paths outside the input: locations, and files with a diff.
    fn paths(&self) -> Vec<String> {
        let lists = ["locations", "content"].iter().flat_map(|it| [&self.own[it], &self.known[it]]);
        let items = lists.filter_map(Value::as_array).flatten();
        items.filter_map(|it| it["path"].as_str()).map(str::to_owned).collect()
    }

    /// Texts that may contain a command or a path, for a call without a command.
    fn hints(&self, kind: Option<&str>, paths: &[String]) -> Vec<String> {
        let mut hints = Vec::new();
        if paths.is_empty() {
            let texts = self.text("title").into_iter().chain(self.texts());
            hints.extend(texts.map(|it| it.strip_prefix(RUNNING_PREFIX).unwrap_or(it).to_owned()));
        }
        if kind == Some("execute") {
            hints.extend(self.inputs().flat_map(texts_of).map(str::to_owned));
        }
        hints
    }

    /// The texts of the tool call's content.
    fn texts(&self) -> impl Iterator<Item = &'a str> {
        let both = [&self.own["content"], &self.known["content"]];
        let items = both.into_iter().filter_map(Value::as_array).flatten();
        items.filter_map(|it| it["content"]["text"].as_str())
    }

    /// Inputs that one agent streams as a JSON text of the content. Only earlier updates count,
    /// because the texts of the request are for the user.
    fn streamed_inputs(&self) -> impl Iterator<Item = Value> {
        let items = self.known["content"].as_array().into_iter().flatten();
        let texts = items.filter_map(|it| it["content"]["text"].as_str());
        texts.filter(|it| it.starts_with('{')).filter_map(|it| serde_json::from_str(it).ok())
    }

    /// The texts at these JSON pointers, in the request and in earlier updates.
    fn texts_at(&self, pointers: &[&str]) -> impl Iterator<Item = &'a str> {
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

/// Shortens a text to one line of at most 80 characters.
pub(crate) fn shorten(text: &str) -> String {
    let head: String = text.chars().take(4096).collect();
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
