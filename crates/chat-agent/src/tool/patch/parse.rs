//! Parses a patch: one that starts with `*** Begin Patch`, or a unified diff.

use super::{HunkLine, PatchHunk, PatchSection, unified_diff};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn parse_patch(patch: &str) -> Result<Vec<PatchSection>, String> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    // The whole patch was written with CRLF line endings.
    if lines.iter().all(|it| it.is_empty() || it.ends_with('\r')) {
        lines = lines.into_iter().map(|it| it.trim_end_matches('\r')).collect();
    }
    let is_header =
        |it: &&str| [BEGIN, ADD, DELETE, UPDATE].iter().any(|head| it.starts_with(head));
    let sections = match lines.iter().position(is_header) {
        Some(first) => PatchReader { lines: &lines, next: first }.read_sections()?,
        None => unified_diff::parse_diff(&lines)?,
    };
    if sections.is_empty() {
        return Err(format!(
            "The patch names no file. It begins with `{BEGIN}`, then `{UPDATE}PATH`, then `@@` and \
             lines that begin with a space, `-` or `+`, and ends with `{END}`."
        ));
    }
    Ok(sections)
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    /// The index of the next line.
    next: usize,
}

impl<'a> PatchReader<'a> {
    fn read_sections(&mut self) -> Result<Vec<PatchSection>, String> {
        let mut sections = Vec::new();
        while let Some(line) = self.next_line() {
            if line.starts_with(END) {
                break;
            } else if let Some(path) = line.strip_prefix(ADD) {
                let (path, text) = (path.trim().to_owned(), self.read_added_text());
                sections.push(PatchSection::Add { path, text });
            } else if let Some(path) = line.strip_prefix(DELETE) {
                sections.push(PatchSection::Delete { path: path.trim().to_owned() });
            } else if let Some(path) = line.strip_prefix(UPDATE) {
                let path = path.trim().to_owned();
                let new_path = self.peek_line().and_then(|it| it.strip_prefix(MOVE));
                let new_path = new_path.map(|it| it.trim().to_owned());
                self.next += usize::from(new_path.is_some());
                let hunks = self.read_hunks()?;
                sections.push(PatchSection::Update { path, new_path, hunks });
            } else if !line.starts_with(BEGIN) && !line.trim().is_empty() {
                return Err(self.describe_error(line, "does not start a section"));
            }
        }
        Ok(sections)
    }

    /// Reads the lines of a new file.
    fn read_added_text(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) = self.next_section_line() {
            // Some models omit the plus sign of an empty line.
            text.push_str(line.strip_prefix('+').unwrap_or(line));
            text.push('\n');
        }
        text
    }

    fn read_hunks(&mut self) -> Result<Vec<PatchHunk>, String> {
        let mut hunks: Vec<PatchHunk> = Vec::new();
        let mut hunk = PatchHunk::default();
        while let Some(line) = self.next_section_line() {
            if let Some(preceding) = line.strip_prefix("@@") {
                if !hunk.lines.is_empty() {
                    hunks.push(trim_hunk(std::mem::take(&mut hunk)));
                }
                match unified_diff::parse_position(line) {
                    Some(position) => hunk.position = Some(position),
                    None if preceding.trim().is_empty() => {}
                    None => {
                        let preceding = preceding.strip_prefix(' ').unwrap_or(preceding);
                        hunk.preceding.push(preceding.to_owned());
                    }
                }
            } else if line.starts_with(END_OF_FILE) {
                hunk.is_at_end = true;
            } else {
                let line = parse_line(line).ok_or_else(|| {
                    self.describe_error(line, "begins with neither a space nor `-` nor `+`")
                })?;
                hunk.lines.push(line);
            }
        }
        if !hunk.lines.is_empty() {
            hunks.push(trim_hunk(hunk));
        }
        Ok(hunks)
    }

    fn peek_line(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn next_line(&mut self) -> Option<&'a str> {
        let line = self.peek_line()?;
        self.next += 1;
        Some(line)
    }

    /// Returns the next line of the current section.
    fn next_section_line(&mut self) -> Option<&'a str> {
        let line = self.peek_line()?;
        let is_header = [ADD, DELETE, UPDATE, END].iter().any(|it| line.starts_with(it));
        // After the last line break, there is one empty line that is not part of the patch.
        let is_end = line.is_empty() && self.next + 1 == self.lines.len();
        if is_header || is_end { None } else { self.next_line() }
    }

    fn describe_error(&self, line: &str, problem: &str) -> String {
        format!("Line {} of the patch {problem}: `{line}`.", self.next)
    }
}

pub(super) fn parse_line(line: &str) -> Option<HunkLine> {
    let text = || line[1..].to_owned();
    match line.as_bytes().first() {
        // Some models omit the space of an empty line.
        None => Some(HunkLine::Context(String::new())),
        Some(b' ') => Some(HunkLine::Context(text())),
        Some(b'-') => Some(HunkLine::Removed(text())),
        Some(b'+') => Some(HunkLine::Added(text())),
        Some(_) => None,
    }
}

/// Removes empty lines at the end, which only separate hunks visually.
fn trim_hunk(mut hunk: PatchHunk) -> PatchHunk {
    let is_empty = |it: &HunkLine| matches!(it, HunkLine::Context(text) if text.is_empty());
    while hunk.lines.last().is_some_and(is_empty) {
        hunk.lines.pop();
    }
    hunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_parsed() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+one\n+\n\
            *** Update File: b\n*** Move to: c\n@@ class X\n@@ def f\n same\n-old\n+new\n\n\
            @@\n-last\n*** End of File\n*** Delete File: d\n*** End Patch\nEOF\n";
        let [add, update, delete] = &parse_patch(patch).unwrap()[..] else { panic!() };
        assert_eq!(*add, PatchSection::Add { path: "a".into(), text: "one\n\n".into() });
        assert_eq!(*delete, PatchSection::Delete { path: "d".into() });
        let PatchSection::Update { path, new_path, hunks } = update else { panic!("{update:?}") };
        assert_eq!((path.as_str(), new_path.as_deref(), hunks.len()), ("b", Some("c"), 2));
        assert_eq!(hunks[0].preceding, ["class X", "def f"]);
        assert_eq!(hunks[0].lines.len(), 3);
        assert!(hunks[1].is_at_end && !hunks[0].is_at_end);
    }

    #[test]
    fn invalid_patch_is_explained() {
        let error = parse_patch("change the file please").unwrap_err();
        assert!(error.contains("`*** Begin Patch`"), "{error}");
        let error =
            parse_patch("*** Begin Patch\n*** Update File: a\n@@\nold\n*** End Patch").unwrap_err();
        assert_eq!(
            error,
            "Line 4 of the patch begins with neither a space nor `-` nor `+`: `old`."
        );
    }
}
