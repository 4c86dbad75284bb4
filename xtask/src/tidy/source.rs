//! Rust files are small, say what they are for, and have names that say where a line lives.

use std::path::Path;

const LINES_WARN: usize = 400;
const LINES_MAX: usize = 600;

/// Names that say nothing about what is inside.
const REFUSED_NAMES: &[&str] = &[
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "types",
    "misc",
    "manager",
    "service",
    "processor",
    "engine",
];

/// Complaints about one Rust file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    if LINES_MAX < lines {
        complaints.push(format!("{path}: {lines} lines, more than {LINES_MAX}"));
    } else if LINES_WARN < lines {
        println!("tidy: note: {path}: {lines} lines, more than {LINES_WARN}");
    }
    if !["//!", "#![doc = include_str!("].iter().any(|it| text.starts_with(it)) {
        complaints.push(format!("{path}: say in a `//!` line what this file is for"));
    }
    for name in Path::new(path).with_extension("").iter().filter_map(|it| it.to_str()) {
        if REFUSED_NAMES.contains(&name) {
            complaints.push(format!("{path}: `{name}` does not say what is inside"));
        }
    }
    complaints.extend(check_ignored_tests(path, text));
    // In two halves, or this file would complain about itself.
    let marker = ["TO", "DO"].concat();
    for (number, line) in (1..).zip(text.lines()) {
        if line.split(|it: char| !it.is_alphanumeric() && it != '_').any(|it| it == marker) {
            complaints.push(format!("{path}:{number}: `{marker}` has no place here"));
        }
    }
    complaints
}

/// Tests that a change does not run belong to the nightly tier, and say why.
fn check_ignored_tests(path: &str, text: &str) -> Vec<String> {
    let attribute = ["#", "[ignore"].concat();
    let reason = format!("{attribute} = \"nightly: ");
    let is_wrong = |line: &str| line.contains(&attribute) && !line.contains(&reason);
    let lines = (1..).zip(text.lines()).filter(|(_, line)| is_wrong(line));
    lines.map(|(number, _)| format!("{path}:{number}: write `{reason}…\"]`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_file_is_left_alone() {
        assert!(check("crates/protocol/src/line.rs", "//! Lines from bytes.\n").is_empty());
        assert!(check("a.rs", "#![doc = include_str!(\"manual.md\")]\n").is_empty());
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_refused() {
        let complaints = check("crates/protocol/src/line.rs", "use std::io;\n");
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("say in a `//!` line"));
    }

    #[test]
    fn a_name_that_says_nothing_is_refused_for_a_file_and_for_a_folder() {
        assert_eq!(check("crates/hub/src/utils.rs", "//! x\n").len(), 1);
        assert_eq!(check("crates/hub/src/common/mod.rs", "//! x\n").len(), 1);
        assert!(check("crates/hub/src/commonplace.rs", "//! x\n").is_empty());
    }

    #[test]
    fn a_file_may_have_six_hundred_lines_and_not_one_more() {
        let text = format!("//! x\n{}", "\n".repeat(LINES_MAX - 1));
        assert!(check("a.rs", &text).is_empty());
        assert_eq!(check("a.rs", &format!("{text}\n")).len(), 1);
    }

    #[test]
    fn ignored_test_must_say_why_it_is_nightly() {
        let [head, nightly] = [["#", "[ignore"].concat(), " = \"nightly: minutes\"]".to_owned()];
        assert!(check("a.rs", &format!("//! x\n{head}{nightly}\n")).is_empty());
        assert_eq!(check("a.rs", &format!("//! x\n{head}]\n")).len(), 1);
        assert_eq!(check("a.rs", &format!("//! x\n{head} = \"slow\"]\n")).len(), 1);
    }

    #[test]
    fn a_note_to_oneself_is_refused_with_its_line() {
        let text = format!("//! x\n\n// {}{}: later\n", "TO", "DO");
        assert!(check("a.rs", &text)[0].starts_with("a.rs:3:"));
    }
}
