//! Reads a patch: `*** Begin Patch` and what follows, or a unified diff.

use super::{Hunk, Line, Section, unified};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn parse(patch: &str) -> Result<Vec<Section>, String> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    // Written with the line ends of another system, all of it.
    if lines.iter().all(|it| it.is_empty() || it.ends_with('\r')) {
        lines = lines.into_iter().map(|it| it.trim_end_matches('\r')).collect();
    }
    let is_ours = |it: &&str| [BEGIN, ADD, DELETE, UPDATE].iter().any(|head| it.starts_with(head));
    let sections = match lines.iter().position(is_ours) {
        Some(first) => Reader { lines: &lines, at: first }.sections()?,
        None => unified::parse(&lines)?,
    };
    if sections.is_empty() {
        return Err(format!(
            "The patch says nothing about any file. It begins with `{BEGIN}`, then `{UPDATE}PATH`, \
             then `@@` and lines that begin with a space, `-` or `+`, and ends with `{END}`."
        ));
    }
    Ok(sections)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    fn sections(&mut self) -> Result<Vec<Section>, String> {
        let mut sections = Vec::new();
        while let Some(line) = self.next() {
            if line.starts_with(END) {
                break;
            } else if let Some(path) = line.strip_prefix(ADD) {
                sections.push(Section::Add { path: path.trim().to_owned(), text: self.added() });
            } else if let Some(path) = line.strip_prefix(DELETE) {
                sections.push(Section::Delete { path: path.trim().to_owned() });
            } else if let Some(path) = line.strip_prefix(UPDATE) {
                let to = self.peek().and_then(|it| it.strip_prefix(MOVE));
                self.at += usize::from(to.is_some());
                let (path, to) = (path.trim().to_owned(), to.map(|it| it.trim().to_owned()));
                sections.push(Section::Update { path, to, hunks: self.hunks()? });
            } else if !line.starts_with(BEGIN) && !line.trim().is_empty() {
                return Err(self.wrong(line, "is no head of a section"));
            }
        }
        Ok(sections)
    }

    /// The lines of a new file.
    fn added(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) = self.next_of_section() {
            // Some forget the plus before an empty line.
            text.push_str(line.strip_prefix('+').unwrap_or(line));
            text.push('\n');
        }
        text
    }

    fn hunks(&mut self) -> Result<Vec<Hunk>, String> {
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut hunk = Hunk::default();
        while let Some(line) = self.next_of_section() {
            if let Some(above) = line.strip_prefix("@@") {
                if !hunk.lines.is_empty() {
                    hunks.push(finish(std::mem::take(&mut hunk)));
                }
                match unified::place(line) {
                    Some(at) => hunk.at = Some(at),
                    None if above.trim().is_empty() => {}
                    None => hunk.above.push(above.strip_prefix(' ').unwrap_or(above).to_owned()),
                }
            } else if line.starts_with(END_OF_FILE) {
                hunk.at_end = true;
            } else {
                let line = line_of(line).ok_or_else(|| {
                    self.wrong(line, "begins with neither a space nor `-` nor `+`")
                })?;
                hunk.lines.push(line);
            }
        }
        if !hunk.lines.is_empty() {
            hunks.push(finish(hunk));
        }
        Ok(hunks)
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    fn next_of_section(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        let is_head = [ADD, DELETE, UPDATE, END].iter().any(|it| line.starts_with(it));
        // The last line has a line end too.
        let is_end = line.is_empty() && self.at + 1 == self.lines.len();
        if is_head || is_end { None } else { self.next() }
    }

    fn wrong(&self, line: &str, what: &str) -> String {
        format!("Line {} of the patch {what}: `{line}`.", self.at)
    }
}

pub(super) fn line_of(line: &str) -> Option<Line> {
    let text = || line[1..].to_owned();
    match line.as_bytes().first() {
        // Some strip the space of an empty line.
        None => Some(Line::Same(String::new())),
        Some(b' ') => Some(Line::Same(text())),
        Some(b'-') => Some(Line::Old(text())),
        Some(b'+') => Some(Line::New(text())),
        Some(_) => None,
    }
}

/// Empty lines between two hunks are there for the eye.
fn finish(mut hunk: Hunk) -> Hunk {
    let is_empty = |it: &Line| matches!(it, Line::Same(text) if text.is_empty());
    while hunk.lines.last().is_some_and(is_empty) {
        hunk.lines.pop();
    }
    hunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_read() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+one\n+\n\
            *** Update File: b\n*** Move to: c\n@@ class X\n@@ def f\n same\n-old\n+new\n\n\
            @@\n-last\n*** End of File\n*** Delete File: d\n*** End Patch\nEOF\n";
        let [add, update, delete] = &parse(patch).unwrap()[..] else { panic!() };
        assert_eq!(*add, Section::Add { path: "a".into(), text: "one\n\n".into() });
        assert_eq!(*delete, Section::Delete { path: "d".into() });
        let Section::Update { path, to, hunks } = update else { panic!("{update:?}") };
        assert_eq!((path.as_str(), to.as_deref(), hunks.len()), ("b", Some("c"), 2));
        assert_eq!(hunks[0].above, ["class X", "def f"]);
        assert_eq!(hunks[0].lines.len(), 3);
        assert!(hunks[1].at_end && !hunks[0].at_end);
    }

    #[test]
    fn what_is_no_patch_is_told_with_the_shape_of_one() {
        let why = parse("change the file please").unwrap_err();
        assert!(why.contains("`*** Begin Patch`"), "{why}");
        let why = parse("*** Begin Patch\n*** Update File: a\n@@\nold\n*** End Patch").unwrap_err();
        assert_eq!(why, "Line 4 of the patch begins with neither a space nor `-` nor `+`: `old`.");
    }
}
