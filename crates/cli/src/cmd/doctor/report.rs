//! Prints findings: one line each, and a line with the fix. On a terminal, long texts continue below their column.

use super::finding::{CheckVerdict, DoctorFinding};
use crate::out::{ALERT, DONE, NAME, WARNING, paint};
use unicode_width::UnicodeWidthStr as _;

const VERDICT_WIDTH: usize = 7;
const FIX_LABEL: &str = "fix: ";
/// A narrower terminal breaks the lines itself.
const TEXT_WIDTH_MIN: usize = 20;

/// The lines of a finding. `name_width` is the length of the longest name of a check.
pub(super) fn format_finding(
    check: &str,
    finding: &DoctorFinding,
    name_width: usize,
    width: Option<usize>,
) -> Vec<String> {
    let style = match finding.verdict {
        CheckVerdict::Ok => DONE,
        CheckVerdict::Warning => WARNING,
        CheckVerdict::Problem => ALERT,
    };
    let verdict = paint(style, format!("{:<VERDICT_WIDTH$}", finding.verdict.name()));
    let indent = VERDICT_WIDTH + 1 + name_width + 1;
    let found = match &finding.subject {
        Some(subject) => format!("{subject}: {}", finding.found),
        None => finding.found.clone(),
    };
    let mut lines = Vec::new();
    for (index, text) in wrap_words(&found, indent, width).into_iter().enumerate() {
        lines.push(match index {
            0 => format!("{verdict} {check:<name_width$} {text}"),
            _ => format!("{:indent$}{text}", ""),
        });
    }
    let fix_indent = indent + FIX_LABEL.len();
    for (index, text) in
        finding.fix.iter().flat_map(|it| wrap_words(it, fix_indent, width)).enumerate()
    {
        lines.push(match index {
            0 => format!("{:indent$}{} {text}", "", paint(NAME, FIX_LABEL.trim_end())),
            _ => format!("{:fix_indent$}{text}", ""),
        });
    }
    lines
}

/// Breaks a text between words, so that it fits beside an indent. A word that is too long keeps its line.
fn wrap_words(text: &str, indent: usize, width: Option<usize>) -> Vec<String> {
    let room = width.map_or(usize::MAX, |it| it.saturating_sub(indent).max(TEXT_WIDTH_MIN));
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_inclusive(' ') {
            if !line.is_empty() && room < line.width() + word.trim_end().width() {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            line.push_str(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(finding: &DoctorFinding, width: Option<usize>) -> Vec<String> {
        let lines = format_finding("state", finding, 9, width);
        lines.iter().map(|it| anstream::adapter::strip_str(it).to_string()).collect()
    }

    #[test]
    fn finding_and_fix_are_one_line_each_without_a_terminal() {
        let finding = DoctorFinding::problem("a long text ".repeat(9), "chmod 700 /x");
        let lines = printed(&finding, None);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("problem state     a long text a long"), "{lines:?}");
        assert_eq!(lines[1], "                  fix: chmod 700 /x");
    }

    #[test]
    fn long_texts_continue_in_their_column_on_a_terminal() {
        let finding =
            DoctorFinding::warning("one two three four five six", "seven eight nine ten eleven")
                .about("claude");
        let expected = [
            "warning state     claude: one two",
            "                  three four five six",
            "                  fix: seven eight nine ten",
            "                       eleven",
        ];
        assert_eq!(printed(&finding, Some(38)), expected);
        let wide = printed(&finding, Some(80));
        assert!(wide.len() == 2 && wide.iter().all(|it| it.len() <= 80), "{wide:?}");
    }

    #[test]
    fn long_word_is_not_broken_and_lines_of_an_error_are_kept() {
        let path = format!("/{}", "x".repeat(50));
        let finding = DoctorFinding::ok(format!("at {path} now\nsecond"));
        let expected = ["ok      state     at", &path, "now", "second"].map(str::to_owned);
        let lines: Vec<String> =
            printed(&finding, Some(40)).iter().map(|it| it.trim_start().to_owned()).collect();
        assert_eq!(lines, expected);
    }
}
