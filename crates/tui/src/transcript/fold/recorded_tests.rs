//! The items of every recorded agent, as a snapshot, and the same for every way to load them.

use crate::transcript::{
    ItemContent, MessagePart, ToolCallItem, ToolOutput, TranscriptFold, TranscriptItem,
    test_log::{recorded_log, recordings},
};
use jackfield_events::EventKind;
use std::{collections::BTreeSet, fmt::Write as _};

fn without_identity(items: &[TranscriptItem]) -> Vec<TranscriptItem> {
    let zero = crate::transcript::ItemKey(0);
    items.iter().map(|it| TranscriptItem { key: zero, revision: 0, ..it.clone() }).collect()
}

#[test]
fn recordings_are_folded_alike_at_once_and_from_pages_that_are_prepended() {
    for name in recordings() {
        let events = recorded_log(&name);
        let mut whole = TranscriptFold::default();
        for it in &events {
            whole.append(it);
        }
        let mut paged = TranscriptFold::default();
        for start in (0..events.len()).rev().step_by(7).chain([0]) {
            paged.refold(&events[start..]);
        }
        assert_eq!(without_identity(paged.items()), without_identity(whole.items()), "{name}");
        let keys: BTreeSet<_> = paged.items().iter().map(|it| it.key).collect();
        assert_eq!(keys.len(), paged.items().len(), "{name}");
    }
}

#[test]
fn recordings_have_each_tool_call_once_and_all_diffs_have_paths() {
    for name in recordings() {
        let events = recorded_log(&name);
        let said = events.iter().filter(|it| it.body.kind() == EventKind::Said);
        let said = format!("{:?}", said.collect::<Vec<_>>());
        let ids = said.split("\"toolCallId\": String(\"").skip(1);
        let ids: BTreeSet<&str> = ids.filter_map(|it| it.split('"').next()).collect();
        let mut fold = TranscriptFold::default();
        fold.refold(&events);
        let calls = fold.items().iter().filter_map(|it| match &it.content {
            ItemContent::ToolCall(call) => Some(call),
            _ => None,
        });
        let calls: Vec<_> = calls.collect();
        let folded: BTreeSet<&str> = calls.iter().map(|it| &*it.call_id).collect();
        assert_eq!(folded, ids, "{name}");
        for it in calls.iter().flat_map(|it| &it.output) {
            assert!(!matches!(it, ToolOutput::Diff { path, .. } if path.is_empty()), "{name}");
        }
    }
}

#[test]
fn items_of_recordings() {
    for name in recordings() {
        let mut fold = TranscriptFold::default();
        fold.refold(&recorded_log(&name));
        let mut lines = String::new();
        for it in fold.items() {
            writeln!(lines, "{} {}", it.seq, describe(&it.content)).unwrap();
        }
        insta::with_settings!({ snapshot_path => "../snapshots/recorded", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, lines);
        });
    }
}

fn describe(content: &ItemContent) -> String {
    match content {
        ItemContent::Prompt { by, parts } => format!("prompt by {by:?}: {}", describe_parts(parts)),
        ItemContent::Message { parts, .. } => format!("message: {}", describe_parts(parts)),
        ItemContent::Thought { parts, .. } => format!("thought: {}", describe_parts(parts)),
        ItemContent::ToolCall(call) => describe_call(call),
        ItemContent::Plan(entries) => {
            let entries = entries.iter().map(|it| format!("{} {}", it.status, it.content));
            format!("plan: {}", entries.collect::<Vec<_>>().join("; "))
        }
        ItemContent::Request(it) => {
            let answer = it.answer.as_ref().map(|it| format!("{} by {}", it.choice, it.by));
            format!("request {} {:?}: {}", it.number, it.title, answer.unwrap_or_default())
        }
        ItemContent::Notice { level, text, .. } => format!("{level:?}: {}", shorten(text)),
        ItemContent::TurnEnd(end) => {
            let tokens = end.tokens.as_ref().map(|it| (it.input, it.output));
            let cost = end.cost.as_ref().map(ToString::to_string);
            format!("{:?} {:?} {tokens:?} {cost:?}", end.outcome, shorten(&end.detail))
        }
    }
}

fn describe_parts(parts: &[MessagePart]) -> String {
    let parts = parts.iter().map(|it| match it {
        MessagePart::Text(text) => shorten(text),
        other => shorten(&format!("{other:?}")),
    });
    parts.collect::<Vec<_>>().join(" | ")
}

fn describe_call(call: &ToolCallItem) -> String {
    let diffs = call.output.iter().filter_map(|it| match it {
        ToolOutput::Diff { path, old, new } => {
            let old = old.as_ref().map(String::len);
            Some(format!(" [{path}: {old:?} to {}]", new.len()))
        }
        _ => None,
    });
    let diffs: String = diffs.collect();
    let (title, output) = (shorten(&call.title), shorten(&call.output_text()));
    format!("{:?} {:?} {title:?}{diffs} {output:?}", call.status, call.kind)
}

/// The first and last characters of a text, and its length.
fn shorten(text: &str) -> String {
    let chars: Vec<char> = text.trim().chars().collect();
    let line = |it: &[char]| it.iter().collect::<String>().replace('\n', "⏎");
    if chars.len() <= 60 {
        return line(&chars);
    }
    format!("{}…{} ({})", line(&chars[..30]), line(&chars[chars.len() - 20..]), chars.len())
}
