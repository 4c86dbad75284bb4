//! Applies hunks to a text: where the lines match exactly, or else where only the white space at
//! the ends of lines differs.

use super::{HunkLine, PatchHunk};

const SHOWN_LINES_MAX: usize = 12;

type LinesMatch = fn(&str, &str) -> bool;

/// How two lines are compared, strictest first.
const COMPARISONS: [LinesMatch; 3] = [
    |file, patch| file == patch,
    |file, patch| file.trim_end() == patch.trim_end(),
    |file, patch| file.trim() == patch.trim(),
];

/// Returns the text with all hunks applied, or why one does not fit.
pub(super) fn apply_hunks(text: &str, hunks: &[PatchHunk]) -> Result<String, String> {
    // If the text ends with a line break, the last of these lines is empty, and joining restores
    // it.
    let lines: Vec<&str> = text.split('\n').collect();
    let adds_crlf = text.contains("\r\n") && !hunks.iter().any(PatchHunk::has_crlf);
    let line_end = if adds_crlf { "\r" } else { "" };
    let compared: Vec<&str> =
        lines.iter().map(|it| it.strip_suffix(line_end).unwrap_or(it)).collect();
    let mut output: Vec<String> = Vec::new();
    let mut next = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let at = hunk
            .find_position(&compared, next)
            .ok_or_else(|| hunk.describe_mismatch(number + 1))?;
        output.extend(lines[next..at].iter().map(|it| (*it).to_owned()));
        next = at;
        for line in &hunk.lines {
            match line {
                // The line of the file is kept, because its white space may differ from the patch.
                HunkLine::Context(_) => {
                    output.push(lines[next].to_owned());
                    next += 1;
                }
                HunkLine::Removed(_) => next += 1,
                HunkLine::Added(text) => output.push(format!("{text}{line_end}")),
            }
        }
    }
    output.extend(lines[next..].iter().map(|it| (*it).to_owned()));
    if let Some(last) = output.last_mut().filter(|it| adds_crlf && it.ends_with('\r')) {
        // No LF follows the last line, so it must not end with CR.
        last.pop();
    }
    Ok(output.join("\n"))
}

impl PatchHunk {
    /// Returns the position of the old lines, at `from` or later.
    fn find_position(&self, lines: &[&str], from: usize) -> Option<usize> {
        let from = self.skip_preceding(lines, from)?;
        let old: Vec<&str> = self.old_lines().collect();
        if old.is_empty() {
            // The empty line that stands for the last line break does not count.
            let end = lines.len() - usize::from(lines.last().is_some_and(|it| it.is_empty()));
            let default = if self.preceding.is_empty() { end } else { from };
            return Some(self.position.unwrap_or(default).clamp(from, end.max(from)));
        }
        COMPARISONS.iter().find_map(|lines_match| {
            let is_match = |at: &usize| {
                let window = lines.get(*at..at + old.len());
                window.is_some_and(|it| it.iter().zip(&old).all(|(a, b)| lines_match(a, b)))
            };
            let mut positions = (from..lines.len()).filter(is_match);
            match self.position {
                Some(position) => positions.min_by_key(|it| it.abs_diff(position)),
                None if self.is_at_end => positions.next_back(),
                None => positions.next(),
            }
        })
    }

    /// Returns the position after the lines that the patch says come before the hunk.
    fn skip_preceding(&self, lines: &[&str], from: usize) -> Option<usize> {
        self.preceding.iter().try_fold(from, |from, preceding| {
            let find = |lines_match: &LinesMatch| {
                (from..lines.len()).find(|it| lines_match(lines[*it], preceding))
            };
            Some(COMPARISONS.iter().find_map(find)? + 1)
        })
    }

    fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|it| match it {
            HunkLine::Context(text) | HunkLine::Removed(text) => Some(text.as_str()),
            HunkLine::Added(_) => None,
        })
    }

    fn has_crlf(&self) -> bool {
        let has_cr = |it: &HunkLine| match it {
            HunkLine::Context(text) | HunkLine::Removed(text) | HunkLine::Added(text) => {
                text.ends_with('\r')
            }
        };
        self.lines.iter().any(has_cr)
    }

    /// Returns the error for a hunk that does not fit.
    fn describe_mismatch(&self, number: usize) -> String {
        let preceding = self.preceding.iter().map(String::as_str);
        let lines: Vec<&str> = preceding.chain(self.old_lines()).take(SHOWN_LINES_MAX).collect();
        format!(
            "These lines of its hunk {number} are not in the file, or not in this order. Read the \
             file again.\n{}",
            lines.join("\n")
        )
    }
}
