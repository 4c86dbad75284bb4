//! The input of a tool: every command, path and folder in it, at any depth, and unknown texts.
//!
//! Agents differ in which member they execute, so every member that may be a command counts. The
//! meaning of a text is unknown if its member is not in the table of member names.

use crate::{
    ShellCommand,
    member::{MemberKind, member_kinds},
};
use serde_json::{Map, Value};

// An input that exceeds one of these limits is marked as cut.
const COMMANDS_MAX: usize = 64;
const COMMAND_BYTES_MAX: usize = 512 * 1024;
const TEXTS_MAX: usize = 4096;
const UNKNOWN_BYTES_MAX: usize = 256 * 1024;
const DEPTH_MAX: usize = 16;
const ARGUMENTS_MAX: usize = 8;

/// Actions of file editing tools, which name their action in the member `command`.
const EDITOR_VERBS: &[&str] = &[
    "create",
    "delete",
    "edit",
    "insert",
    "list",
    "move",
    "read",
    "rename",
    "str_replace",
    "undo_edit",
    "view",
    "write",
];

/// The lines of a patch that name files.
const PATCH_HEADERS: &[&str] =
    &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
const DIFF_HEADERS: &[&str] = &["+++ ", "--- ", "rename from ", "rename to "];

/// The contents of one or several inputs.
#[derive(Debug, Default)]
pub(super) struct ToolInput {
    pub(super) commands: Vec<ShellCommand>,
    pub(super) paths: Vec<String>,
    pub(super) folders: Vec<String>,
    /// Files that a diff names. An absolute path may have lost its first slash.
    pub(super) diffed: Vec<String>,
    /// Texts whose member name does not determine their meaning.
    pub(super) unknown: Vec<String>,
    /// It has more parts than are analyzed.
    pub(super) is_cut: bool,
    value_count: usize,
    command_bytes: usize,
    unknown_bytes: usize,
    /// The tool's declared kind is neither `execute` nor `other`.
    is_edit_tool: bool,
}

/// The patch formats that a text may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchFormat {
    /// `*** Begin Patch`, which is recognized in every text.
    BeginPatchOnly,
    /// That format, or a unified diff.
    AnyPatch,
}

impl ToolInput {
    pub(super) fn new(kind: Option<&str>) -> ToolInput {
        let is_edit_tool = !matches!(kind, None | Some("execute" | "other"));
        ToolInput { is_edit_tool, ..ToolInput::default() }
    }

    /// Adds the contents of a `rawInput`.
    pub(super) fn add_value(&mut self, value: &Value) {
        self.visit(&[], value, 0);
    }

    /// Adds the paths of an input whose commands are already known.
    pub(super) fn add_paths(&mut self, other: ToolInput) {
        self.paths.extend(other.paths);
        self.folders.extend(other.folders);
        self.diffed.extend(other.diffed);
        self.is_cut |= other.is_cut;
    }

    fn visit(&mut self, kinds: &[MemberKind], value: &Value, depth: usize) {
        if depth > DEPTH_MAX || self.value_count > TEXTS_MAX {
            self.is_cut = true;
            return;
        }
        self.value_count += 1;
        match value {
            Value::Object(members) => self.visit_object(kinds, members, depth),
            Value::Array(items) => self.visit_list(kinds, items, depth),
            Value::String(text) => self.visit_text(kinds, text, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn visit_object(&mut self, own: &[MemberKind], members: &Map<String, Value>, depth: usize) {
        if members.len() > TEXTS_MAX {
            self.is_cut = true;
            return;
        }
        let known: Vec<(Vec<MemberKind>, &String, &Value)> =
            members.iter().map(|(key, value)| (member_kinds(key), key, value)).collect();
        let is_command = |it: &[MemberKind]| it.contains(&MemberKind::Command);
        let has_command = known.iter().any(|it| is_command(&it.0)) && !self.is_edit_action(members);
        let is_argument = |it: &[MemberKind], value: &Value| {
            has_command && it.contains(&MemberKind::Arguments) && is_words(value)
        };
        let arguments = known.iter().filter(|it| is_argument(&it.0, it.2)).map(|it| it.2);
        let arguments: Vec<&Value> = arguments.take(ARGUMENTS_MAX + 1).collect();
        self.is_cut |= arguments.len() > ARGUMENTS_MAX;
        for (kinds, key, value) in &known {
            if is_command(kinds) && has_command {
                self.add_command(value, &arguments, depth);
            } else if is_command(kinds) {
                self.visit(&[MemberKind::Text], value, depth + 1);
            } else if !is_argument(kinds, value) {
                self.visit_key(own, kinds, key);
                self.visit(kinds, value, depth + 1);
            }
        }
    }

    /// Adds a key that is a file name: `{"changes": {"src/a.rs": …}}`.
    fn visit_key(&mut self, own: &[MemberKind], kinds: &[MemberKind], key: &str) {
        if own.contains(&MemberKind::Files) {
            self.add_path(key);
        } else if kinds.is_empty() && key.contains(['/', '.', ' ']) {
            self.add_path(key);
            self.add_unknown(key);
        }
    }

    fn add_path(&mut self, path: &str) {
        if self.paths.len() < TEXTS_MAX {
            self.paths.push(path.to_owned());
        } else {
            self.is_cut = true;
        }
    }

    /// Whether the member `command` is the action of a file editing tool, not a command line.
    fn is_edit_action(&self, members: &Map<String, Value>) -> bool {
        let verb = members.get("command").and_then(Value::as_str);
        self.is_edit_tool
            && verb.is_some_and(|it| EDITOR_VERBS.contains(&it))
            && members.get("path").is_some_and(Value::is_string)
    }

    fn visit_list(&mut self, kinds: &[MemberKind], items: &[Value], depth: usize) {
        let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        match words {
            // They may be the words of one command.
            Some(words) if kinds.is_empty() || kinds.contains(&MemberKind::Arguments) => {
                self.add_unknown(&words.join(" "));
            }
            _ => items.iter().for_each(|it| self.visit(kinds, it, depth + 1)),
        }
    }

    fn visit_text(&mut self, kinds: &[MemberKind], text: &str, depth: usize) {
        let is_patch_member = kinds.contains(&MemberKind::Patch);
        let format =
            if is_patch_member { PatchFormat::AnyPatch } else { PatchFormat::BeginPatchOnly };
        let mut known = self.add_patch(text, format) && is_patch_member;
        // The text may be an input in JSON.
        if text.trim_start().starts_with(['{', '['])
            && !kinds.contains(&MemberKind::Text)
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            self.visit(kinds, &value, depth + 1);
            let whole = [MemberKind::Arguments, MemberKind::Whole];
            known |= value.is_object() && kinds.iter().any(|it| whole.contains(it));
        }
        for kind in kinds {
            match kind {
                MemberKind::Path => self.add_path(text),
                MemberKind::Folder => self.folders.push(text.to_owned()),
                MemberKind::CommandPattern if leaves_folder(text) => {
                    self.add_unknown(text);
                    self.add_path(text);
                }
                MemberKind::Command
                | MemberKind::Arguments
                | MemberKind::Whole
                | MemberKind::Files
                | MemberKind::Patch => continue,
                MemberKind::CommandPattern | MemberKind::Text => {}
            }
            known = true;
        }
        if !known {
            self.add_unknown(text);
        }
    }

    fn add_unknown(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.unknown_bytes += text.len();
        if self.unknown_bytes > UNKNOWN_BYTES_MAX {
            self.is_cut = true;
        } else {
            self.unknown.push(text.to_owned());
        }
    }

    /// Adds the files that a patch names. Returns whether the text is a patch.
    fn add_patch(&mut self, text: &str, format: PatchFormat) -> bool {
        let is_diff = format == PatchFormat::AnyPatch;
        let named = |headers: &[&str], line: &str| {
            let path = headers.iter().find_map(|it| line.strip_prefix(it))?;
            let path = path.split('\t').next().unwrap_or(path).trim_end();
            Some(path.strip_prefix("a/").or(path.strip_prefix("b/")).unwrap_or(path).to_owned())
        };
        let found: Vec<String> = if text.contains("*** Begin Patch") {
            text.lines().filter_map(|it| named(PATCH_HEADERS, it)).collect()
        } else if is_diff {
            text.lines().filter_map(|it| named(DIFF_HEADERS, it)).collect()
        } else {
            return false;
        };
        let is_patch = !found.is_empty() || is_diff && text.starts_with("@@ ");
        self.is_cut |= self.diffed.len() + found.len() > TEXTS_MAX;
        let is_file = |it: &String| !matches!(it.as_str(), "/dev/null" | "dev/null");
        self.diffed.extend(found.into_iter().filter(is_file).take(TEXTS_MAX));
        is_patch
    }

    fn add_command(&mut self, value: &Value, arguments: &[&Value], depth: usize) {
        match value {
            Value::String(line) => {
                self.add_patch(line, PatchFormat::BeginPatchOnly);
                self.add_line(line, arguments);
            }
            Value::Array(items) => match strings(value) {
                None if depth > DEPTH_MAX => self.is_cut = true,
                None => {
                    for item in items {
                        match item {
                            item @ Value::Object(_) => self.visit(&[], item, depth + 1),
                            item => self.add_command(item, arguments, depth + 1),
                        }
                    }
                }
                Some(argv) => self.add_argv(argv, arguments),
            },
            other => self.visit(&[], other, depth + 1),
        }
    }

    fn add_line(&mut self, line: &str, arguments: &[&Value]) {
        if line.trim().is_empty() && arguments.is_empty() {
            return;
        }
        if arguments.is_empty() {
            return self.push_command(ShellCommand::from_line(line));
        }
        // It is not known whether a shell joins them, so both forms must be allowed.
        for rest in arguments {
            let words = strings(rest);
            if let Some(rest) = &words {
                let argv: Vec<String> =
                    [line.to_owned()].into_iter().chain(rest.iter().cloned()).collect();
                self.push_command(ShellCommand::from_argv(&argv));
            }
            let rest =
                words.map_or_else(|| rest.as_str().map(str::to_owned), |it| Some(it.join(" ")));
            self.push_command(ShellCommand::from_line(&format!(
                "{line} {}",
                rest.unwrap_or_default()
            )));
        }
    }

    fn add_argv(&mut self, argv: Vec<String>, arguments: &[&Value]) {
        for word in &argv {
            self.add_patch(word, PatchFormat::BeginPatchOnly);
        }
        let rest = arguments.iter().filter_map(|it| strings(it)).flatten();
        let argv: Vec<String> = argv.into_iter().chain(rest).collect();
        arguments.iter().filter_map(|it| it.as_str()).for_each(|it| self.add_unknown(it));
        if !arguments.is_empty() {
            self.push_command(ShellCommand::from_line(&argv.join(" ")));
        }
        match argv.as_slice() {
            [] => {}
            // A list of one element is a line. A longer list is a program and its arguments, unless
            // the first element already has several words.
            [first, ..] if argv.len() == 1 || first.contains(char::is_whitespace) => {
                for line in &argv {
                    self.push_command(ShellCommand::from_line(line));
                }
            }
            argv => self.push_command(ShellCommand::from_argv(argv)),
        }
    }

    fn push_command(&mut self, command: ShellCommand) {
        if self.commands.contains(&command) {
            return;
        }
        self.command_bytes += command.text().len();
        if self.commands.len() < COMMANDS_MAX && self.command_bytes <= COMMAND_BYTES_MAX {
            self.commands.push(command);
        } else {
            self.is_cut = true;
        }
    }
}

/// All texts of an input, for a tool whose command is not known.
pub(super) fn texts_of(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.values()),
            _ => {}
        }
        if found.len() > TEXTS_MAX {
            break;
        }
    }
    found
}

fn is_words(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && !text.trim_start().starts_with('{'),
        value => strings(value).is_some_and(|it| !it.is_empty()),
    }
}

/// A list of texts, which may also be written as a JSON text.
fn strings(value: &Value) -> Option<Vec<String>> {
    let text = value.as_str().filter(|it| it.trim_start().starts_with('['));
    let read: Option<Value> = text.and_then(|it| serde_json::from_str(it).ok());
    read.as_ref()
        .unwrap_or(value)
        .as_array()?
        .iter()
        .map(|it| it.as_str().map(str::to_owned))
        .collect()
}

/// Whether a glob may match files outside of the folder it is used in.
fn leaves_folder(pattern: &str) -> bool {
    pattern.starts_with(['/', '~', '$']) || pattern.split('/').any(|it| it == "..")
}
