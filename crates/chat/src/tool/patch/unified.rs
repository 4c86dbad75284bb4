//! Reads a unified diff, as `diff -u` and git write it.

use super::{Hunk, Line, Section, parse::line_of};

const OLD: &str = "--- ";
const NEW: &str = "+++ ";
const HUNK: &str = "@@ ";
/// Stands for no file.
const NOTHING: &str = "/dev/null";
const NO_NEWLINE: &str = "\\ ";

pub(super) fn parse(lines: &[&str]) -> Result<Vec<Section>, String> {
    let heads: Vec<usize> = heads(lines);
    let ends = heads.iter().skip(1).copied().chain([lines.len()]);
    heads.iter().zip(ends).map(|(head, end)| section(&lines[*head..end])).collect()
}

/// How many lines of the old file are before a hunk, by its head.
pub(super) fn place(head: &str) -> Option<usize> {
    let (start, count) = range(head)?;
    Some(if count == 0 { start } else { start.saturating_sub(1) })
}

/// Of the old file: the first line and how many.
fn range(head: &str) -> Option<(usize, usize)> {
    let range = head.strip_prefix("@@ -")?.split([' ', '+']).next()?;
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// Where sections begin. A removed line may look like a head, but not three lines in a row inside a
/// hunk that is not over.
fn heads(lines: &[&str]) -> Vec<usize> {
    let mut heads = Vec::new();
    let mut left = 0;
    for (at, window) in lines.windows(3).enumerate() {
        let is_head =
            window[0].starts_with(OLD) && window[1].starts_with(NEW) && window[2].starts_with(HUNK);
        if let Some((_, count)) = range(window[0]) {
            left = count;
        } else if is_head && left == 0 {
            heads.push(at);
        } else if window[0].is_empty() || window[0].starts_with([' ', '-']) {
            left = left.saturating_sub(1);
        }
    }
    heads
}

fn section(lines: &[&str]) -> Result<Section, String> {
    let (old, new) = (path(lines[0], OLD, "a/"), path(lines[1], NEW, "b/"));
    let hunks = hunks(&lines[2..])?;
    if new == NOTHING {
        return Ok(Section::Delete { path: old });
    }
    if old == NOTHING {
        let text = super::apply::apply("", &hunks)?;
        return Ok(Section::Add { path: new, text });
    }
    let to = (old != new).then_some(new);
    Ok(Section::Update { path: old, to, hunks })
}

/// Without git's first directory and without the time behind it.
fn path(line: &str, head: &str, first: &str) -> String {
    let path = line.strip_prefix(head).unwrap_or(line);
    let path = path.split('\t').next().unwrap_or(path).trim();
    path.strip_prefix(first).unwrap_or(path).to_owned()
}

fn hunks(lines: &[&str]) -> Result<Vec<Hunk>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Whether the last line of the old and of the new file ends without a line end.
    let (mut open_old, mut open_new) = (false, false);
    for line in lines {
        if let Some(at) = place(line) {
            hunks.push(Hunk { at: Some(at), ..Hunk::default() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        if line.starts_with(NO_NEWLINE) {
            open_old |= !matches!(hunk.lines.last(), Some(Line::New(_)));
            open_new |= !matches!(hunk.lines.last(), Some(Line::Old(_)));
        } else if line.starts_with("diff ") || line.starts_with("index ") {
            // The next file follows.
            break;
        } else if let Some(line) = line_of(line) {
            hunk.lines.push(line);
        } else {
            return Err(format!("This line of the patch belongs to no hunk: `{line}`."));
        }
    }
    if let Some(hunk) = hunks.last_mut() {
        // The end of the patch, and no line of the file.
        if lines.last().is_some_and(|it| it.is_empty()) {
            hunk.lines.pop();
        }
        // A text ends with an empty line, if its last line has a line end.
        match (open_old, open_new) {
            (true, false) => hunk.lines.push(Line::New(String::new())),
            (false, true) => hunk.lines.push(Line::Old(String::new())),
            _ => {}
        }
    }
    Ok(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_of_git_with_several_files_is_read() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn f()\n \
            same\n-old\n+new\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n\
            @@ -0,0 +1 @@\n+only\ndiff --git a/z b/z\n--- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
        let lines: Vec<&str> = diff.split('\n').collect();
        let [update, add, delete] = &parse(&lines).unwrap()[..] else { panic!() };
        let Section::Update { path, to: None, hunks } = update else { panic!("{update:?}") };
        assert_eq!((path.as_str(), hunks[0].at, hunks[0].lines.len()), ("x", Some(2), 3));
        assert_eq!(*add, Section::Add { path: "y".into(), text: "only\n".into() });
        assert_eq!(*delete, Section::Delete { path: "z".into() });
    }

    #[test]
    fn a_removed_line_may_look_like_a_head() {
        let diff =
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ three\n@@ -9 +9 @@\n-x\n+y\n";
        let lines: Vec<&str> = diff.split('\n').collect();
        let [Section::Update { hunks, .. }] = &parse(&lines).unwrap()[..] else { panic!() };
        assert_eq!(hunks[0].lines[1], Line::Old("-- two".into()));
        assert_eq!(hunks[0].lines[2], Line::New("++ three".into()));
        assert_eq!(hunks.len(), 2);
    }
}
