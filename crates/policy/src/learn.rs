//! What an Always means: a rule of ours that is narrow.

use crate::{
    Call, Effect, Rule, Shell,
    glob::exactly,
    shell::{Reading, Simple, Word, WordKind, base, interpreter, runs_others},
};

/// Programs whose first argument says what they do.
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

/// Of these, the ones whose meaning is in the word after that.
const DEEPER: &[(&str, &str)] = &[
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

/// Options before the subcommand that change nothing but the view.
const VIEWS: &[&str] = &["--no-pager", "--version", "--help", "-V"];

/// Builtins that change what later commands mean, and programs whose arguments are code.
const NEVER: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "vi", "vim", "nvim", "ed", "ex", "emacs", "gdb", "lldb",
    "expect", "tclsh", "export", "declare", "typeset", "readonly", "local", "set", "shopt",
    "unset", "enable", "hash", "unalias", "read",
];

/// Programs whose Always means the exact line, and of some only certain subcommands: what cannot be
/// undone, takes what to do from its arguments, or sends files elsewhere.
const EXACT: &[(&str, &[&str])] = &[
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

/// No person reads a longer rule before they confirm it.
const RULE_BYTES_MAX: usize = 2048;

/// The rule that an Always to this call makes, if it can be said narrowly: the program and its
/// subcommand for each command, or the exact line, the exact paths for files, the tool for an MCP
/// server.
pub fn learn(call: &Call, effect: Effect) -> Option<Rule> {
    narrow_rule(call, effect).filter(|it| it.to_string().len() <= RULE_BYTES_MAX)
}

fn narrow_rule(call: &Call, effect: Effect) -> Option<Rule> {
    if effect == Effect::Ask || call.question || call.is_cut || !call.unknown.is_empty() {
        return None;
    }
    let mut rule = Rule::of(effect);
    rule.mcp = call.mcp.iter().map(|it| exactly(it)).collect();
    if !call.commands.is_empty() {
        let readings: Vec<Reading> = call.commands.iter().map(Shell::read).collect();
        let runs = runs(&readings, effect)?;
        if effect == Effect::Allow && readings.iter().any(is_exact) {
            let lines = call.commands.iter().map(|it| it.exact_text().into_owned());
            rule.exact = lines.collect();
            let certain = !call.runs_elsewhere() && readings.iter().all(has_no_variable);
            return certain.then_some(rule);
        }
        rule.run = runs;
        let relative = call.runs_elsewhere() && readings.iter().any(Reading::runs_relative_file);
        return (!relative).then_some(rule);
    }
    let tool = call.name.iter().map(|it| exactly(it)).collect();
    if !call.paths.is_empty() {
        rule.kind = vec![call.kind().to_owned()];
        if call.kind() == "other" || !call.mcp.is_empty() {
            // Such a kind says nothing: only the tool does.
            rule.tool = tool;
            if rule.tool.is_empty() {
                return None;
            }
        }
        rule.path = call.paths.iter().map(|it| exactly(it)).collect();
        return Some(rule);
    }
    rule.tool = tool;
    (!call.mcp.is_empty() && !rule.tool.is_empty()).then_some(rule)
}

/// What an Always to this call will mean, as one sentence for people, before they confirm it.
pub fn learned_text(call: &Call, effect: Effect) -> String {
    let Some(rule) = learn(call, effect) else {
        return "no rule is learned from this, so the next call is asked about again".to_owned();
    };
    let listed = |entries: &[String]| format!("`{}`", entries.join("`, `"));
    let verb = if effect == Effect::Deny { "denies" } else { "allows" };
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

fn is_exact(reading: &Reading) -> bool {
    reading.commands().iter().any(|it| means_exact_line(reading.words_of(it)))
}

/// Whether an Always to a command means the whole line.
fn means_exact_line(words: &[Word]) -> bool {
    let Some(program) = words.first().map(|it| base(&it.text)) else { return false };
    let program = program.split_once('.').map_or(program, |it| it.0);
    let row = EXACT.iter().find(|it| it.0 == program);
    row.is_some_and(|(_, subcommands)| {
        subcommands.is_empty() || words.iter().any(|it| subcommands.contains(&it.text.as_str()))
    })
}

fn has_no_variable(reading: &Reading) -> bool {
    let words = reading.commands().iter().flat_map(|it| reading.words_of(it));
    words.into_iter().all(|it| it.kind != WordKind::Open)
}

/// The fewest words that say what a command line does, if it is one command and an Always to it does
/// not mean the exact line: `cargo test` of `cargo test -p wire`.
pub fn gist(line: &str) -> Option<String> {
    let reading = Shell::of_line(line).read();
    match reading.commands() {
        [command] if reading.opaque().is_none() => {
            let words = reading.words_of(command);
            pattern(command, words).filter(|_| !means_exact_line(words))
        }
        _ => None,
    }
}

fn runs(readings: &[Reading], effect: Effect) -> Option<Vec<String>> {
    let mut patterns: Vec<String> = Vec::new();
    for reading in readings {
        if reading.commands().is_empty() {
            return None;
        }
        for command in reading.commands() {
            let pattern = pattern(command, reading.words_of(command))?;
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    // Each of several would be denied alone, which no person has said.
    (effect == Effect::Allow || patterns.len() == 1).then_some(patterns)
}

/// The fewest words that say what a command does.
fn pattern(command: &Simple, own: &[Word]) -> Option<String> {
    let words: Vec<&str> = own.iter().map(|it| it.text.as_str()).collect();
    let program = *words.first()?;
    let name = base(program);
    let plain = command.reach == 1 && command.programs == [0];
    if !plain || NEVER.contains(&name) {
        return None;
    }
    let taken = if SUBCOMMANDS.contains(&name) {
        subcommand(name, &words)?
    } else if interpreter(name).is_some() {
        script(&words)?
    } else if runs_others(name) {
        return None;
    } else {
        1
    };
    let fixed = own[..taken].iter().all(|it| it.kind == WordKind::Fixed);
    (fixed && words[..taken].iter().all(|it| is_plain(it))).then(|| words[..taken].join(" "))
}

/// `python x.py`, `python -m pytest`: the script is what is run.
fn script(words: &[&str]) -> Option<usize> {
    match words.get(1..) {
        Some(["-m", _, ..]) => Some(3),
        Some([file, ..]) if !file.starts_with('-') => Some(2),
        _ => None,
    }
}

fn subcommand(name: &str, words: &[&str]) -> Option<usize> {
    let views = words[1..].iter().take_while(|it| VIEWS.contains(it)).count();
    let at = 1 + views;
    match words.get(at) {
        None => Some(at),
        Some(word) if word.starts_with(['-', '+']) => None,
        Some(word) => {
            let deeper = |it: &&(&str, &str)| it.0 == name && (it.1 == *word || it.1 == "*");
            match (DEEPER.iter().find(deeper), words.get(at + 1)) {
                (None, _) => Some(at + 1),
                (Some(_), Some(next)) if !next.starts_with('-') => Some(at + 2),
                (Some(_), _) => None,
            }
        }
    }
}

/// A word that a pattern means as it stands.
fn is_plain(word: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"._+/@:-".contains(&it);
    !word.is_empty() && word.bytes().all(plain)
}
