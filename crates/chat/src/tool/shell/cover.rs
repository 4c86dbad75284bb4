//! What "always" covers when somebody allows a command line: no more than they would think.

/// Programs whose first argument says what they do.
const TWO_WORDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "dnf",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "jj",
    "just",
    "kubectl",
    "make",
    "mise",
    "mix",
    "mvn",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "swift",
    "systemctl",
    "uv",
    "uvx",
    "yarn",
];
/// First arguments behind which the name of a script of the project follows.
const THREE_WORDS: &[&str] = &["run", "exec", "x", "tool"];
/// Programs that run what their arguments say, or cannot be undone: "always" would be anything.
const ANYTHING: &[&str] = &[
    "awk",
    "bash",
    "chmod",
    "chown",
    "chroot",
    "command",
    "csh",
    "dash",
    "dd",
    "doas",
    "env",
    "eval",
    "exec",
    "find",
    "fish",
    "kill",
    "ksh",
    "lua",
    "mkfs",
    "mv",
    "nice",
    "node",
    "nohup",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pkill",
    "python",
    "python3",
    "rm",
    "rsync",
    "ruby",
    "scp",
    "sed",
    "setsid",
    "sh",
    "shred",
    "source",
    "ssh",
    "stdbuf",
    "su",
    "sudo",
    "tclsh",
    "tee",
    "time",
    "timeout",
    "unlink",
    "watch",
    "xargs",
    "zsh",
    ".",
];

/// The beginning of a plain command line, or all of any other.
pub(super) fn cover(line: &str) -> String {
    let line = line.trim();
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(first) = words.first().filter(|_| is_plain(line)) else { return line.to_owned() };
    let name = first.rsplit('/').next().unwrap_or(first);
    if !is_word(first) || ANYTHING.contains(&name) {
        return line.to_owned();
    }
    let wanted = match words.get(1) {
        _ if !TWO_WORDS.contains(&name) => 1,
        Some(second) if THREE_WORDS.contains(second) && name != "docker" && name != "cargo" => 3,
        _ => 2,
    };
    match words.get(..wanted) {
        Some(head) if head.iter().all(|it| is_word(it)) => head.join(" "),
        _ => line.to_owned(),
    }
}

/// Whether it is one command, and nothing is put together by the shell.
fn is_plain(line: &str) -> bool {
    let is_special = |it: char| ";&|<>`$(){}\\!#~*?[]".contains(it) || it.is_control();
    !line.contains(is_special)
}

/// A word that means itself, and is no option.
fn is_word(word: &str) -> bool {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || "_-./:@+".contains(it);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_line_is_covered_by_its_first_words() {
        for (line, covered) in [
            ("ls -la src", "ls"),
            ("  cargo test -p chat", "cargo test"),
            ("git status", "git status"),
            ("git commit -m 'a b'", "git commit"),
            ("npm run build -- --watch", "npm run build"),
            ("cargo run --release", "cargo run"),
            ("./x.sh now", "./x.sh"),
            ("make", "make"),
        ] {
            assert_eq!(cover(line), covered, "{line}");
        }
    }

    #[test]
    fn a_line_that_could_be_anything_is_covered_by_its_text_alone() {
        for line in [
            "cargo test; rm -rf x",
            "cargo test && ls",
            "ls | sh",
            "ls $(cat x)",
            "ls `cat x`",
            "ls > x",
            "ls\nrm x",
            "ls & rm x",
            "git -C elsewhere push",
            "rm -rf target",
            "sudo ls",
            "python3 x.py",
            "/usr/bin/env ls",
            "FOO=1 cargo test",
            "'ls' -l",
            "npm run",
            "find . -delete",
            "cargo \"test\"",
        ] {
            assert_eq!(cover(line), line);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn whatever_joins_commands_is_never_covered_by_a_beginning(
            head in "(ls|cargo test|git status)",
            join in prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", ">", "<", "$(", "`"]),
            tail in "[a-z ]{0,9}",
        ) {
            let line = format!("{head} {join}{tail}");
            prop_assert_eq!(cover(&line), line.trim());
        }
    }
}
