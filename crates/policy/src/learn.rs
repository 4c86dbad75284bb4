//! Derives a narrow rule from an "always" answer.

use crate::{
    Rule, RuleEffect, ShellCommand, ToolCallFacts,
    glob::escape_glob,
    shell::{
        CommandAnalysis, ShellWord, SimpleCommand, WordKind, interpreter_code_options,
        program_name, runs_other_programs,
    },
};

/// Programs whose first argument is a subcommand.
const SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bundle",
    "bun",
    "cargo",
    "composer",
    "conda",
    "dart",
    "deno",
    "dnf",
    "docker",
    "dotnet",
    "flutter",
    "gcloud",
    "gem",
    "gh",
    "git",
    "glab",
    "go",
    "gradle",
    "helm",
    "hg",
    "jj",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "nix",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "svn",
    "swift",
    "systemctl",
    "terraform",
    "tmux",
    "uv",
    "yarn",
];

/// Subcommands that have a subcommand of their own.
const NESTED_SUBCOMMANDS: &[(&str, &str)] = &[
    ("aws", "*"),
    ("bun", "run"),
    ("deno", "run"),
    ("docker", "compose"),
    ("gh", "*"),
    ("git", "remote"),
    ("git", "stash"),
    ("go", "run"),
    ("go", "tool"),
    ("npm", "run"),
    ("pnpm", "run"),
    ("uv", "pip"),
    ("yarn", "run"),
];

/// Options before the subcommand that only change the output.
const OUTPUT_OPTIONS: &[&str] = &["--no-pager", "--version", "--help", "-V"];

/// Builtins that change what later commands mean, and programs whose arguments are code. No rule is
/// learned about them.
const NEVER_LEARNED: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "vi", "vim", "nvim", "ed", "ex", "emacs", "gdb", "lldb",
    "expect", "tclsh", "export", "declare", "typeset", "readonly", "local", "set", "shopt",
    "unset", "enable", "hash", "unalias", "read",
];

/// Programs for which a learned rule covers only the exact line, because they do something that
/// cannot be undone, are controlled by their arguments or send files elsewhere. If subcommands are
/// listed, only those are concerned.
const EXACT_LINE_ONLY: &[(&str, &[&str])] = &[
    ("aws", &[]),
    ("az", &[]),
    ("cargo", &["install", "login", "owner", "publish", "uninstall", "yank"]),
    ("chgrp", &[]),
    ("chmod", &[]),
    ("chown", &[]),
    ("cp", &[]),
    ("curl", &[]),
    ("dd", &[]),
    ("docker", &["build", "compose", "cp", "kill", "push", "rm", "rmi", "system", "volume"]),
    ("fd", &[]),
    ("fdfind", &[]),
    ("find", &[]),
    ("gcloud", &[]),
    ("gh", &[]),
    (
        "git",
        &[
            "branch",
            "checkout",
            "clean",
            "clone",
            "config",
            "push",
            "rebase",
            "remote",
            "reset",
            "restore",
            "rm",
            "stash",
            "submodule",
            "switch",
            "tag",
            "update-ref",
            "worktree",
        ],
    ),
    ("install", &[]),
    ("kill", &[]),
    ("killall", &[]),
    ("kubectl", &[]),
    ("ln", &[]),
    ("mkfs", &[]),
    ("mv", &[]),
    ("nc", &[]),
    ("npm", &["install", "i", "login", "publish", "uninstall", "unpublish"]),
    ("pip", &["install", "uninstall"]),
    ("pip3", &["install", "uninstall"]),
    ("pkill", &[]),
    ("podman", &["build", "cp", "kill", "push", "rm", "rmi", "system", "volume"]),
    ("reboot", &[]),
    ("rm", &[]),
    ("rmdir", &[]),
    ("rsync", &[]),
    ("scp", &[]),
    ("sed", &[]),
    ("sftp", &[]),
    ("shred", &[]),
    ("shutdown", &[]),
    ("systemctl", &[]),
    ("tar", &[]),
    ("tee", &[]),
    ("terraform", &[]),
    ("truncate", &[]),
    ("unlink", &[]),
    ("unzip", &[]),
    ("wget", &[]),
];

/// A longer rule is not learned, because nobody would read it before they confirm it.
const RULE_BYTES_MAX: usize = 2048;

/// The rule that an "always" answer to this call creates, if a narrow rule exists: the program and
/// its subcommand for each command or the exact line, the exact paths of files, or the tool of an
/// MCP server.
pub fn learn_rule(call: &ToolCallFacts, effect: RuleEffect) -> Option<Rule> {
    narrow_rule(call, effect).filter(|it| it.to_string().len() <= RULE_BYTES_MAX)
}

fn narrow_rule(call: &ToolCallFacts, effect: RuleEffect) -> Option<Rule> {
    if effect == RuleEffect::Ask || call.question || call.is_cut || !call.unknown.is_empty() {
        return None;
    }
    let mut rule = Rule::for_every_call(effect);
    rule.mcp = call.mcp.iter().map(|it| escape_glob(it)).collect();
    if !call.commands.is_empty() {
        let analyses: Vec<CommandAnalysis> =
            call.commands.iter().map(ShellCommand::analyze).collect();
        let patterns = command_patterns(&analyses, effect)?;
        if effect == RuleEffect::Allow && analyses.iter().any(has_exact_line_command) {
            let lines = call.commands.iter().map(|it| it.exact_text().to_owned());
            rule.exact = lines.collect();
            let is_certain = !call.runs_elsewhere() && analyses.iter().all(has_no_variable);
            return is_certain.then_some(rule);
        }
        rule.run = patterns;
        let runs_other_file =
            call.runs_elsewhere() && analyses.iter().any(CommandAnalysis::runs_relative_file);
        return (!runs_other_file).then_some(rule);
    }
    let tool = call.name.iter().map(|it| escape_glob(it)).collect();
    if !call.paths.is_empty() {
        rule.kind = vec![call.kind().to_owned()];
        if call.kind() == "other" || !call.mcp.is_empty() {
            // Such a kind does not describe the action; only the tool does.
            rule.tool = tool;
            if rule.tool.is_empty() {
                return None;
            }
        }
        rule.path = call.paths.iter().map(|it| escape_glob(it)).collect();
        return Some(rule);
    }
    rule.tool = tool;
    (!call.mcp.is_empty() && !rule.tool.is_empty()).then_some(rule)
}

/// Describes the effect of an "always" answer to this call in one sentence, for the user who is
/// about to confirm it.
pub fn describe_learned_rule(call: &ToolCallFacts, effect: RuleEffect) -> String {
    let Some(rule) = learn_rule(call, effect) else {
        return "no rule is learned from this call; you will be asked again".to_owned();
    };
    let listed = |entries: &[String]| format!("`{}`", entries.join("`, `"));
    let verb = if effect == RuleEffect::Deny { "denies" } else { "allows" };
    let what = if !rule.exact.is_empty() {
        format!("exactly this line: {}", listed(&rule.exact))
    } else if !rule.run.is_empty() {
        format!("{} with any arguments", listed(&rule.run))
    } else if !rule.path.is_empty() {
        format!("`{}` of {}", call.kind(), listed(&call.paths))
    } else {
        let tool = call.name.as_deref().unwrap_or_default();
        format!("the tool `{tool}` of {} with any input", listed(&call.mcp))
    };
    format!("{verb} {what}, in this session")
}

fn has_exact_line_command(analysis: &CommandAnalysis) -> bool {
    analysis.commands().iter().any(|it| needs_exact_line(analysis.words_of(it)))
}

/// Whether a rule learned from this command covers only the exact line.
fn needs_exact_line(words: &[ShellWord]) -> bool {
    let Some(program) = words.first().map(|it| program_name(&it.text)) else { return false };
    let program = program.split_once('.').map_or(program, |it| it.0);
    let row = EXACT_LINE_ONLY.iter().find(|it| it.0 == program);
    row.is_some_and(|(_, subcommands)| {
        subcommands.is_empty() || words.iter().any(|it| subcommands.contains(&it.text.as_str()))
    })
}

fn has_no_variable(analysis: &CommandAnalysis) -> bool {
    let words = analysis.commands().iter().flat_map(|it| analysis.words_of(it));
    words.into_iter().all(|it| it.kind != WordKind::Open)
}

/// The shortest prefix that identifies what a command line does: `cargo test` of `cargo test -p
/// wire`. `None` if the line has several commands, or if a rule learned from it would cover only
/// the exact line.
pub fn command_prefix(line: &str) -> Option<String> {
    let analysis = ShellCommand::from_line(line).analyze();
    match analysis.commands() {
        [command] if analysis.opaque_reason().is_none() => {
            let words = analysis.words_of(command);
            shortest_pattern(command, words).filter(|_| !needs_exact_line(words))
        }
        _ => None,
    }
}

fn command_patterns(analyses: &[CommandAnalysis], effect: RuleEffect) -> Option<Vec<String>> {
    let mut patterns: Vec<String> = Vec::new();
    for analysis in analyses {
        if analysis.commands().is_empty() {
            return None;
        }
        for command in analysis.commands() {
            let pattern = shortest_pattern(command, analysis.words_of(command))?;
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    // Each of several patterns would deny its command alone, which the user has not asked for.
    (effect == RuleEffect::Allow || patterns.len() == 1).then_some(patterns)
}

/// The shortest prefix that identifies what a command does.
fn shortest_pattern(command: &SimpleCommand, shell_words: &[ShellWord]) -> Option<String> {
    let words: Vec<&str> = shell_words.iter().map(|it| it.text.as_str()).collect();
    let program = *words.first()?;
    let name = program_name(program);
    let has_no_wrapper = command.spelled_len == 1 && command.programs == [0];
    if !has_no_wrapper || NEVER_LEARNED.contains(&name) {
        return None;
    }
    let length = if SUBCOMMANDS.contains(&name) {
        len_with_subcommand(name, &words)?
    } else if interpreter_code_options(name).is_some() {
        len_with_script(&words)?
    } else if runs_other_programs(name) {
        return None;
    } else {
        1
    };
    let is_fixed = shell_words[..length].iter().all(|it| it.kind == WordKind::Fixed);
    let words = &words[..length];
    (is_fixed && words.iter().all(|it| is_plain_word(it))).then(|| words.join(" "))
}

/// The number of words up to the script of an interpreter: `python x.py`, `python -m pytest`.
fn len_with_script(words: &[&str]) -> Option<usize> {
    match words.get(1..) {
        Some(["-m", _, ..]) => Some(3),
        Some([file, ..]) if !file.starts_with('-') => Some(2),
        _ => None,
    }
}

/// The number of words up to the subcommand.
fn len_with_subcommand(name: &str, words: &[&str]) -> Option<usize> {
    let options = words[1..].iter().take_while(|it| OUTPUT_OPTIONS.contains(it)).count();
    let at = 1 + options;
    match words.get(at) {
        None => Some(at),
        Some(word) if word.starts_with(['-', '+']) => None,
        Some(word) => {
            let is_nested = |it: &&(&str, &str)| it.0 == name && (it.1 == *word || it.1 == "*");
            match (NESTED_SUBCOMMANDS.iter().find(is_nested), words.get(at + 1)) {
                (None, _) => Some(at + 1),
                (Some(_), Some(next)) if !next.starts_with('-') => Some(at + 2),
                (Some(_), _) => None,
            }
        }
    }
}

/// Whether a pattern matches this word literally.
fn is_plain_word(word: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"._+/@:-".contains(&it);
    !word.is_empty() && word.bytes().all(plain)
}
