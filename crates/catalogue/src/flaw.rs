//! What is wrong with a file, and on which line.

use std::{fmt, ops::Range};
use toml::de::{DeTable, DeValue};

/// Why a file is no spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Counted from 1; absent if the whole file is meant.
    pub line: Option<usize>,
    pub reason: String,
}

impl Flaw {
    /// A flaw of the file as a whole.
    pub(crate) fn of_file(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    /// What the TOML reader says, without its drawing of the line.
    pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        // A key that is missing from the file itself is missing on no line of it.
        let nowhere = |it: &Range<usize>| it.start == 0 && error.message().starts_with("missing");
        let line = error.span().filter(|it| !nowhere(it)).map(|it| line_of(text, &it));
        Self { line, reason: error.message().trim_end().replace('\n', ", ") }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for Flaw {}

/// A step on the way to a value in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Key(&'static str),
    Item(usize),
}

/// The line on which the value stands, or the nearest table around it if the file leaves it out.
pub(crate) fn locate(text: &str, path: &[Step]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut found: Option<Range<usize>> = None;
    let mut next = match path.first()? {
        Step::Key(key) => root.get_ref().get(*key),
        Step::Item(_) => None,
    };
    for step in path.iter().skip(1).map(Some).chain([None]) {
        let Some(value) = next else { break };
        found = Some(value.span());
        next = match (step, value.get_ref()) {
            (Some(Step::Key(key)), DeValue::Table(table)) => table.get(*key),
            (Some(Step::Item(index)), DeValue::Array(array)) => array.get(*index),
            _ => None,
        };
    }
    found.map(|it| line_of(text, &it))
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "id = \"a\"\n[[launch]]\nargs = [\n  \"x\",\n  \"y\",\n]\n[[launch]]\ndialect = \"z\"\n";

    #[test]
    fn a_value_is_found_on_its_line() {
        use Step::{Item, Key};
        assert_eq!(locate(TEXT, &[Key("id")]), Some(1));
        assert_eq!(locate(TEXT, &[Key("launch"), Item(0), Key("args"), Item(1)]), Some(5));
        assert_eq!(locate(TEXT, &[Key("launch"), Item(1), Key("dialect")]), Some(8));
    }

    #[test]
    fn a_value_that_is_not_there_is_on_the_line_of_its_table() {
        use Step::{Item, Key};
        assert_eq!(locate(TEXT, &[Key("launch"), Item(1), Key("args")]), Some(7));
        assert_eq!(locate(TEXT, &[Key("bins")]), None);
    }
}
