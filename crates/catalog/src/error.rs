//! The error of an invalid file, and the line that it is on.

use std::{fmt, ops::Range};
use toml::de::{DeTable, DeValue};

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogError {
    /// Counted from 1; absent if the error concerns the whole file.
    pub line: Option<usize>,
    pub reason: String,
}

impl CatalogError {
    /// An error that concerns the whole file.
    pub(crate) fn for_file(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    /// The message of the TOML parser, without its excerpt of the file.
    pub(crate) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        // The parser reports a missing top-level key at offset 0, which is not its line.
        let has_no_line =
            |it: &Range<usize>| it.start == 0 && error.message().starts_with("missing");
        let line = error.span().filter(|it| !has_no_line(it)).map(|it| line_number(text, &it));
        Self { line, reason: error.message().trim_end().replace('\n', ", ") }
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for CatalogError {}

/// One step of the path to a value in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathStep {
    Key(&'static str),
    Item(usize),
}

/// The line of the value, or of the nearest enclosing table if the file does not contain the value.
pub(crate) fn locate_line(text: &str, path: &[PathStep]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut span: Option<Range<usize>> = None;
    let mut next = match path.first()? {
        PathStep::Key(key) => root.get_ref().get(*key),
        PathStep::Item(_) => None,
    };
    for step in path.iter().skip(1).map(Some).chain([None]) {
        let Some(value) = next else { break };
        span = Some(value.span());
        next = match (step, value.get_ref()) {
            (Some(PathStep::Key(key)), DeValue::Table(table)) => table.get(*key),
            (Some(PathStep::Item(index)), DeValue::Array(array)) => array.get(*index),
            _ => None,
        };
    }
    span.map(|it| line_number(text, &it))
}

fn line_number(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "id = \"a\"\n[[launch]]\nargs = [\n  \"x\",\n  \"y\",\n]\n[[launch]]\ndialect = \"z\"\n";

    #[test]
    fn value_is_located_on_its_line() {
        use PathStep::{Item, Key};
        assert_eq!(locate_line(TEXT, &[Key("id")]), Some(1));
        assert_eq!(locate_line(TEXT, &[Key("launch"), Item(0), Key("args"), Item(1)]), Some(5));
        assert_eq!(locate_line(TEXT, &[Key("launch"), Item(1), Key("dialect")]), Some(8));
    }

    #[test]
    fn missing_value_is_located_on_the_line_of_its_table() {
        use PathStep::{Item, Key};
        assert_eq!(locate_line(TEXT, &[Key("launch"), Item(1), Key("args")]), Some(7));
        assert_eq!(locate_line(TEXT, &[Key("bins")]), None);
    }
}
