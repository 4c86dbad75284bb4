//! Edits of settings files, real ones and generated ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edits;
mod properties;
mod real_settings;

use jackfield_editor_settings::{EntryEdit, InsertedValue, SettingsEntry, add_entries};
use serde_json::json;

const SECTION: &str = "agent_servers";

fn entry(name: &str) -> SettingsEntry {
    entry_of("/usr/bin/jackfield", name)
}

fn entry_of(program: &str, name: &str) -> SettingsEntry {
    let id = name.split(' ').next().unwrap().to_lowercase();
    let value = json!({ "type": "custom", "command": program, "args": ["acp", id], "env": {} });
    SettingsEntry { name: format!("{name} in Jackfield"), value }
}

fn add(text: &str, entries: &[SettingsEntry], earlier: &[InsertedValue]) -> EntryEdit {
    add_entries(text, SECTION, entries, earlier, "  ").unwrap()
}
