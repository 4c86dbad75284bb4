//! The arguments of `git`: settings and options that name programs or write files.

use super::{
    ShellWord, WordKind, expansion::could_be_option, hazard::is_long_option, program::ProgramRole,
};

/// Options before the subcommand that only change where or how git reads.
const FLAG_OPTIONS: &[&str] = &[
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

const VALUED_OPTIONS: &[&str] = &["-C", "--git-dir", "--work-tree", "--namespace"];

/// Options of any subcommand that write a file or name a program. Abbreviations match, too.
const HAZARDOUS_LONG_OPTIONS: &[&str] = &[
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

/// Short options that write a file or name a program, by subcommand.
const HAZARDOUS_SHORT_OPTIONS: &[(&str, &str)] = &[
    ("archive", "o"),
    ("clone", "cu"),
    ("difftool", "xt"),
    ("format-patch", "o"),
    ("grep", "O"),
    ("rebase", "x"),
];

/// Subcommands that run other programs.
const HAZARDOUS_SUBCOMMANDS: &[&str] = &[
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

/// First arguments with which `git config` only reads settings.
const CONFIG_READERS: &[&str] =
    &["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"];

const HAZARDOUS_GIT: ProgramRole =
    ProgramRole::Unreadable("`git` writes a file or runs another program");

/// The role of the arguments of `git`.
pub(super) fn classify_git(words: &[ShellWord], at: usize) -> ProgramRole {
    let mut next = at + 1;
    while let Some(word) = words.get(next).filter(|it| it.text.starts_with('-')) {
        let text = word.text.as_str();
        let name = text.split_once('=').map_or(text, |it| it.0);
        if VALUED_OPTIONS.contains(&text) {
            next += 2;
        } else if FLAG_OPTIONS.contains(&text) || text != "-C" && VALUED_OPTIONS.contains(&name) {
            next += 1;
        } else {
            return ProgramRole::Unreadable("an option of `git` changes its settings");
        }
    }
    let Some(subcommand) = words.get(next) else { return ProgramRole::Plain };
    let arguments = &words[next + 1..];
    if subcommand.kind != WordKind::Fixed {
        return ProgramRole::Unreadable("the subcommand of `git` is not a literal word");
    }
    if is_hazardous(&subcommand.text, arguments) { HAZARDOUS_GIT } else { ProgramRole::Plain }
}

fn is_hazardous(subcommand: &str, arguments: &[ShellWord]) -> bool {
    let has = |text: &str| arguments.iter().any(|it| it.text == text);
    let runs_or_writes = match subcommand {
        "bisect" => has("run"),
        "submodule" => has("foreach"),
        "bundle" => has("create"),
        "config" => !arguments.first().is_some_and(|it| CONFIG_READERS.contains(&it.text.as_str())),
        name => HAZARDOUS_SUBCOMMANDS.contains(&name),
    };
    let short = HAZARDOUS_SHORT_OPTIONS.iter().find(|it| it.0 == subcommand).map_or("", |it| it.1);
    let mut options = arguments.iter().take_while(|it| it.text != "--");
    runs_or_writes
        || arguments.iter().any(|it| it.text.contains("ext::"))
        || options.any(|word| {
            let name = word.text.split_once('=').map_or(word.text.as_str(), |it| it.0);
            let letters = word.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            could_be_option(word)
                || is_long_option(HAZARDOUS_LONG_OPTIONS, name)
                || letters.is_some_and(|it| it.contains(|it| short.contains(it)))
        })
}
