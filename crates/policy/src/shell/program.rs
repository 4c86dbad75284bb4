//! Programs that run other programs: which word of theirs is the one to look at.

use super::{Word, WordKind};

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
    "!", "{", "}", "[[", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done",
    "case", "esac", "select", "function", "coproc", "eval", "source", ".", "alias", "trap",
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

/// A program that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Words of its own between its options and the command.
    operands: usize,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
}

const fn wrapper(
    name: &'static str,
    operands: usize,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
) -> Wrapper {
    Wrapper { name, operands, flags, valued }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", 0, &["-i", "-", "--ignore-environment"], &["-u", "--unset", "-C"]),
    wrapper("nohup", 0, &[], &[]),
    wrapper("time", 0, &["-p", "-v"], &[]),
    wrapper("timeout", 1, &["--foreground", "--preserve-status", "-v"], &["-s", "-k"]),
    wrapper("gtimeout", 1, &["--foreground"], &["-s", "-k"]),
    wrapper("nice", 0, &[], &["-n"]),
    wrapper("ionice", 0, &["-t"], &["-c", "-n"]),
    wrapper("stdbuf", 0, &["-oL", "-o0", "-eL", "-e0", "-i0"], &["-o", "-e", "-i"]),
    wrapper("setsid", 0, &["-f", "-w"], &[]),
    wrapper("sudo", 0, &["-n", "-E", "-H", "-S", "-b", "-k"], &["-u", "-g"]),
    wrapper("doas", 0, &["-n"], &["-u"]),
    wrapper("xargs", 0, &["-0", "-r", "-t", "-x"], &["-n", "-P", "-I", "-L", "-d", "-s"]),
    wrapper("exec", 0, &["-c", "-l"], &["-a"]),
    wrapper("command", 0, &["-p", "-v", "-V"], &[]),
    wrapper("builtin", 0, &[], &[]),
    wrapper("chroot", 1, &[], &[]),
    wrapper("flock", 1, &["-n", "-x", "-s"], &["-w"]),
    wrapper("strace", 0, &["-f"], &["-o", "-e", "-p"]),
    wrapper("watch", 0, &["-d", "-t"], &["-n"]),
    wrapper("parallel", 0, &["-0", "-k"], &["-j"]),
    wrapper("ssh", 1, &["-t", "-T", "-q"], &["-p", "-i", "-l", "-o"]),
    wrapper("busybox", 0, &[], &[]),
    wrapper("toybox", 0, &[], &[]),
    wrapper("npx", 0, &["-y", "--yes", "--no-install", "-q"], &[]),
    wrapper("bunx", 0, &[], &[]),
    wrapper("uvx", 0, &[], &[]),
    wrapper("unshare", 0, &["-r", "-n", "-m"], &[]),
    wrapper("su", 0, &[], &[]),
    wrapper("pkexec", 0, &[], &[]),
    wrapper("caffeinate", 0, &["-i", "-d", "-s"], &[]),
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
    SHELLS.contains(&name)
        || interpreter(name).is_some()
        || WRAPPERS.iter().any(|it| it.name == name)
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
        return match words.get(at + 2) {
            Some(word) if !word.text.starts_with('-') => Role::Runs(at + 2),
            _ => Role::Unreadable("a program that runs others has an option that is not known"),
        };
    }
    if let Some(code) = interpreter(name) {
        return interpreted(words, at, code);
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|it| it.name == name) {
        return wrapped(wrapper, words, at);
    }
    match name {
        "find" | "fd" | "fdfind" => found(words, at),
        "git" => git(words, at),
        _ => Role::Plain,
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

fn wrapped(wrapper: &Wrapper, words: &[Word], at: usize) -> Role {
    let mut next = at + 1;
    while let Some(word) = words.get(next) {
        let text = word.text.as_str();
        if text == "--" {
            next += 1;
            break;
        } else if wrapper.valued.contains(&text) {
            next += 2;
        } else if wrapper.flags.contains(&text) {
            next += 1;
        } else if text.starts_with('-') {
            return Role::Unreadable("a program that runs others has an option that is not known");
        } else {
            break;
        }
    }
    next += wrapper.operands;
    if wrapper.name == "env" {
        next += words.iter().skip(next).take_while(|it| is_assignment(it)).count();
    }
    // What `ssh` runs is a line for a shell elsewhere, and `watch` and `parallel` join their words.
    let joins = matches!(wrapper.name, "ssh" | "watch" | "parallel");
    match words.get(next) {
        None => Role::Plain,
        Some(_) if words[at..next].iter().any(|it| it.kind == WordKind::Open) => {
            Role::Unreadable("which program it runs is not said in plain letters")
        }
        Some(_) if joins => Role::Unreadable("a program passes a line to a shell"),
        Some(_) => Role::Runs(next),
    }
}

fn found(words: &[Word], at: usize) -> Role {
    let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
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

/// Settings on git's command line can name programs, and some subcommands run them.
fn git(words: &[Word], at: usize) -> Role {
    let mut next = at + 1;
    while let Some(word) = words.get(next).filter(|it| it.text.starts_with('-')) {
        let text = word.text.as_str();
        if ["-c", "--config-env", "--exec-path="].iter().any(|it| text.starts_with(it)) {
            return Role::Unreadable("git is given settings");
        }
        let valued = matches!(text, "-C" | "--git-dir" | "--work-tree" | "--namespace");
        next += if valued { 2 } else { 1 };
    }
    let rest: Vec<&str> = words.iter().skip(next).map(|it| it.text.as_str()).collect();
    let runs = match rest.as_slice() {
        ["bisect", rest @ ..] => rest.contains(&"run"),
        ["submodule", rest @ ..] => rest.contains(&"foreach"),
        ["rebase", rest @ ..] => {
            rest.iter().any(|it| it.starts_with("-x") || it.starts_with("--ex"))
        }
        ["filter-branch", ..] => true,
        _ => false,
    };
    if runs { Role::Unreadable("git is told to run a program") } else { Role::Plain }
}
