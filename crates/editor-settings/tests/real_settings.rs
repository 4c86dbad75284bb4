//! Settings files as users have them: what is inserted, and that it reads back.

use crate::{SECTION, add, entry, entry_of};
use jackfield_editor_settings::{add_entries, remove_entries};
use serde_json::{Value, json};

const ZED_DEFAULT: &str = include_str!("settings/zed-default.json");
const ZED_AGENTS: &str = include_str!("settings/zed-agents.json");
const VSCODE_TABS: &str = include_str!("settings/vscode-tabs.json");
const JETBRAINS: &str = include_str!("settings/jetbrains.json");

/// All settings files, also with other line breaks, a byte order mark and without a final newline.
fn all_texts() -> Vec<String> {
    let inline = [
        "",
        "\n",
        "  \t",
        "{}",
        "{ }",
        "{\n}\n",
        "{\n  \n}",
        "// only a comment",
        "// only a comment\n",
        "{\n  // nothing yet\n}\n",
        "{ /* nothing yet */ }",
        "{\"a\":1}",
        "{ \"a\": 1, }",
        "{\"agent_servers\":{}}",
        "{\"agent_servers\":{\"x\":{}},\"b\":[]}",
        "{\n  \"a\": 1 // note\n  // last\n}\n",
        "{\n  \"a\": 1,\n\n}\n",
        "{ \"a\": 1,\n  \"b\": 2 }\n",
        "  {\n    \"a\": 1\n  }\n",
        "{\n  \"agent_servers\": {\"x\": {}}\n}\n",
        "{\n  \"agent_servers\": {\n  },\n  \"b\": 1\n}\n",
        "{\n  \"agent_servers\": {}, \"agent_servers\": { \"y\": 1 }\n}\n",
    ];
    let files = [ZED_DEFAULT, ZED_AGENTS, VSCODE_TABS, JETBRAINS];
    let texts = files.into_iter().chain(inline);
    texts
        .flat_map(|it| {
            let crlf = it.replace('\n', "\r\n");
            let marked = format!("\u{feff}{crlf}");
            [it.to_owned(), it.trim_end().to_owned(), crlf, marked]
        })
        .collect()
}

/// The parser that Zed uses.
fn read_as_zed(text: &str) -> Value {
    serde_json_lenient::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

#[test]
fn undo_gives_the_original_bytes_of_every_file() {
    for text in all_texts() {
        for entries in [vec![entry("Claude Code")], vec![entry("Codex"), entry("Claude Code")]] {
            let edit = add(&text, &entries, &[]);
            assert_eq!(edit.added.len(), entries.len(), "{text:?}");
            let undone = remove_entries(&edit.text, &edit.inserted).unwrap();
            assert_eq!(undone.text, text, "{}", edit.text);
            assert_eq!(undone.removed, edit.added);
            assert_eq!(undone.changed_by_user, [""; 0]);
        }
    }
}

#[test]
fn second_run_changes_nothing_and_a_new_agent_is_added_alone() {
    for text in all_texts() {
        let first = add(&text, &[entry("Claude Code")], &[]);
        let again = add(&first.text, &[entry("Claude Code")], &first.inserted);
        assert_eq!((&again.text, &again.inserted), (&first.text, &first.inserted));
        assert!(again.is_unchanged());
        let second = add(&first.text, &[entry("Claude Code"), entry("Codex")], &first.inserted);
        assert_eq!(second.added, ["Codex in Jackfield"]);
        let undone = remove_entries(&second.text, &second.inserted).unwrap();
        assert_eq!(undone.text, text, "{}", second.text);
    }
}

#[test]
fn zed_reads_what_was_written_and_everything_else_as_before() {
    for text in all_texts() {
        let edit = add(&text, &[entry("Claude Code"), entry("Codex")], &[]);
        let is_empty = text
            .trim_start_matches('\u{feff}')
            .trim()
            .trim_start_matches("// only a comment")
            .is_empty();
        let mut expected = if is_empty { json!({}) } else { read_as_zed(&text) };
        if !expected[SECTION].is_object() {
            expected[SECTION] = json!({});
        }
        for agent in [entry("Claude Code"), entry("Codex")] {
            expected[SECTION][agent.name] = agent.value;
        }
        assert_eq!(read_as_zed(&edit.text), expected, "{}", edit.text);
        if serde_json::from_str::<Value>(&text).is_ok() {
            let strict: Value = serde_json::from_str(&edit.text).unwrap();
            assert_eq!(strict, expected, "strict JSON stays strict JSON");
        }
    }
}

#[test]
fn entry_is_written_in_the_style_of_the_file() {
    let edit = add(ZED_DEFAULT, &[entry("Codex")], &[]);
    let expected = ZED_DEFAULT.replace(
        "  // \"vim_mode\": true,\n",
        "  // \"vim_mode\": true,\n  \"agent_servers\": {\n    \"Codex in Jackfield\": {\n      \
         \"type\": \"custom\",\n      \"command\": \"/usr/bin/jackfield\",\n      \
         \"args\": [\"acp\", \"codex\"],\n      \"env\": {}\n    }\n  },\n",
    );
    assert_eq!(edit.text, expected, "the trailing comma is kept");

    let edit = add(ZED_AGENTS, &[entry("Codex")], &[]);
    let expected = ZED_AGENTS.replace("    } // mine\n    // \"old\": {}\n", "    }, // mine\n    // \"old\": {}\n    \"Codex in Jackfield\": {\n      \"type\": \"custom\",\n      \"command\": \"/usr/bin/jackfield\",\n      \"args\": [\"acp\", \"codex\"],\n      \"env\": {}\n    }\n");
    assert_eq!(edit.text, expected, "the comma is before the comment");

    let edit = add_entries(VSCODE_TABS, "acp.agents", &[entry("Codex")], &[], "  ").unwrap();
    assert!(edit.text.ends_with(",\n\t\"acp.agents\": {\n\t\t\"Codex in Jackfield\": {\n\t\t\t\"type\": \"custom\",\n\t\t\t\"command\": \"/usr/bin/jackfield\",\n\t\t\t\"args\": [\"acp\", \"codex\"],\n\t\t\t\"env\": {}\n\t\t}\n\t}\n}"), "{}", edit.text);

    let edit = add("{\"a\":1}", &[entry("Codex")], &[]);
    assert!(!edit.text.contains('\n'), "one line stays one line: {}", edit.text);
}

#[test]
fn entry_of_the_user_with_a_name_of_ours_is_kept() {
    let edit = add(ZED_AGENTS, &[entry("Goose")], &[]);
    assert_eq!(
        (edit.text.as_str(), edit.not_ours),
        (ZED_AGENTS, vec!["Goose in Jackfield".into()])
    );
    assert_eq!(edit.inserted, []);
}

#[test]
fn entry_of_ours_is_updated_unless_the_user_changed_it() {
    let first = add(JETBRAINS, &[entry("Codex")], &[]);
    let moved = entry_of("/opt/jackfield", "Codex");
    let updated = add(&first.text, std::slice::from_ref(&moved), &first.inserted);
    assert_eq!(updated.updated, ["Codex in Jackfield"]);
    assert_eq!(updated.text, first.text.replace("/usr/bin/jackfield", "/opt/jackfield"));
    assert_eq!(remove_entries(&updated.text, &updated.inserted).unwrap().text, JETBRAINS);

    let changed = first.text.replace("\"acp\", \"codex\"", "\"acp\", \"codex\", \"--isolated\"");
    let kept = add(&changed, &[moved], &first.inserted);
    assert_eq!((&kept.text, kept.changed_by_user), (&changed, vec!["Codex in Jackfield".into()]));
    let undone = remove_entries(&changed, &first.inserted).unwrap();
    assert_eq!(
        (&undone.text, undone.changed_by_user),
        (&changed, vec!["Codex in Jackfield".into()])
    );
}
