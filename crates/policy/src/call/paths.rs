//! The paths of a call: where it says so, in its diffs, in its input, in a patch.

use super::Told;
use crate::glob::Place;
use serde_json::Value;

/// Keys under which agents put a path.
const KEYS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "filepath",
    "fileName",
    "file_name",
    "filename",
    "absolute_path",
    "notebook_path",
    "target_file",
    "dir_path",
    "directory",
    "move_path",
    "old_path",
    "new_path",
    "source",
    "destination",
];

/// The lines of a patch that name files.
const PATCH: &[&str] =
    &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

pub(super) fn paths(told: &Told<'_>, place: &Place<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for item in told.member("locations").as_array().into_iter().flatten() {
        found.extend(item["path"].as_str().map(str::to_owned));
    }
    for item in told.member("content").as_array().into_iter().flatten() {
        found.extend(item["path"].as_str().map(str::to_owned));
    }
    of_input(told.input(), &mut found);
    told.streamed().for_each(|it| of_input(&it, &mut found));
    let mut paths: Vec<String> = Vec::new();
    for path in found.iter().filter(|it| !it.is_empty()) {
        let path = place.absolute(path);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn of_input(input: &Value, found: &mut Vec<String>) {
    match input {
        // A list of changes, each with its path.
        Value::Array(items) => items.iter().for_each(|it| of_input(it, found)),
        Value::Object(members) => {
            for key in KEYS {
                texts(&input[*key], found);
            }
            texts(&input["kind"]["move_path"], found);
            match &input["changes"] {
                Value::Object(changes) => found.extend(changes.keys().cloned()),
                changes => of_input(changes, found),
            }
            members.values().filter_map(Value::as_str).for_each(|it| of_patch(it, found));
            let argv = input["command"].as_array().into_iter().flatten();
            argv.filter_map(Value::as_str).for_each(|it| of_patch(it, found));
        }
        Value::String(text) => of_patch(text, found),
        _ => {}
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(it) => found.push(it.clone()),
        Value::Array(items) => {
            found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            found.extend(items.iter().filter_map(|it| it["path"].as_str()).map(str::to_owned));
        }
        _ => {}
    }
}

fn of_patch(text: &str, found: &mut Vec<String>) {
    if !text.contains("*** Begin Patch") {
        return;
    }
    let named = |line: &str| PATCH.iter().find_map(|it| line.strip_prefix(it)).map(str::to_owned);
    found.extend(text.lines().filter_map(named));
}
