//! Formats the answers of language servers for the model.

use crate::tool::{
    files::display_path,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};
use reqwest::Url;
use serde_json::Value;
use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const ENTRIES_MAX: usize = 100;
const LINE_CHARS_MAX: usize = 200;
/// Only files of the session are read for their lines.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The names of the kinds of symbols, by their number in the protocol, from 1.
const SYMBOL_KINDS: [&str; 26] = [
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "enum member",
    "struct",
    "event",
    "operator",
    "type parameter",
];

/// One line for each location: path, line, and the text of the line.
pub(super) fn format_locations(answer: &Value, dirs: &[PathBuf]) -> String {
    let one = std::slice::from_ref(answer);
    let locations = answer.as_array().map_or(one, Vec::as_slice);
    let mut files: HashMap<PathBuf, Option<String>> = HashMap::new();
    let mut text = String::new();
    let mut count = 0;
    for location in locations {
        // A link has other names for the same members.
        let uri = location["uri"].as_str().or(location["targetUri"].as_str());
        let range = if location["targetSelectionRange"].is_object() {
            &location["targetSelectionRange"]
        } else {
            &location["range"]
        };
        let Some(path) = uri.and_then(|it| Url::parse(it).ok()?.to_file_path().ok()) else {
            continue;
        };
        count += 1;
        if ENTRIES_MAX < count {
            continue;
        }
        let line = range["start"]["line"].as_u64().unwrap_or_default();
        let content = files.entry(path.clone()).or_insert_with(|| read_session_file(&path, dirs));
        let index = usize::try_from(line).unwrap_or(usize::MAX);
        let content = content.as_deref().and_then(|it| it.lines().nth(index)).unwrap_or_default();
        let content: String = content.trim().chars().take(LINE_CHARS_MAX).collect();
        let _ = writeln!(text, "{}:{}: {content}", display_path(&path, dirs), line + 1);
    }
    finish(text, count, "Nothing was found.")
}

fn read_session_file(path: &Path, dirs: &[PathBuf]) -> Option<String> {
    let is_inside = dirs.iter().any(|it| path.starts_with(it));
    let is_small = path.metadata().is_ok_and(|it| it.is_file() && it.len() <= FILE_BYTES_MAX);
    (is_inside && is_small).then(|| fs::read_to_string(path).ok()).flatten()
}

/// Hover text is a string, an object with `value`, or a list of both.
pub(super) fn format_hover(answer: &Value) -> String {
    fn collect(contents: &Value, parts: &mut Vec<String>) {
        match contents {
            Value::String(text) => parts.push(text.clone()),
            Value::Array(list) => list.iter().for_each(|it| collect(it, parts)),
            other => parts.extend(other["value"].as_str().map(str::to_owned)),
        }
    }
    let mut parts = Vec::new();
    collect(&answer["contents"], &mut parts);
    let text = parts.join("\n");
    finish(text.trim().to_owned(), 0, "The server knows nothing about this place.")
}

pub(super) fn format_symbols(answer: &Value) -> String {
    fn add(symbols: &Value, depth: usize, count: &mut usize, text: &mut String) {
        for symbol in symbols.as_array().into_iter().flatten() {
            *count += 1;
            if *count <= ENTRIES_MAX {
                let kind = symbol["kind"].as_u64().and_then(|it| usize::try_from(it).ok());
                let kind = kind.and_then(|it| SYMBOL_KINDS.get(it.checked_sub(1)?));
                let is_nested = symbol["selectionRange"].is_object();
                let range = if is_nested {
                    &symbol["selectionRange"]
                } else {
                    &symbol["location"]["range"]
                };
                let line = range["start"]["line"].as_u64().unwrap_or_default() + 1;
                let name = symbol["name"].as_str().unwrap_or_default();
                let indent = "  ".repeat(depth);
                let _ = writeln!(text, "{indent}{line}: {} {name}", kind.unwrap_or(&"symbol"));
            }
            add(&symbol["children"], depth + 1, count, text);
        }
    }
    let (mut text, mut count) = (String::new(), 0);
    add(answer, 0, &mut count, &mut text);
    finish(text, count, "The file has no symbols.")
}

/// `None` if the server has reported nothing in time.
pub(super) fn format_diagnostics(file: &str, found: Option<&Value>) -> String {
    let Some(found) = found else {
        return "The server has not reported anything about this file in time.".to_owned();
    };
    let (mut text, mut count) = (String::new(), 0);
    for diagnostic in found.as_array().into_iter().flatten() {
        count += 1;
        if ENTRIES_MAX < count {
            continue;
        }
        let line = diagnostic["range"]["start"]["line"].as_u64().unwrap_or_default() + 1;
        let severity = match diagnostic["severity"].as_u64() {
            Some(2) => "warning",
            Some(3) => "information",
            Some(4) => "hint",
            _ => "error",
        };
        let message = diagnostic["message"].as_str().unwrap_or_default().trim();
        let _ = writeln!(text, "{file}:{line}: {severity}: {message}");
    }
    finish(text, count, "The file has no problems.")
}

fn finish(mut text: String, count: usize, if_empty: &str) -> String {
    if text.is_empty() {
        return if_empty.to_owned();
    }
    if ENTRIES_MAX < count {
        let _ = writeln!(text, "[… {} more …]", count - ENTRIES_MAX);
    }
    truncate_middle(&text, OUTPUT_CHARS_MAX, "ask for less")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn symbols_are_shown_as_a_tree() {
        let place = |line: u64| json!({ "start": { "line": line } });
        let method = json!({ "name": "run", "kind": 6, "selectionRange": place(2) });
        let class =
            json!({ "name": "Job", "kind": 5, "selectionRange": place(1), "children": [method] });
        let flat = json!({ "name": "x", "kind": 99, "location": { "range": place(8) } });
        let text = format_symbols(&json!([class, flat]));
        assert_eq!(text, "2: class Job\n  3: method run\n9: symbol x\n");
        assert_eq!(format_symbols(&Value::Null), "The file has no symbols.");
    }

    #[test]
    fn hover_text_is_read_in_all_its_forms() {
        for contents in [json!("int"), json!({ "value": "int" }), json!([{ "value": "int" }])] {
            assert_eq!(format_hover(&json!({ "contents": contents })), "int");
        }
        assert!(format_hover(&Value::Null).starts_with("The server knows nothing"));
    }

    #[test]
    fn diagnostics_have_line_and_severity() {
        let found =
            json!([{ "range": { "start": { "line": 4 } }, "severity": 2, "message": "unused\n" }]);
        assert_eq!(format_diagnostics("a.py", Some(&found)), "a.py:5: warning: unused\n");
        assert_eq!(format_diagnostics("a.py", Some(&json!([]))), "The file has no problems.");
    }
}
