//! Parses a unified diff, as `diff -u` and git write it.

use super::{HunkLine, PatchHunk, PatchSection, apply::apply_hunks, parse::parse_line};

const OLD_FILE: &str = "--- ";
const NEW_FILE: &str = "+++ ";
const HUNK: &str = "@@ ";
/// The name of a file that does not exist.
const NO_FILE: &str = "/dev/null";
const NO_NEWLINE: &str = "\\ ";

pub(super) fn parse_diff(lines: &[&str]) -> Result<Vec<PatchSection>, String> {
    let headers = find_headers(lines);
    let ends = headers.iter().skip(1).copied().chain([lines.len()]);
    headers.iter().zip(ends).map(|(start, end)| parse_section(&lines[*start..end])).collect()
}

/// Returns how many lines of the old file come before a hunk, from the header of the hunk.
pub(super) fn parse_position(header: &str) -> Option<usize> {
    let (start, count) = parse_old_range(header)?;
    Some(if count == 0 { start } else { start.saturating_sub(1) })
}

/// Returns the number of the first line and the number of lines in the old file.
fn parse_old_range(header: &str) -> Option<(usize, usize)> {
    let range = header.strip_prefix("@@ -")?.split([' ', '+']).next()?;
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// Returns where sections begin. A removed line may look like a header, but three lines that look
/// like one inside a hunk belong to the hunk as long as it is not complete.
fn find_headers(lines: &[&str]) -> Vec<usize> {
    let mut headers = Vec::new();
    let mut remaining = 0;
    for (at, window) in lines.windows(3).enumerate() {
        let is_header = window[0].starts_with(OLD_FILE)
            && window[1].starts_with(NEW_FILE)
            && window[2].starts_with(HUNK);
        if let Some((_, count)) = parse_old_range(window[0]) {
            remaining = count;
        } else if is_header && remaining == 0 {
            headers.push(at);
        } else if window[0].is_empty() || window[0].starts_with([' ', '-']) {
            remaining = remaining.saturating_sub(1);
        }
    }
    headers
}

fn parse_section(lines: &[&str]) -> Result<PatchSection, String> {
    let old = parse_file_name(lines[0], OLD_FILE, "a/");
    let new = parse_file_name(lines[1], NEW_FILE, "b/");
    let hunks = parse_hunks(&lines[2..])?;
    if new == NO_FILE {
        return Ok(PatchSection::Delete { path: old });
    }
    if old == NO_FILE {
        let text = apply_hunks("", &hunks)?;
        return Ok(PatchSection::Add { path: new, text });
    }
    let new_path = (old != new).then_some(new);
    Ok(PatchSection::Update { path: old, new_path, hunks })
}

/// Returns the path without git's first directory and without the time stamp.
fn parse_file_name(line: &str, header: &str, first_dir: &str) -> String {
    let path = line.strip_prefix(header).unwrap_or(line);
    let path = path.split('\t').next().unwrap_or(path).trim();
    path.strip_prefix(first_dir).unwrap_or(path).to_owned()
}

fn parse_hunks(lines: &[&str]) -> Result<Vec<PatchHunk>, String> {
    let mut hunks: Vec<PatchHunk> = Vec::new();
    // Whether the old and the new file have no line break at the end.
    let (mut old_is_open, mut new_is_open) = (false, false);
    for line in lines {
        if let Some(position) = parse_position(line) {
            hunks.push(PatchHunk { position: Some(position), ..PatchHunk::default() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        if line.starts_with(NO_NEWLINE) {
            old_is_open |= !matches!(hunk.lines.last(), Some(HunkLine::Added(_)));
            new_is_open |= !matches!(hunk.lines.last(), Some(HunkLine::Removed(_)));
        } else if line.starts_with("diff ") || line.starts_with("index ") {
            // The next file follows.
            break;
        } else if let Some(line) = parse_line(line) {
            hunk.lines.push(line);
        } else {
            return Err(format!("This line of the patch is not in a hunk: `{line}`."));
        }
    }
    if let Some(hunk) = hunks.last_mut() {
        // The empty line after the last line break is not part of the file.
        if lines.last().is_some_and(|it| it.is_empty()) {
            hunk.lines.pop();
        }
        // A text whose last line has a line break ends with an empty line.
        match (old_is_open, new_is_open) {
            (true, false) => hunk.lines.push(HunkLine::Added(String::new())),
            (false, true) => hunk.lines.push(HunkLine::Removed(String::new())),
            _ => {}
        }
    }
    Ok(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_diff_with_several_files_is_parsed() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn f()\n \
            same\n-old\n+new\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n\
            @@ -0,0 +1 @@\n+only\ndiff --git a/z b/z\n--- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
        let lines: Vec<&str> = diff.split('\n').collect();
        let [update, add, delete] = &parse_diff(&lines).unwrap()[..] else { panic!() };
        let PatchSection::Update { path, new_path: None, hunks } = update else {
            panic!("{update:?}")
        };
        assert_eq!((path.as_str(), hunks[0].position, hunks[0].lines.len()), ("x", Some(2), 3));
        assert_eq!(*add, PatchSection::Add { path: "y".into(), text: "only\n".into() });
        assert_eq!(*delete, PatchSection::Delete { path: "z".into() });
    }

    #[test]
    fn removed_line_may_look_like_a_header() {
        let diff =
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ three\n@@ -9 +9 @@\n-x\n+y\n";
        let lines: Vec<&str> = diff.split('\n').collect();
        let [PatchSection::Update { hunks, .. }] = &parse_diff(&lines).unwrap()[..] else {
            panic!()
        };
        assert_eq!(hunks[0].lines[1], HunkLine::Removed("-- two".into()));
        assert_eq!(hunks[0].lines[2], HunkLine::Added("++ three".into()));
        assert_eq!(hunks.len(), 2);
    }
}
