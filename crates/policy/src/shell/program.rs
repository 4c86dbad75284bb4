//! Programs that run other programs: which word of theirs is the one to look at.

use super::{Word, WordKind, git, hazard, wild::could_be_option, wrapper};

/// Where a program may lie for an allow to take it by its name.
const TRUSTED: &[&str] = &[
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "csh", "tcsh", "fish"];

/// Shells whose language is another one.
const FOREIGN: &[&str] = &["pwsh", "powershell", "cmd", "cmd.exe", "nu", "elvish", "xonsh"];

/// Subcommands that run what follows them.
const RUNNERS: &[(&str, &str)] = &[
    ("bun", "x"),
    ("bundle", "exec"),
    ("docker", "exec"),
    ("docker", "run"),
    ("kubectl", "exec"),
    ("kubectl", "run"),
    ("mise", "exec"),
    ("nix", "run"),
    ("nix", "shell"),
    ("npm", "exec"),
    ("pipx", "run"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("podman", "exec"),
    ("podman", "run"),
    ("poetry", "run"),
    ("uv", "run"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
];

/// Words that begin a construct, and builtins that run text or change what later words mean.
const UNREADABLE: &[&str] = &[
    "!",
    ".",
    "[[",
    "alias",
    "bind",
    "case",
    "compgen",
    "complete",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "fc",
    "fi",
    "for",
    "function",
    "hash",
    "if",
    "let",
    "mapfile",
    "readarray",
    "repeat",
    "select",
    "shopt",
    "source",
    "then",
    "trap",
    "unalias",
    "until",
    "while",
    "zmodload",
    "{",
    "}",
];

/// Programs that run code given in an argument, and the options that give it.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "-p", "-pe", "--eval", "--print"]),
    ("bun", &["-e", "-p", "--eval", "--print"]),
    ("deno", &["eval"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
];

/// What a program does with the words after it.
pub(super) enum Role {
    /// It is the program that is run.
    Plain,
    /// It runs the command that begins at this word.
    Runs(usize),
    /// It is a shell, and this word is a whole command line.
    Line(usize),
    /// It reads its code from this file, or runs the program that this word names: the words up to
    /// here say what is run.
    Upto(usize),
    Unreadable(&'static str),
}

/// The name without its folders.
pub(crate) fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// The name by which an allow knows a program: plain, or in a folder that only the system writes to.
pub(crate) fn trusted_name(text: &str) -> &str {
    let folder = TRUSTED.iter().find_map(|it| text.strip_prefix(it));
    folder.filter(|it| !it.contains('/')).unwrap_or(text)
}

pub(super) fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    !name.is_empty() && name.bytes().all(letter) && !name.as_bytes()[0].is_ascii_digit()
}

/// Whether a name is of a shell, of an interpreter or of a program that runs others.
pub(crate) fn runs_others(name: &str) -> bool {
    SHELLS.contains(&name) || interpreter(name).is_some() || wrapper::is_wrapper(name)
}

/// Whether the word after this one is a command.
pub(super) fn precedes_command(name: &str) -> bool {
    UNREADABLE.contains(&name) || runs_others(name)
}

/// `python3.12` is `python`.
pub(crate) fn interpreter(name: &str) -> Option<&'static [&'static str]> {
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    INTERPRETERS.iter().find(|(it, _)| *it == stem).map(|(_, code)| *code)
}

/// What the program at `at` does with the words after it.
pub(super) fn role(words: &[Word], at: usize) -> Role {
    let program = &words[at];
    let name = base(&program.text);
    if program.kind != WordKind::Fixed {
        return Role::Unreadable("which program it runs is not said in plain letters");
    }
    if UNREADABLE.contains(&program.text.as_str()) {
        return Role::Unreadable("it has a construct or a builtin that runs text");
    }
    if FOREIGN.contains(&name) {
        return Role::Unreadable("it is for a shell that is not read here");
    }
    if SHELLS.contains(&name) {
        return shell(words, at);
    }
    if let Some(next) = words.get(at + 1)
        && RUNNERS.contains(&(name, next.text.as_str()))
    {
        return runner(words, at, name);
    }
    if let Some(code) = interpreter(name) {
        return interpreted(words, at, code);
    }
    if let Some(role) = wrapper::role(words, at, name) {
        return role;
    }
    if let Some(why) = hazard::of(name, &words[at + 1..]) {
        return Role::Unreadable(why);
    }
    match name {
        "find" | "gfind" | "fd" | "fdfind" => found(words, at),
        "git" => git::role(words, at),
        _ => Role::Plain,
    }
}

/// `npm exec CMD`, `docker run IMAGE CMD`.
fn runner(words: &[Word], at: usize, name: &str) -> Role {
    const UNKNOWN: Role =
        Role::Unreadable("a program that runs others has an option that is not known");
    let mut next = at + 2;
    if matches!(name, "docker" | "podman" | "kubectl") {
        if words.get(next).is_none_or(|it| it.text.starts_with('-') || it.kind != WordKind::Fixed) {
            return UNKNOWN;
        }
        next += 1;
    }
    next += usize::from(words.get(next).is_some_and(|it| it.text == "--"));
    match words.get(next) {
        Some(word) if word.text.starts_with('-') => UNKNOWN,
        Some(_) => Role::Runs(next),
        None if next > at + 2 => Role::Upto(next - 1),
        None => UNKNOWN,
    }
}

/// `bash -lc CODE`, `bash -e SCRIPT`; a shell without either reads commands that nobody sees.
fn shell(words: &[Word], at: usize) -> Role {
    let mut code = false;
    let mut next = at + 1;
    while let Some(word) = words.get(next) {
        let text = word.text.as_str();
        match text {
            "-o" | "+o" => next += 1,
            "--login" | "--norc" | "--noprofile" | "--posix" => {}
            _ if text.starts_with("--") || text.starts_with('+') || text == "-" => {
                return Role::Unreadable("a shell has an option that is not known");
            }
            _ if text.starts_with('-') => {
                if !text[1..].bytes().all(|it| b"lceuxiv".contains(&it)) {
                    return Role::Unreadable("a shell has an option that is not known");
                }
                code |= text.contains('c');
            }
            _ if word.kind != WordKind::Fixed => {
                return Role::Unreadable("what a shell runs is not said in plain letters");
            }
            _ if code && trusted_name(&words[at].text).contains('/') => {
                return Role::Unreadable("its shell is not one of the system");
            }
            _ if code => return Role::Line(next),
            _ => return Role::Upto(next),
        }
        next += 1;
    }
    Role::Unreadable("a shell reads its commands from elsewhere")
}

fn interpreted(words: &[Word], at: usize, code: &[&str]) -> Role {
    let after = &words[at + 1..];
    let options = after.iter().take_while(|it| it.text.starts_with('-')).count();
    // `-c code` anywhere, since the word before it may be the value of another option.
    let spelled = |it: &Word| {
        let option = it.text.split_once('=').map_or(it.text.as_str(), |it| it.0);
        code.contains(&option)
    };
    // `-ccode` and `-uc code`.
    let packed = |it: &Word| {
        let letters = it.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let letter = code.iter().filter_map(|it| it.strip_prefix('-')).filter(|it| it.len() == 1);
        letters.is_some_and(|it| letter.into_iter().any(|letter| it.contains(letter)))
    };
    if after.iter().any(spelled) || after[..options].iter().any(packed) {
        return Role::Unreadable("an interpreter is given code");
    }
    let silent = after.is_empty() || (options == after.len() && after[options - 1].text == "-");
    if silent {
        return Role::Unreadable("an interpreter reads its code from elsewhere");
    }
    Role::Plain
}

fn found(words: &[Word], at: usize) -> Role {
    let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
    let writes = ["-delete", "-fls", "-fprint", "-fprint0", "-fprintf", "-files0-from"];
    if words[at + 1..].iter().any(|it| writes.contains(&it.text.as_str()) || could_be_option(it)) {
        return Role::Unreadable("it deletes or writes files, or a word of it could be an option");
    }
    let is_exec = |it: &Word| {
        let option = it.text.split_once('=').map_or(it.text.as_str(), |it| it.0);
        runs.contains(&option)
    };
    let mut execs = (at..words.len()).filter(|it| is_exec(&words[*it]));
    match (execs.next(), execs.next()) {
        (None, _) => Role::Plain,
        (Some(exec), None) if exec + 1 < words.len() && !words[exec].text.contains('=') => {
            Role::Runs(exec + 1)
        }
        _ => Role::Unreadable("it runs programs for what it finds in a way that is not plain"),
    }
}
