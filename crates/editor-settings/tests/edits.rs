//! Edits of the user between `setup` and `--undo`, and files that cannot be edited.

use crate::{SECTION, add, entry};
use jackfield_editor_settings::{EditError, add_entries, remove_entries};

const BEFORE: &str = "{\n  \"a\": 1\n}\n";

fn undo(text: &str, inserted: &[jackfield_editor_settings::InsertedValue]) -> String {
    remove_entries(text, inserted).unwrap().text
}

#[test]
fn edits_of_other_parts_survive_undo() {
    let edit = add(BEFORE, &[entry("Codex"), entry("Goose")], &[]);
    let text = &edit.text;
    let other = text.replace("\"a\": 1", "\"a\": [2], // two\n  \"b\": {}");
    assert_eq!(undo(&other, &edit.inserted), "{\n  \"a\": [2], // two\n  \"b\": {}\n}\n");

    let after = text.replace("\n  }\n}\n", "\n  },\n  \"z\": 1\n}\n");
    assert_eq!(undo(&after, &edit.inserted), "{\n  \"a\": 1,\n  \"z\": 1\n}\n");

    let first = text.replace("\"agent_servers\": {", "\"agent_servers\": {\n    \"mine\": {},");
    let expected = "{\n  \"a\": 1,\n  \"agent_servers\": {\n    \"mine\": {}\n  }\n}\n";
    assert_eq!(undo(&first, &edit.inserted), expected);

    let last = text.replace("    }\n  }\n}\n", "    },\n    \"mine\": {}\n  }\n}\n");
    assert_eq!(undo(&last, &edit.inserted), expected);

    let comment = text.replace("    }\n  }\n}\n", "    }\n    // mine\n  }\n}\n");
    let kept = "{\n  \"a\": 1,\n  \"agent_servers\": {\n    // mine\n  }\n}\n";
    assert_eq!(undo(&comment, &edit.inserted), kept);
}

#[test]
fn file_that_was_formatted_anew_is_undone() {
    let edit = add(BEFORE, &[entry("Codex")], &[]);
    let tabs = edit.text.replace("  ", "\t");
    assert_eq!(undo(&tabs, &edit.inserted), "{\n\t\"a\": 1\n}\n");
    let one_line: serde_json::Value = serde_json::from_str(&edit.text).unwrap();
    assert_eq!(undo(&one_line.to_string(), &edit.inserted), "{\"a\":1}");
    let wide = edit
        .text
        .replace("[\"acp\", \"codex\"]", "[\n        \"acp\",\n        \"codex\",\n      ]");
    assert_eq!(undo(&wide, &edit.inserted), BEFORE);
    let trailing = edit.text.replace("\n  }\n}\n", ",\n  },\n}\n");
    assert_eq!(undo(&trailing, &edit.inserted), "{\n  \"a\": 1,\n}\n");
}

#[test]
fn comment_before_an_entry_does_not_swallow_what_follows() {
    let edit = add("{\n  \"a\": 1\n}\n", &[entry("Codex")], &[]);
    let line = "  \"agent_servers\": {";
    let noted = edit.text.replace(line, &format!("  // agents\n{line}"));
    let joined = noted.replace("\n  }\n}\n", "\n  }, \"z\": 2\n}\n");
    let undone = undo(&joined, &edit.inserted);
    let value: serde_json::Value =
        serde_json_lenient::from_str(&undone).unwrap_or_else(|it| panic!("{it}: {undone}"));
    assert_eq!(value, serde_json::json!({ "a": 1, "z": 2 }));
    assert!(undone.contains("// agents\n"));
}

#[test]
fn removed_entries_need_no_undo_and_are_added_again() {
    let edit = add(BEFORE, &[entry("Codex")], &[]);
    assert_eq!(undo(BEFORE, &edit.inserted), BEFORE);
    let again = add(BEFORE, &[entry("Codex")], &edit.inserted);
    assert_eq!((again.text, again.inserted), (edit.text, edit.inserted));
}

#[test]
fn invalid_file_is_refused_with_its_line() {
    let refusal =
        |text: &str| add_entries(text, SECTION, &[entry("Codex")], &[], "  ").unwrap_err();
    assert_eq!(
        refusal("{\n  \"a\": 1\n  \"b\": 2\n}").to_string(),
        "line 2, column 9: expected comma"
    );
    assert_eq!(
        refusal("{\n  \"a\": 1,\n  \"agent_servers\": null\n}").to_string(),
        "line 3: `agent_servers` is not an object"
    );
    assert_eq!(refusal("[]").to_string(), "line 1: the document is not an object");
    assert!(matches!(refusal("{'a': 1}"), EditError::Syntax(_)));
    assert!(matches!(refusal("{a: 1}"), EditError::Syntax(_)));
    assert!(matches!(refusal("{\"a\": 1"), EditError::Syntax(_)));
}
