//! Finds the changed lines of a file, with their surroundings.

use similar::{DiffOp, DiffTag, TextDiff};

const CONTEXT_LINES: usize = 3;
/// Versions that have more pairs of different lines are not compared: all old lines are removed, all new ones added.
const PAIRS_MAX: usize = 4_000_000;

/// Changed lines that are near each other.
#[derive(Debug)]
pub(super) struct DiffHunk<'a> {
    pub(super) lines: Vec<DiffLine<'a>>,
    /// The first line and the number of lines, in the old and in the new version.
    old: (usize, usize),
    new: (usize, usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct DiffLine<'a> {
    pub(super) change: LineChange,
    /// From 1, in the old version for a removed line and in the new version otherwise.
    pub(super) number: usize,
    /// Without the line break.
    pub(super) text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineChange {
    Same,
    Added,
    Removed,
}

impl DiffHunk<'_> {
    /// `@@ -1,4 +1,5 @@`
    pub(super) fn header(&self) -> String {
        let (old, new) = (self.old, self.new);
        format!("@@ -{},{} +{},{} @@", old.0, old.1, new.0, new.1)
    }
}

pub(super) fn find_hunks<'a>(old: &'a str, new: &'a str) -> Vec<DiffHunk<'a>> {
    let old_lines: Vec<&str> = split_lines(old);
    let new_lines: Vec<&str> = split_lines(new);
    let shared = old_lines.iter().zip(&new_lines).take_while(|it| it.0 == it.1).count();
    let ends = old_lines[shared..].iter().rev().zip(new_lines[shared..].iter().rev());
    let shared_end = ends.take_while(|it| it.0 == it.1).count();
    let old_count = old_lines.len() - shared - shared_end;
    let new_count = new_lines.len() - shared - shared_end;
    if old_count == 0 && new_count == 0 {
        return Vec::new();
    }
    let operations = if old_count.saturating_mul(new_count) > PAIRS_MAX {
        replace_all(&old_lines, &new_lines, shared, shared_end)
    } else {
        let diff = TextDiff::from_slices(&old_lines, &new_lines);
        diff.grouped_ops(CONTEXT_LINES)
    };
    operations.iter().map(|it| to_hunk(it, &old_lines, &new_lines)).collect()
}

/// Lines with their line breaks, so that a missing one at the end of the file is a change.
fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// One hunk in which everything between the shared start and end is replaced.
fn replace_all(old: &[&str], new: &[&str], shared: usize, shared_end: usize) -> Vec<Vec<DiffOp>> {
    let before = shared.min(CONTEXT_LINES);
    let after = shared_end.min(CONTEXT_LINES);
    let (old_end, new_end) = (old.len() - shared_end, new.len() - shared_end);
    let start = shared - before;
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let mut operations = vec![equal(start, start, before)];
    operations.push(DiffOp::Replace {
        old_index: shared,
        old_len: old_end - shared,
        new_index: shared,
        new_len: new_end - shared,
    });
    operations.push(equal(old_end, new_end, after));
    vec![operations]
}

fn to_hunk<'a>(operations: &[DiffOp], old: &[&'a str], new: &[&'a str]) -> DiffHunk<'a> {
    let mut lines = Vec::new();
    for operation in operations {
        let (tag, old_range, new_range) = operation.as_tag_tuple();
        let mut push = |change, first: usize, texts: &[&'a str]| {
            for (index, text) in texts.iter().enumerate() {
                let text = text.strip_suffix('\n').unwrap_or(text);
                lines.push(DiffLine { change, number: first + index + 1, text });
            }
        };
        if tag == DiffTag::Equal {
            push(LineChange::Same, new_range.start, &new[new_range]);
        } else {
            push(LineChange::Removed, old_range.start, &old[old_range]);
            push(LineChange::Added, new_range.start, &new[new_range]);
        }
    }
    let range = |first: Option<usize>, last: Option<usize>| match (first, last) {
        (Some(first), Some(last)) if last > first => (first + 1, last - first),
        (first, _) => (first.unwrap_or(0), 0),
    };
    let (first, last) = (operations.first(), operations.last());
    DiffHunk {
        lines,
        old: range(first.map(|it| it.old_range().start), last.map(|it| it.old_range().end)),
        new: range(first.map(|it| it.new_range().start), last.map(|it| it.new_range().end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::RangeInclusive;

    fn show(old: &str, new: &str) -> Vec<String> {
        let hunks = find_hunks(old, new);
        let line = |it: &DiffLine<'_>| {
            let sign = match it.change {
                LineChange::Same => ' ',
                LineChange::Added => '+',
                LineChange::Removed => '-',
            };
            format!("{}{sign}{}", it.number, it.text)
        };
        hunks
            .iter()
            .flat_map(|it| [it.header()].into_iter().chain(it.lines.iter().map(line)))
            .collect()
    }

    fn numbered_lines(name: &str, numbers: RangeInclusive<usize>) -> String {
        let lines: Vec<String> = numbers.map(|it| format!("{name} {it}\n")).collect();
        lines.concat()
    }

    #[test]
    fn hunks_have_context_and_numbers() {
        let old = numbered_lines("line", 1..=20);
        let new = old.replace("line 2\n", "line two\n").replace("line 15\n", "");
        assert_eq!(
            show(&old, &new)[..7],
            [
                "@@ -1,5 +1,5 @@",
                "1 line 1",
                "2-line 2",
                "2+line two",
                "3 line 3",
                "4 line 4",
                "5 line 5",
            ]
        );
        assert_eq!(
            show(&old, &new)[7..],
            [
                "@@ -12,7 +12,6 @@",
                "12 line 12",
                "13 line 13",
                "14 line 14",
                "15-line 15",
                "15 line 16",
                "16 line 17",
                "17 line 18",
            ]
        );
    }

    #[test]
    fn new_empty_and_equal_files() {
        assert_eq!(show("", "a\nb\n"), ["@@ -0,0 +1,2 @@", "1+a", "2+b"]);
        assert_eq!(show("a\n", ""), ["@@ -1,1 +0,0 @@", "1-a"]);
        assert_eq!(show("a\n", "a\n"), [""; 0]);
        assert_eq!(show("a", "a\n"), ["@@ -1,1 +1,1 @@", "1-a", "1+a"]);
    }

    #[test]
    fn versions_without_similarity_are_replaced() {
        let text = |name: &str| format!("start\n{}end\n", numbered_lines(name, 1..=3_000));
        let (old, new) = (text("old"), text("new"));
        let hunks = find_hunks(&old, &new);
        assert_eq!(hunks.len(), 1);
        assert_eq!(hunks[0].header(), "@@ -1,3002 +1,3002 @@");
        assert_eq!(hunks[0].lines.len(), 6_002);
    }
}
