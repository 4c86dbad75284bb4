//! Puts hunks into a text: exactly where it can be, else where only spaces at the ends of lines
//! differ.

use super::{Hunk, Line};

const SHOWN_LINES_MAX: usize = 12;

/// How alike two lines must be, the strictest first.
const ALIKE: [fn(&str, &str) -> bool; 3] = [
    |file, patch| file == patch,
    |file, patch| file.trim_end() == patch.trim_end(),
    |file, patch| file.trim() == patch.trim(),
];

/// The text with all hunks in it, or why one does not fit.
pub(super) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    // With a line end at its end, the last of these is empty: so it is put back by joining.
    let lines: Vec<&str> = text.split('\n').collect();
    let adds_dos_ends = text.contains("\r\n") && !hunks.iter().any(Hunk::has_dos_ends);
    let end = if adds_dos_ends { "\r" } else { "" };
    let seen: Vec<&str> = lines.iter().map(|it| it.strip_suffix(end).unwrap_or(it)).collect();
    let mut made: Vec<String> = Vec::new();
    let mut done = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let at = hunk.find(&seen, done).ok_or_else(|| hunk.misfit(number + 1))?;
        made.extend(lines[done..at].iter().map(|it| (*it).to_owned()));
        done = at;
        for line in &hunk.lines {
            match line {
                // The file's own line: its spaces may differ from those of the patch.
                Line::Same(_) => {
                    made.push(lines[done].to_owned());
                    done += 1;
                }
                Line::Old(_) => done += 1,
                Line::New(text) => made.push(format!("{text}{end}")),
            }
        }
    }
    made.extend(lines[done..].iter().map(|it| (*it).to_owned()));
    if let Some(last) = made.last_mut().filter(|it| adds_dos_ends && it.ends_with('\r')) {
        // Nothing follows that would make it a line end.
        last.pop();
    }
    Ok(made.join("\n"))
}

impl Hunk {
    /// Where the old lines are, at or below `from`.
    fn find(&self, lines: &[&str], from: usize) -> Option<usize> {
        let from = self.below_above(lines, from)?;
        let old: Vec<&str> = self.old().collect();
        if old.is_empty() {
            // Before the empty line that stands for the line end.
            let end = lines.len() - usize::from(lines.last().is_some_and(|it| it.is_empty()));
            let default = if self.above.is_empty() { end } else { from };
            return Some(self.at.unwrap_or(default).clamp(from, end.max(from)));
        }
        ALIKE.iter().find_map(|alike| {
            let fits = |at: &usize| {
                let window = lines.get(*at..at + old.len());
                window.is_some_and(|it| it.iter().zip(&old).all(|(a, b)| alike(a, b)))
            };
            let mut places = (from..lines.len()).filter(fits);
            match self.at {
                Some(at) => places.min_by_key(|it| it.abs_diff(at)),
                None if self.at_end => places.next_back(),
                None => places.next(),
            }
        })
    }

    /// The line below the ones that the patch says are above.
    fn below_above(&self, lines: &[&str], from: usize) -> Option<usize> {
        self.above.iter().try_fold(from, |from, above| {
            let find = |alike: &fn(&str, &str) -> bool| {
                (from..lines.len()).find(|it| alike(lines[*it], above))
            };
            Some(ALIKE.iter().find_map(find)? + 1)
        })
    }

    fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|it| match it {
            Line::Same(text) | Line::Old(text) => Some(text.as_str()),
            Line::New(_) => None,
        })
    }

    fn has_dos_ends(&self) -> bool {
        let is_dos = |it: &Line| match it {
            Line::Same(text) | Line::Old(text) | Line::New(text) => text.ends_with('\r'),
        };
        self.lines.iter().any(is_dos)
    }

    fn misfit(&self, number: usize) -> String {
        let above = self.above.iter().map(String::as_str);
        let lines: Vec<&str> = above.chain(self.old()).take(SHOWN_LINES_MAX).collect();
        format!(
            "These lines of its hunk {number} are not in the file, or not in this order. Read the \
             file again.\n{}",
            lines.join("\n")
        )
    }
}
