//! What "always" covers when somebody allows a command line: no more than they would think.

use jackfield_policy::gist;

/// The words that say what a plain command does, or all of any other line.
pub(super) fn cover(line: &str) -> String {
    let line = line.trim();
    let covered = gist(line).filter(|_| is_plain(line));
    covered.unwrap_or_else(|| line.to_owned())
}

/// Whether nothing is put together or led elsewhere by the shell.
fn is_plain(line: &str) -> bool {
    let is_special = |it: char| ";&|<>`$(){}\\!#~*?[]\"\'".contains(it) || it.is_control();
    !line.contains(is_special)
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
            ("git commit -m x", "git commit"),
            ("python3 x.py now", "python3 x.py"),
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
            "python3 -c code",
            "git commit -m 'a b'",
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
