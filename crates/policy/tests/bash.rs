//! Compares the command analysis with a real bash: every command that bash runs is reported, or the
//! line is opaque.
//!
//! Bash gets an empty environment, a `PATH` without programs, and no builtin that leaves its
//! folder. It therefore finds none of the programs, and a handler function records the words
//! instead. Lines with a slash are skipped, unless the slash belongs to `/dev/null`.

use jackfield_policy::ShellCommand;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const TABLE: &str = include_str!("corpus/commands.tsv");

/// Writes the words of each command that is not found to descriptor 3, and evaluates lines of
/// nested shells.
const HARNESS: &str = r#"
exec 3>&1 1>/dev/null 2>/dev/null
command_not_found_handle() {
    printf '%s\0' "$#" "$@" >&3
    case $1 in
        sh | bash | zsh | dash | ksh | mksh | ash | csh | tcsh | fish) ;;
        *) return 0 ;;
    esac
    local code=
    shift
    while [[ $1 == [-+]* ]]; do
        [[ $1 == [-+]o ]] && shift
        [[ $1 == -[!-]* && $1 == *c* ]] && code=1
        shift
    done
    [[ $code ]] && eval "$1"
    return 0
}
ulimit -t 2 -f 0 -n 64 -v 1000000
enable -n cd pushd popd kill suspend exec logout ulimit umask history fc bind enable
eval "$1"
"#;

/// Pieces of lines. No word that may be a program exists in bash.
const PIECES: &[&str] = &[
    "aa",
    "bb",
    "cc",
    "dd",
    "ee",
    "aa",
    "bb",
    "cc",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    ";",
    "; ",
    "&",
    " && ",
    " || ",
    " | ",
    "|&",
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    "; }",
    "$(",
    "<(",
    "#",
    " # ",
    "*",
    "?",
    "[",
    "]",
    "~",
    "=",
    "A=1 ",
    "!",
    "! ",
    "$X",
    "${X}",
    "${X:-bb}",
    "$'bb'",
    "$'b\\x62'",
    "$\"bb\"",
    "2>&1",
    " >/dev/null ",
    " 2>/dev/null",
    " &>/dev/null ",
    "<<E\n",
    "\nE\n",
    "<<<",
    ">|",
    "&>>",
    "-x",
    "--",
    "-c ",
    "sh -c ",
    "bash -c ",
    "env ",
    "sudo ",
    "xargs ",
    "time ",
    "command ",
    "builtin ",
    "eval ",
    "if ",
    "; then ",
    "; fi",
    "case ",
    " in ",
    ";;",
    "esac",
    "for ",
    "; do ",
    "; done",
    "function ",
    "() ",
    "[[ ",
    " ]]",
    "((",
    "))",
    "\r",
    "\u{a0}",
    "é",
    "1",
    "2",
    ",",
    "{bb,cc}",
    "a\"b\"",
    "'a b'",
    "\\\n",
    "$((1))",
    "$IFS",
    "trap ",
    "alias ",
    "coproc ",
];

/// The words of one command, program first.
type CommandWords = Vec<String>;

/// A small random number generator, which produces the same lines in every run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn number_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn pick_one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.number_below(all.len())]
    }
}

/// A line of random pieces.
fn generate_line(random: &mut RandomNumbers) -> String {
    let count = 1 + random.number_below(12);
    let mut line = random.pick_one(&["aa ", "bb ", "", "aa 'b' ", "A=1 aa "]).to_owned();
    for _ in 0..count {
        line.push_str(random.pick_one(PIECES));
    }
    line
}

/// A line of the table with a few changes.
fn mutate_line(random: &mut RandomNumbers, table: &[String]) -> String {
    let mut chars: Vec<char> = table[random.number_below(table.len())].chars().collect();
    for _ in 0..random.number_below(4) {
        let at = random.number_below(chars.len() + 1);
        match random.number_below(4) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => chars.insert(at, chars[at]),
            2 => drop(chars.splice(at..at, random.pick_one(PIECES).chars())),
            _ => {
                let other = &table[random.number_below(table.len())];
                chars.splice(at..at, random.pick_one(&["; ", " | ", "\n", " "]).chars());
                chars.extend(other.chars().take(random.number_below(20)));
            }
        }
    }
    chars.into_iter().collect()
}

fn table() -> Vec<String> {
    let rows = TABLE.lines().filter(|it| !it.starts_with(['#', '@']));
    let lines = rows.filter_map(|it| it.splitn(3, '\t').nth(2));
    lines.map(|it| it.replace('␊', "\n").replace('␉', "\t").replace('␍', "\r")).collect()
}

/// Whether bash may run a line: it names no other file and terminates.
fn is_harmless(line: &str) -> bool {
    let ends = |rest: &str| rest.chars().next().is_none_or(|it| " \t\n;&|)".contains(it));
    let sinks = line.match_indices("/dev/null").all(|(at, it)| ends(&line[at + it.len()..]));
    let other = line.replace("/dev/null", "");
    let loops = ["while", "until", "select", "for ((", "for((", "repeat", "read", "wait", "coproc"];
    sinks && !other.contains(['/', '\0', '␀']) && !loops.iter().any(|it| line.contains(it))
}

/// The commands that bash runs.
#[expect(clippy::disallowed_methods, reason = "the test compares with a real shell")]
fn run_by_bash(bash: &Path, folder: &Path, line: &str) -> Vec<CommandWords> {
    let output = Command::new(bash)
        .args(["--norc", "--noprofile", "-c", HARNESS, "bash", line])
        .env_clear()
        .env("PATH", folder.join("empty"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut fields = text.split('\0');
    let mut commands = Vec::new();
    while let Some(count) = fields.next().and_then(|it| it.parse::<usize>().ok()) {
        commands.push(fields.by_ref().take(count).map(str::to_owned).collect());
    }
    commands
}

/// The commands that the analysis reports, or `None` if the line is opaque.
fn reported_commands(line: &str) -> Option<Vec<CommandWords>> {
    let report = serde_json::to_value(ShellCommand::from_line(line)).unwrap();
    if report.get("opaque").is_some_and(Value::is_string) {
        return None;
    }
    Some(serde_json::from_value(report["runs"].clone()).unwrap())
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|it| it.0.trim_end_matches('+'));
    let plain = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    name.is_some_and(|it| {
        !it.is_empty() && !it.starts_with(|it: char| it.is_ascii_digit()) && plain(it)
    })
}

/// Whether a reported command is the one that ran; words that bash expands may be any words.
fn is_same(reported: &CommandWords, ran: &CommandWords) -> bool {
    // A name with a quote is not an assignment, and reported words have no quotes.
    let set = reported.iter().take_while(|it| is_assignment(it)).count();
    (0..=set).any(|from| is_same_from(&reported[from..], ran))
}

fn is_same_from(words: &[String], ran: &CommandWords) -> bool {
    let words: Vec<&String> = words.iter().collect();
    // `command`, `builtin` and `time` are builtins of bash that run the words after them.
    let own = ["command", "builtin", "time", "-p", "--"];
    let from = words.iter().take_while(|it| own.contains(&it.as_str())).count();
    [0, from].iter().any(|from| {
        let words = &words[*from..];
        let expands = words.iter().any(|it| it.contains(['$', '*', '?', '[', '{', '~']));
        let same = words.iter().copied().eq(ran.iter());
        same || expands && words.first().copied() == ran.first()
    })
}

/// Whether this is a nested shell, whose commands the harness and the analysis report instead.
fn is_shell(ran: &CommandWords) -> bool {
    const SHELLS: &[&str] =
        &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "csh", "tcsh", "fish"];
    ran.first().is_some_and(|it| SHELLS.contains(&it.as_str()))
}

/// Compares bash with the analysis of one line. Returns whether the line was not opaque.
fn compare(bash: &Path, folder: &Path, line: &str) -> bool {
    let Some(reported) = reported_commands(line) else { return false };
    for ran in run_by_bash(bash, folder, line).iter().filter(|it| !is_shell(it)) {
        let known = reported.iter().any(|it| is_same(it, ran));
        assert!(known, "bash runs {ran:?}, the analysis reports {reported:?}: {line:?}");
    }
    true
}

fn compare_many(cases: usize, seed: u64) {
    let paths = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].map(PathBuf::from);
    let bash = paths.iter().find(|it| it.exists()).expect("bash is needed for this test");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let table = table();
    let mut random = RandomNumbers(seed);
    let mut readable = 0;
    for case in 0..cases {
        let line = loop {
            let is_new = case % 2 == 0;
            let line =
                if is_new { generate_line(&mut random) } else { mutate_line(&mut random, &table) };
            // Most opaque lines are skipped, because nothing is compared for them.
            if is_harmless(&line) && (case % 8 < 2 || reported_commands(&line).is_some()) {
                break line;
            }
        };
        readable += usize::from(compare(bash, folder.path(), &line));
    }
    assert!(readable > cases / 2, "{readable} of {cases} lines could be read");
}

#[test]
fn harness_reports_the_commands_of_a_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let paths = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].map(PathBuf::from);
    let bash = paths.iter().find(|it| it.exists()).expect("bash is needed for this test");
    let ran = run_by_bash(bash, folder.path(), "aa 'b c' $(bb) | sh -c 'cc \"d\"' && ls; cd x");
    let mut programs: Vec<&str> = ran.iter().map(|it| it[0].as_str()).collect();
    programs.sort_unstable();
    assert_eq!(programs, ["aa", "bb", "cc", "cd", "ls", "sh"]);
    assert!(ran.contains(&vec!["aa".to_owned(), "b c".to_owned()]));
}

#[test]
fn lexer_reports_every_command_that_bash_runs() {
    compare_many(400, 0x9e37_79b9_7f4a_7c15);
}

#[test]
#[ignore = "nightly: compares 20,000 lines with bash, about five minutes"]
fn lexer_reports_every_command_that_bash_runs_in_many_lines() {
    for seed in 1..=20 {
        compare_many(1_000, 0x1234_5678_9abc_def1_u64.wrapping_mul(seed));
    }
}
