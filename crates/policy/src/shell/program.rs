//! Classifies programs: which of their arguments determines what runs.

use super::{ShellWord, WordKind, expansion::could_be_option, git, hazard, wrapper};

/// Folders of programs that an allow rule matches by their name alone.
const TRUSTED_FOLDERS: &[&str] = &[
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "csh", "tcsh", "fish"];

/// Shells with another syntax.
const UNSUPPORTED_SHELLS: &[&str] =
    &["pwsh", "powershell", "cmd", "cmd.exe", "nu", "elvish", "xonsh"];

/// Subcommands that run the command after them.
const RUNNER_SUBCOMMANDS: &[(&str, &str)] = &[
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

/// Words that begin a compound command, and builtins that run text or change what later words mean.
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

/// What a program does with its arguments.
pub(super) enum ProgramRole {
    /// It does not run another program.
    Plain,
    /// It runs the command that begins at this word.
    RunsCommandAt(usize),
    /// It is a shell, and this word is a whole command line.
    RunsLineAt(usize),
    /// It reads its code from this file or runs this program: the words up to here determine what
    /// runs.
    NamedUpTo(usize),
    /// It is not certain what it runs, for this reason.
    Unreadable(&'static str),
}

/// The name of a program without its folders.
pub(crate) fn program_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// The name that an allow rule matches: without the folder if only the system writes to it.
pub(crate) fn trusted_name(text: &str) -> &str {
    let folder = TRUSTED_FOLDERS.iter().find_map(|it| text.strip_prefix(it));
    folder.filter(|it| !it.contains('/')).unwrap_or(text)
}

pub(super) fn is_assignment(word: &ShellWord) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    !name.is_empty() && name.bytes().all(letter) && !name.as_bytes()[0].is_ascii_digit()
}

/// Whether this is a shell, an interpreter or a program that runs other programs.
pub(crate) fn runs_other_programs(name: &str) -> bool {
    SHELLS.contains(&name) || interpreter_code_options(name).is_some() || wrapper::is_wrapper(name)
}

/// Whether the next word is a command.
pub(super) fn precedes_command(name: &str) -> bool {
    UNREADABLE.contains(&name) || runs_other_programs(name)
}

/// The options with which an interpreter takes code. A version is ignored: `python3.12` is
/// `python`.
pub(crate) fn interpreter_code_options(name: &str) -> Option<&'static [&'static str]> {
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    INTERPRETERS.iter().find(|(it, _)| *it == stem).map(|(_, code)| *code)
}

/// Classifies the program at index `at`.
pub(super) fn classify_program(words: &[ShellWord], at: usize) -> ProgramRole {
    let program = &words[at];
    let name = program_name(&program.text);
    if program.kind != WordKind::Fixed {
        return ProgramRole::Unreadable("the program is not a literal word");
    }
    if UNREADABLE.contains(&program.text.as_str()) {
        return ProgramRole::Unreadable("it has a compound command or a builtin that runs text");
    }
    if UNSUPPORTED_SHELLS.contains(&name) {
        return ProgramRole::Unreadable("it runs a shell whose syntax is not supported");
    }
    if SHELLS.contains(&name) {
        return classify_shell(words, at);
    }
    if let Some(next) = words.get(at + 1)
        && RUNNER_SUBCOMMANDS.contains(&(name, next.text.as_str()))
    {
        return classify_runner(words, at, name);
    }
    if let Some(code) = interpreter_code_options(name) {
        return classify_interpreter(words, at, code);
    }
    if let Some(role) = wrapper::classify_wrapper(words, at, name) {
        return role;
    }
    if let Some(reason) = hazard::find_hazard(name, &words[at + 1..]) {
        return ProgramRole::Unreadable(reason);
    }
    match name {
        "find" | "gfind" | "fd" | "fdfind" => classify_find(words, at),
        "git" => git::classify_git(words, at),
        _ => ProgramRole::Plain,
    }
}

/// `npm exec CMD`, `docker run IMAGE CMD`.
fn classify_runner(words: &[ShellWord], at: usize, name: &str) -> ProgramRole {
    const UNKNOWN: ProgramRole =
        ProgramRole::Unreadable("a program that runs other programs has an unknown option");
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
        Some(_) => ProgramRole::RunsCommandAt(next),
        None if next > at + 2 => ProgramRole::NamedUpTo(next - 1),
        None => UNKNOWN,
    }
}

/// `bash -lc CODE`, `bash -e SCRIPT`. A shell without either reads commands from its input.
fn classify_shell(words: &[ShellWord], at: usize) -> ProgramRole {
    let mut code = false;
    let mut next = at + 1;
    while let Some(word) = words.get(next) {
        let text = word.text.as_str();
        match text {
            "-o" | "+o" => next += 1,
            "--login" | "--norc" | "--noprofile" | "--posix" => {}
            _ if text.starts_with("--") || text.starts_with('+') || text == "-" => {
                return ProgramRole::Unreadable("a shell has an unknown option");
            }
            _ if text.starts_with('-') => {
                if !text[1..].bytes().all(|it| b"lceuxiv".contains(&it)) {
                    return ProgramRole::Unreadable("a shell has an unknown option");
                }
                code |= text.contains('c');
            }
            _ if word.kind != WordKind::Fixed => {
                return ProgramRole::Unreadable(
                    "the line or script of a shell is not a literal word",
                );
            }
            _ if code && trusted_name(&words[at].text).contains('/') => {
                return ProgramRole::Unreadable("its shell is not in a system folder");
            }
            _ if code => return ProgramRole::RunsLineAt(next),
            _ => return ProgramRole::NamedUpTo(next),
        }
        next += 1;
    }
    ProgramRole::Unreadable("a shell reads its commands from its input")
}

fn classify_interpreter(words: &[ShellWord], at: usize, code: &[&str]) -> ProgramRole {
    let after = &words[at + 1..];
    let options = after.iter().take_while(|it| it.text.starts_with('-')).count();
    // `-c code` at any position, because the word before it may be the value of another option.
    let is_code_option = |it: &ShellWord| {
        let option = it.text.split_once('=').map_or(it.text.as_str(), |it| it.0);
        code.contains(&option)
    };
    // `-ccode` and `-uc code`.
    let contains_code_option = |it: &ShellWord| {
        let letters = it.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let letter = code.iter().filter_map(|it| it.strip_prefix('-')).filter(|it| it.len() == 1);
        letters.is_some_and(|it| letter.into_iter().any(|letter| it.contains(letter)))
    };
    if after.iter().any(is_code_option) || after[..options].iter().any(contains_code_option) {
        return ProgramRole::Unreadable("an interpreter runs code from its arguments");
    }
    let reads_input =
        after.is_empty() || (options == after.len() && after[options - 1].text == "-");
    if reads_input {
        return ProgramRole::Unreadable("an interpreter reads its code from its input");
    }
    ProgramRole::Plain
}

fn classify_find(words: &[ShellWord], at: usize) -> ProgramRole {
    let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
    let writes = ["-delete", "-fls", "-fprint", "-fprint0", "-fprintf", "-files0-from"];
    if words[at + 1..].iter().any(|it| writes.contains(&it.text.as_str()) || could_be_option(it)) {
        return ProgramRole::Unreadable("it deletes or writes files, or a word could be an option");
    }
    let is_exec = |it: &ShellWord| {
        let option = it.text.split_once('=').map_or(it.text.as_str(), |it| it.0);
        runs.contains(&option)
    };
    let mut execs = (at..words.len()).filter(|it| is_exec(&words[*it]));
    match (execs.next(), execs.next()) {
        (None, _) => ProgramRole::Plain,
        (Some(exec), None) if exec + 1 < words.len() && !words[exec].text.contains('=') => {
            ProgramRole::RunsCommandAt(exec + 1)
        }
        _ => ProgramRole::Unreadable("it runs several programs for the files that it finds"),
    }
}
