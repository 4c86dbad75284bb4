//! What git carries, or would carry after the next `git add`: none of it may name the machine it
//! was written on.

use std::{io, process::Command};

/// Folders at the root of a file system under which people and build machines keep their own.
/// Without slashes, or this file would complain about itself.
const ROOTS: &[&str] = &["home", "root", "work", "Users"];

/// Where such a path is somebody else's: recorded traffic, and examples in tests.
const EXAMPLES: &[&str] = &["fixtures/", "spec/", "fuzz/corpus/"];

/// Every file that git tracks or would add, relative to the root of the checkout.
pub(super) fn files() -> io::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
    let output = git.output()?;
    if !output.status.success() {
        return Err(io::Error::other("`git ls-files` failed: tidy needs a git checkout"));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.split('\0').filter(|it| !it.is_empty()).map(str::to_owned).collect())
}

/// Complaints about paths of one machine in one file.
pub(super) fn check_paths(path: &str, text: &str) -> Vec<String> {
    if is_example(path) {
        return Vec::new();
    }
    let is_rust = super::extension(path) == "rs";
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if is_rust && line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        if let Some(root) = home_path(line) {
            complaints.push(format!("{path}:{number}: `/{root}/` is a path of one machine"));
        }
    }
    complaints
}

fn is_example(path: &str) -> bool {
    EXAMPLES.iter().any(|it| path.starts_with(it))
        || path.split('/').any(|it| it == "tests" || it == "tests.rs")
        || super::extension(path) == "snap"
}

/// The root of the first absolute path under one of `ROOTS` in this line.
fn home_path(line: &str) -> Option<&'static str> {
    ROOTS.iter().copied().find(|root| {
        line.match_indices(&format!("/{root}/")).any(|(at, _)| {
            // After a letter, a digit or a dot it is the middle of another path.
            let before = line[..at].chars().next_back();
            before.is_none_or(|it| !it.is_alphanumeric() && !"._-~}".contains(it))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_wherever_it_starts() {
        assert_eq!(home_path("see /home/ada/x"), Some("home"));
        assert_eq!(home_path("\"/root/.cargo\""), Some("root"));
        assert_eq!(home_path("file:///work/x"), Some("work"));
        assert_eq!(home_path("/Users/ada"), Some("Users"));
    }

    #[test]
    fn the_middle_of_another_path_is_not_a_home() {
        for line in ["crates/work/src", "~/work/x", "$HOME/work/x", "${X}/home/y", "a.b/root/c"] {
            assert_eq!(home_path(line), None, "{line}");
        }
    }

    #[test]
    fn tests_and_recordings_may_name_such_paths() {
        assert!(check_paths("fixtures/goose/x.jsonl", "/home/ada").is_empty());
        assert!(check_paths("crates/cli/tests/run.rs", "/home/ada/x").is_empty());
        assert!(
            check_paths("a.rs", "//! x\n#[cfg(test)]\nmod tests { \"/home/ada/\" }").is_empty()
        );
    }

    #[test]
    fn code_and_prose_may_not() {
        assert_eq!(check_paths("README.md", "a\nrun /root/x\n").len(), 1);
        assert!(check_paths("crates/cli/src/main.rs", "x\n\"/work/y\"")[0].contains(":2:"));
    }
}
