//! Properties of edits for every document: undo gives the same bytes, and a second edit changes nothing.

use crate::{SECTION, add, entry};
use jackfield_editor_settings::{add_entries, remove_entries};
use proptest::prelude::*;

/// Whitespace and comments between two tokens.
fn trivia() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => Just(""),
        4 => Just(" "),
        4 => Just("\n"),
        2 => Just("\n  "),
        1 => Just("\r\n"),
        1 => Just("\t"),
        1 => Just("// note, \"x\": {\n"),
        1 => Just("/* } */"),
    ];
    proptest::collection::vec(part, 0..3).prop_map(|it| it.concat())
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("\"a, // \\\" é\"".to_owned()),
        Just("null".to_owned()),
        Just("[ 1, // one\n 2 ]".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, object)
}

fn object(inner: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    let member = (trivia(), 0..6usize, trivia(), trivia(), inner, trivia());
    (proptest::collection::vec(member, 0..4), any::<bool>(), trivia()).prop_map(
        |(members, has_trailing_comma, end)| {
            let names = ["a", "b c", "é", "", "acp.agents", "x"];
            let count = members.len();
            let members = members.into_iter().enumerate().map(|(index, it)| {
                let (before, name, colon, value_start, value, after) = it;
                let comma = if index + 1 < count || has_trailing_comma { "," } else { "" };
                // Names are unique, as in settings that editors accept.
                let name = format!("{}{index}", names[name]);
                format!("{before}\"{name}\"{colon}:{value_start}{value}{after}{comma}")
            });
            format!("{{{}{end}}}", members.collect::<String>())
        },
    )
}

/// A document, with or without a section of agents.
fn document() -> impl Strategy<Value = String> {
    let section = proptest::option::of(object(value().boxed()).boxed());
    (trivia(), object(value().boxed()), section, trivia()).prop_map(
        |(start, root, section, end)| {
            let root = match section {
                Some(section) if root == "{}" => format!("{{\"{SECTION}\":{section}}}"),
                Some(section) => root.replacen('{', &format!("{{\"{SECTION}\": {section},"), 1),
                None => root,
            };
            format!("{start}{root}{end}")
        },
    )
}

proptest! {
    #[test]
    fn undo_gives_the_same_bytes_and_a_second_edit_changes_nothing(text in document()) {
        let entries = [entry("Claude Code"), entry("Codex")];
        // A section before a closing brace may make a document invalid; such documents are refused.
        let Ok(edit) = add_entries(&text, SECTION, &entries, &[], "  ") else { return Ok(()) };
        prop_assert_eq!(edit.added.len(), 2);
        let again = add(&edit.text, &entries, &edit.inserted);
        prop_assert_eq!(&again.text, &edit.text);
        prop_assert_eq!(&again.inserted, &edit.inserted);
        let undone = remove_entries(&edit.text, &edit.inserted).unwrap();
        prop_assert_eq!(&undone.text, &text, "{}", edit.text);
    }

    #[test]
    fn undo_after_edits_elsewhere_removes_our_entries_only(text in document(), other in 0..2usize) {
        let Ok(edit) = add_entries(&text, SECTION, &[entry("Codex")], &[], "  ") else { return Ok(()) };
        // The user adds a member, to the same section or to another one.
        let section = ["other", SECTION][other];
        let later = add_entries(&edit.text, section, &[entry("Mine")], &[], "\t").unwrap();
        let undone = remove_entries(&later.text, &edit.inserted).unwrap();
        let alone = add_entries(&text, section, &[entry("Mine")], &[], "\t").unwrap();
        let read = |text: &str| serde_json_lenient::from_str::<serde_json::Value>(text);
        prop_assert_eq!(read(&undone.text).unwrap(), read(&alone.text).unwrap(), "{}", later.text);
        for comment in ["// note", "/* } */"] {
            prop_assert_eq!(undone.text.matches(comment).count(), text.matches(comment).count());
        }
    }
}
