//! The text of `config.toml` with the lines of its keys, and the errors in it.

use super::{
    Settings,
    keys::{CONFIG_KEYS, ConfigKey, find_config_key},
};
use jackfield_protocol::suggest_name;
use serde::Deserialize as _;
use std::{collections::BTreeSet, fmt};
use toml::de::{DeTable, DeValue};

/// An error in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLineError {
    /// Counted from 1.
    pub line: Option<usize>,
    /// What is wrong and how to correct it.
    pub reason: String,
}

impl fmt::Display for ConfigLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// A setting whose value is of the right type and cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidSetting {
    /// Its path, as in `["agents", "goose", "fallback"]`.
    pub(crate) path: Vec<String>,
    pub(crate) reason: String,
}

impl InvalidSetting {
    pub(crate) fn new(path: &[&str], reason: impl Into<String>) -> InvalidSetting {
        let path = path.iter().map(|&it| it.to_owned()).collect();
        InvalidSetting { path, reason: reason.into() }
    }
}

/// The parsed text.
#[derive(Debug)]
pub struct ConfigDocument<'a> {
    text: &'a str,
    root: DeTable<'a>,
    values: toml::Table,
}

impl<'a> ConfigDocument<'a> {
    pub fn parse(text: &'a str) -> Result<ConfigDocument<'a>, ConfigLineError> {
        let describe = |error: toml::de::Error| {
            let line = error.span().map(|it| line_at(text, it.start));
            ConfigLineError { line, reason: describe_toml_error(&error) }
        };
        let root = DeTable::parse(text).map_err(describe)?.into_inner();
        let values = toml::from_str(text).map_err(describe)?;
        Ok(ConfigDocument { text, root, values })
    }

    /// The line of a key, or of the nearest table above it.
    pub fn find_line(&self, path: &[&str]) -> Option<usize> {
        let (mut line, mut table) = (None, &self.root);
        for segment in path {
            let Some((key, value)) = table.get_key_value(*segment) else { break };
            line = Some(line_at(self.text, key.span().start));
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        line
    }

    /// All unknown keys, and all values of a wrong type.
    pub(crate) fn find_problems(&self) -> Vec<ConfigLineError> {
        let mut problems = Vec::new();
        self.check_table(&self.root, &mut Vec::new(), &mut problems);
        problems.sort_by_key(|it| it.line);
        problems
    }

    fn check_table<'t>(
        &self,
        table: &'t DeTable<'_>,
        path: &mut Vec<&'t str>,
        problems: &mut Vec<ConfigLineError>,
    ) {
        for (key, value) in table {
            path.push(key.get_ref());
            let mut add_problem = |offset: usize, reason: String| {
                problems.push(ConfigLineError { line: Some(line_at(self.text, offset)), reason });
            };
            match value.get_ref() {
                _ if !CONFIG_KEYS.iter().any(|it| it.starts_with(path)) => {
                    add_problem(key.span().start, describe_unknown_key(path));
                }
                DeValue::Table(inner) if find_config_key(path).is_none() => {
                    self.check_table(inner, path, problems);
                }
                _ => {
                    if let Err(error) = Settings::deserialize(nest_value(path, &self.values)) {
                        add_problem(value.span().start, describe_wrong_value(path, &error));
                    }
                }
            }
            path.pop();
        }
    }

    pub(crate) fn deserialize(&self) -> Result<Settings, ConfigLineError> {
        Settings::deserialize(self.values.clone())
            .map_err(|error| ConfigLineError { line: None, reason: describe_toml_error(&error) })
    }

    pub(crate) fn locate(&self, invalid: InvalidSetting) -> ConfigLineError {
        let path: Vec<&str> = invalid.path.iter().map(String::as_str).collect();
        ConfigLineError { line: self.find_line(&path), reason: invalid.reason }
    }
}

/// The table that contains only this value, so that each value is checked alone.
fn nest_value(path: &[&str], values: &toml::Table) -> toml::Table {
    let Some((first, rest)) = path.split_first() else { return values.clone() };
    let value = match values.get(*first) {
        Some(toml::Value::Table(inner)) => nest_value(rest, inner).into(),
        other => other.cloned().unwrap_or_else(|| toml::Table::new().into()),
    };
    [((*first).to_owned(), value)].into_iter().collect()
}

fn describe_wrong_value(path: &[&str], error: &toml::de::Error) -> String {
    let (name, what) = (path.join("."), describe_toml_error(error));
    match find_config_key(path) {
        Some(key) => {
            let value_type = key.value_type.describe();
            format!("`{name}` must be a {value_type}, as in `{}`: {what}", key.example)
        }
        None => format!("`{name}` must be a table: {what}"),
    }
}

/// Names the valid keys in place of an unknown one. The path is not empty.
pub fn describe_unknown_key(path: &[&str]) -> String {
    let (last, above) = path.split_last().expect("a key has a name");
    let is_beside = |it: &&ConfigKey| above.len() < it.segments().count() && it.starts_with(above);
    let names =
        CONFIG_KEYS.iter().filter(is_beside).filter_map(|it| it.segments().nth(above.len()));
    let names: BTreeSet<&str> = names.collect();
    let place = if above.is_empty() { String::new() } else { format!(" in [{}]", above.join(".")) };
    let suggestion = suggest_name(last, names.iter().copied());
    if !suggestion.is_empty() {
        return format!("unknown key `{last}`{place}{suggestion}");
    }
    let known = names.into_iter().collect::<Vec<_>>().join("`, `");
    format!("unknown key `{last}`{place}; valid keys are `{known}`")
}

/// The message of the TOML parser in one line, without its excerpt of the text.
fn describe_toml_error(error: &toml::de::Error) -> String {
    error.message().trim_end().replace('\n', ", ")
}

fn line_at(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match ConfigDocument::parse(text) {
            Ok(document) => document.find_problems().iter().map(ToString::to_string).collect(),
            Err(problem) => vec![problem.to_string()],
        }
    }

    #[test]
    fn all_errors_are_reported_with_line_reason_and_solution() {
        let text = "idle_after = \"soon\"\nagnets = 1\n[liveness]\ntool = \"20 minutes\"\nthinkin = \"1m\"\n\
                    [agents.x]\nwarm = -1\nenv = { A = 1 }\n[agents.x.mistake]\ny = 2\n";
        let found = problems(text);
        let expected = [
            ("line 1: ", "`idle_after` must be a number, as in `3600`: "),
            ("line 2: ", "unknown key `agnets`; did you mean `agents`?"),
            ("line 4: ", "not a duration"),
            ("line 5: ", "unknown key `thinkin` in [liveness]; did you mean `thinking`?"),
            ("line 7: ", "`agents.x.warm` must be a number"),
            ("line 8: ", "`agents.x.env` must be a table of texts"),
            ("line 9: ", "unknown key `mistake` in [agents.x]; valid keys are `command`"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, (line, reason)) in found.iter().zip(expected) {
            assert!(found.starts_with(line) && found.contains(reason), "{found}");
        }
    }

    #[test]
    fn broken_syntax_and_a_value_in_place_of_a_table_are_reported() {
        assert!(
            problems("a = 1\n[http\n")[0].starts_with("line 2: "),
            "{:?}",
            problems("a = 1\n[http\n")
        );
        assert!(problems("http = 3\n")[0].starts_with("line 1: `http` must be a table: "));
        assert!(problems("").is_empty());
    }

    #[test]
    fn line_of_a_missing_key_is_that_of_its_table() {
        let document = ConfigDocument::parse("\n[agents.x]\nwarm = 1\n").unwrap();
        assert_eq!(document.find_line(&["agents", "x", "warm"]), Some(3));
        assert_eq!(document.find_line(&["agents", "x", "fallback"]), Some(2));
        assert_eq!(document.find_line(&["http"]), None);
    }
}
