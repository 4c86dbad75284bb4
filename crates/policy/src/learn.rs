//! What an Always means: a rule that is narrow, and ours.

use crate::{
    Call, Effect, Rule, Shell,
    glob::exactly,
    shell::{Simple, WordKind, base, interpreter, runs_others},
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

/// The rule that an Always to this call makes, if it can be said narrowly: the program and its
/// subcommand for each command, the exact paths for files, the tool for an MCP server.
pub fn learn(call: &Call, effect: Effect) -> Option<Rule> {
    if effect == Effect::Ask || call.question || call.is_cut || !call.unknown.is_empty() {
        return None;
    }
    let mut rule = Rule::of(effect);
    rule.mcp = call.mcp.iter().map(|it| exactly(it)).collect();
    if !call.commands.is_empty() {
        rule.run = runs(call, effect)?;
        return Some(rule);
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

/// The fewest words that say what a command line does, if it is one command and they can be told:
/// `cargo test` of `cargo test -p wire`.
pub fn gist(line: &str) -> Option<String> {
    let shell = Shell::of_line(line);
    match shell.commands() {
        [command] if shell.opaque().is_none() => pattern(command),
        _ => None,
    }
}

fn runs(call: &Call, effect: Effect) -> Option<Vec<String>> {
    let mut patterns: Vec<String> = Vec::new();
    for shell in &call.commands {
        if shell.commands().is_empty() {
            return None;
        }
        for command in shell.commands() {
            let pattern = pattern(command)?;
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    // Each of several would be denied alone, which nobody said.
    (effect == Effect::Allow || patterns.len() == 1).then_some(patterns)
}

/// The fewest words that say what a command does.
fn pattern(command: &Simple) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(|it| it.text.as_str()).collect();
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
    let fixed = command.words[..taken].iter().all(|it| it.kind == WordKind::Fixed);
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
