//! The arguments of `git`: settings and options that name programs or write files.

use super::{Word, WordKind, hazard::names_long_option, program::Role, wild::could_be_option};

/// Options before the subcommand that only change where or how git looks.
const FLAGS: &[&str] = &[
    "--bare",
    "--glob-pathspecs",
    "--help",
    "--icase-pathspecs",
    "--literal-pathspecs",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "--paginate",
    "--version",
    "-P",
    "-h",
    "-p",
    "-v",
];

const VALUED: &[&str] = &["-C", "--git-dir", "--work-tree", "--namespace"];

/// Options of any subcommand that write a file or name a program; abbreviations count.
const LONG: &[&str] = &[
    "--cc-cmd",
    "--config",
    "--config-env",
    "--exec",
    "--ext-diff",
    "--extcmd",
    "--open-files-in-pager",
    "--output",
    "--output-directory",
    "--receive-pack",
    "--sendmail-cmd",
    "--smtp-server",
    "--template",
    "--textconv",
    "--to-cmd",
    "--tool",
    "--upload-pack",
];

/// Short options that do so, by their subcommand.
const SHORT: &[(&str, &str)] = &[
    ("archive", "o"),
    ("clone", "cu"),
    ("difftool", "xt"),
    ("format-patch", "o"),
    ("grep", "O"),
    ("rebase", "x"),
];

/// Subcommands that run programs that settings name, or any.
const RUNNERS: &[&str] = &[
    "citool",
    "credential",
    "cvsserver",
    "daemon",
    "difftool",
    "filter-branch",
    "filter-repo",
    "gui",
    "hook",
    "http-backend",
    "imap-send",
    "instaweb",
    "mergetool",
    "p4",
    "receive-pack",
    "remote-ext",
    "send-email",
    "shell",
    "svn",
    "upload-pack",
    "web--browse",
];

/// Ways of `git config` to look at settings.
const LOOKS: &[&str] = &["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"];

const RUNS: Role = Role::Unreadable("git is told to write a file or to run a program");

/// What git does with the words after it.
pub(super) fn role(words: &[Word], at: usize) -> Role {
    let mut next = at + 1;
    while let Some(word) = words.get(next).filter(|it| it.text.starts_with('-')) {
        let text = word.text.as_str();
        let name = text.split_once('=').map_or(text, |it| it.0);
        if VALUED.contains(&text) {
            next += 2;
        } else if FLAGS.contains(&text) || text != "-C" && VALUED.contains(&name) {
            next += 1;
        } else {
            return Role::Unreadable("git is given settings");
        }
    }
    let Some(subcommand) = words.get(next) else { return Role::Plain };
    let arguments = &words[next + 1..];
    if subcommand.kind != WordKind::Fixed {
        return Role::Unreadable("what git does is not said in plain letters");
    }
    if is_hazardous(&subcommand.text, arguments) { RUNS } else { Role::Plain }
}

fn is_hazardous(subcommand: &str, arguments: &[Word]) -> bool {
    let says = |text: &str| arguments.iter().any(|it| it.text == text);
    let told = match subcommand {
        "bisect" => says("run"),
        "submodule" => says("foreach"),
        "bundle" => says("create"),
        "config" => !arguments.first().is_some_and(|it| LOOKS.contains(&it.text.as_str())),
        name => RUNNERS.contains(&name),
    };
    let short = SHORT.iter().find(|it| it.0 == subcommand).map_or("", |it| it.1);
    let mut options = arguments.iter().take_while(|it| it.text != "--");
    told || arguments.iter().any(|it| it.text.contains("ext::"))
        || options.any(|word| {
            let name = word.text.split_once('=').map_or(word.text.as_str(), |it| it.0);
            let letters = word.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            could_be_option(word)
                || names_long_option(LONG, name)
                || letters.is_some_and(|it| it.contains(|it| short.contains(it)))
        })
}
