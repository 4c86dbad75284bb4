//! The name of the permission for a command line. A permanent grant of it must not cover more than
//! a user expects.

use jackfield_policy::command_prefix;

/// Returns the name of the permission. It includes the directory, because the same words may run
/// another program elsewhere.
pub(super) fn permission_name(line: &str, cwd: &str) -> String {
    let covered = covered_command(line);
    if cwd == "." { format!("shell {covered}") } else { format!("shell in {cwd}: {covered}") }
}

/// Returns the words that say what a plain command does, or the whole line of any other command.
fn covered_command(line: &str) -> String {
    let line = line.trim();
    let covered = command_prefix(line).filter(|_| is_plain(line));
    covered.unwrap_or_else(|| line.to_owned())
}

/// Whether the line has no character that is special to the shell.
fn is_plain(line: &str) -> bool {
    let is_special = |it: char| ";&|<>`$(){}\\!#~*?[]\"\'".contains(it) || it.is_control();
    !line.contains(is_special)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_command_is_covered_by_its_first_words() {
        for (line, covered) in [
            ("ls -la src", "ls"),
            ("  cargo test -p chat", "cargo test"),
            ("git status", "git status"),
            ("git commit -m x", "git commit"),
            ("python3 x.py now", "python3 x.py"),
            ("npm run build -- --watch", "npm run build"),
            ("cargo run --release", "cargo run"),
            ("./x.sh now", "./x.sh"),
            ("make", "make"),
        ] {
            assert_eq!(covered_command(line), covered, "{line}");
        }
    }

    #[test]
    fn complex_command_is_covered_by_its_whole_line() {
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
            "python3 -c code",
            "git commit -m 'a b'",
            "/usr/bin/env ls",
            "FOO=1 cargo test",
            "'ls' -l",
            "npm run",
            "find . -delete",
            "cargo \"test\"",
        ] {
            assert_eq!(covered_command(line), line);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn joined_commands_are_covered_by_their_whole_line(
            head in "(ls|cargo test|git status)",
            join in prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", ">", "<", "$(", "`"]),
            tail in "[a-z ]{0,9}",
        ) {
            let line = format!("{head} {join}{tail}");
            prop_assert_eq!(covered_command(&line), line.trim());
        }
    }
}
