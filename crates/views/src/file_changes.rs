//! The files that a session changed, by turn, as the tool calls of its agent report them.

use crate::transcript::diff::render_diff;
use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, TurnStarted};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// The length of the diff of one file in one turn, and of all diffs. Longer ones are cut; the log has them in full.
const DIFF_BYTES_MAX: usize = 64 * 1024;
const ALL_DIFF_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The number of changes of files that are reported.
const FILES_MAX: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
}

/// The changes of one file in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedFile {
    pub path: String,
    pub status: FileStatus,
    /// The number of lines.
    pub additions: usize,
    pub deletions: usize,
    /// A unified diff; absent if the agent reports none, or if there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The events that report it.
    pub seqs: Vec<u64>,
}

/// The files that were changed in one turn, by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TurnChanges {
    pub turn: u64,
    pub files: Vec<ChangedFile>,
}

/// Collects the changes of files. A later report of a tool call replaces the earlier one.
#[derive(Debug, Default)]
pub struct FileChanges {
    turn: u64,
    calls: BTreeMap<(u64, String), CallChanges>,
    /// The order of the calls.
    order: Vec<(u64, String)>,
}

#[derive(Debug, Default)]
struct CallChanges {
    files: BTreeMap<String, ChangedFile>,
    seqs: BTreeSet<u64>,
    /// The files that it deletes, if it is a deletion.
    deleted: Vec<String>,
    is_failed: bool,
}

impl FileChanges {
    pub fn fold_event(&mut self, event: &ReceivedEvent) {
        match &event.body {
            EventBody::Prompted(TurnStarted { turn, .. }) => self.turn = *turn,
            EventBody::Said(AgentMessage { frame, turn, .. }) => {
                let turn = if *turn == 0 { self.turn } else { *turn };
                let seq = event.seq.map_or(0, |it| it.0);
                self.fold_update(turn, seq, &frame["params"]["update"]);
            }
            _ => {}
        }
    }

    fn fold_update(&mut self, turn: u64, seq: u64, update: &Value) {
        let kind = update["sessionUpdate"].as_str();
        let Some(id) = update["toolCallId"]
            .as_str()
            .filter(|_| matches!(kind, Some("tool_call" | "tool_call_update")))
        else {
            return;
        };
        let key = (turn, id.to_owned());
        let diffs: Vec<&Value> = update["content"].as_array().into_iter().flatten().collect();
        let is_relevant = diffs.iter().any(|it| it["type"] == "diff")
            || update["kind"] == "delete"
            || self.calls.contains_key(&key);
        if !is_relevant || FILES_MAX <= self.order.len() {
            return;
        }
        if !self.calls.contains_key(&key) {
            self.order.push(key.clone());
        }
        let call = self.calls.entry(key).or_default();
        call.is_failed |= update["status"] == "failed";
        if update["kind"] == "delete" {
            let locations = update["locations"].as_array().into_iter().flatten();
            call.deleted = locations.filter_map(|it| Some(it["path"].as_str()?.into())).collect();
            call.seqs.insert(seq);
        }
        let changes = diffs.into_iter().filter(|it| it["type"] == "diff").filter_map(file_change);
        let changes: BTreeMap<String, ChangedFile> =
            changes.map(|it| (it.path.clone(), it)).take(FILES_MAX).collect();
        if !changes.is_empty() {
            call.files = changes;
            call.seqs.insert(seq);
        }
    }

    /// The changes by turn and path.
    pub fn finish(mut self) -> Vec<TurnChanges> {
        let mut turns: BTreeMap<u64, BTreeMap<String, ChangedFile>> = BTreeMap::new();
        for key in self.order {
            let Some(call) = self.calls.remove(&key).filter(|it| !it.is_failed) else { continue };
            let files = turns.entry(key.0).or_default();
            let deleted = call.deleted.into_iter().map(deleted_file);
            for mut change in call.files.into_values().chain(deleted) {
                change.seqs = call.seqs.iter().copied().collect();
                add_change(files, change);
            }
        }
        let mut bytes = 0;
        let mut limit_diff = |mut change: ChangedFile| {
            bytes += change.diff.as_ref().map_or(0, String::len);
            change.diff = change.diff.filter(|_| bytes <= ALL_DIFF_BYTES_MAX);
            change
        };
        let mut turns: Vec<TurnChanges> = turns
            .into_iter()
            .rev()
            .map(|(turn, files)| TurnChanges {
                turn,
                files: files.into_values().map(&mut limit_diff).collect(),
            })
            .collect();
        turns.reverse();
        turns
    }
}

fn file_change(diff: &Value) -> Option<ChangedFile> {
    let (path, new) = (diff["path"].as_str()?, diff["newText"].as_str().unwrap_or_default());
    let old = diff["oldText"].as_str();
    let mut rendered = render_diff(path, old, new);
    let changes = rendered.lines().skip(2);
    let (mut additions, mut deletions) = (0, 0);
    for line in changes {
        additions += usize::from(line.starts_with('+'));
        deletions += usize::from(line.starts_with('-'));
    }
    cut_diff(&mut rendered);
    let status = if old.is_some() { FileStatus::Modified } else { FileStatus::Added };
    let (path, diff) = (path.to_owned(), Some(rendered));
    Some(ChangedFile { path, status, additions, deletions, diff, seqs: Vec::new() })
}

fn deleted_file(path: String) -> ChangedFile {
    let status = FileStatus::Deleted;
    ChangedFile { path, status, additions: 0, deletions: 0, diff: None, seqs: Vec::new() }
}

/// Adds a change of a file to the earlier ones in the same turn.
fn add_change(files: &mut BTreeMap<String, ChangedFile>, change: ChangedFile) {
    let Some(known) = files.get_mut(&change.path) else {
        files.insert(change.path.clone(), change);
        return;
    };
    known.status = match (known.status, change.status) {
        (FileStatus::Added, FileStatus::Modified) => FileStatus::Added,
        (_, status) => status,
    };
    known.additions += change.additions;
    known.deletions += change.deletions;
    known.seqs.extend(change.seqs);
    if let Some(diff) = change.diff {
        let all = known.diff.get_or_insert_default();
        all.push_str(&diff);
        cut_diff(all);
    }
}

/// Cuts a diff that is too long after a line.
fn cut_diff(diff: &mut String) {
    if DIFF_BYTES_MAX < diff.len() {
        let end = diff.floor_char_boundary(DIFF_BYTES_MAX);
        let end = diff[..end].rfind('\n').map_or(end, |it| it + 1);
        diff.truncate(end);
        diff.push_str("…\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::build_event;
    use serde_json::json;

    fn call(seq: u64, turn: u64, update: &Value) -> Value {
        let frame = json!({ "params": { "update": update } });
        json!({ "seq": seq, "is": "said", "turn": turn, "frame": frame })
    }

    fn edit(id: &str, path: &str, old: Option<&str>, new: &str) -> Value {
        let diff = json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
        json!({ "sessionUpdate": "tool_call", "toolCallId": id, "content": [diff] })
    }

    fn fold(events: &[Value]) -> Vec<TurnChanges> {
        let mut changes = FileChanges::default();
        for event in events {
            changes.fold_event(&build_event(event));
        }
        changes.finish()
    }

    #[test]
    fn files_are_listed_by_turn_with_the_sum_of_their_changes() {
        let failed =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c4", "status": "failed" });
        let deletion = json!({ "sessionUpdate": "tool_call", "toolCallId": "c5", "kind": "delete",
                               "locations": [{ "path": "/w/old" }] });
        let turns = fold(&[
            call(2, 1, &edit("c1", "/w/a", None, "one\n")),
            call(3, 1, &edit("c1", "/w/a", None, "one\ntwo\n")),
            call(4, 1, &edit("c2", "/w/a", Some("one\n"), "1\n")),
            call(5, 1, &edit("c3", "/w/b", Some("x\n"), "x\ny\n")),
            call(8, 2, &edit("c4", "/w/c", None, "never")),
            call(9, 2, &failed),
            call(10, 2, &deletion),
        ]);
        let shown: Vec<_> = turns
            .iter()
            .flat_map(|it| it.files.iter().map(|file| (it.turn, file)))
            .map(|(turn, it)| (turn, &*it.path, it.status, it.additions, it.deletions, &*it.seqs))
            .collect();
        let expected = [
            (1, "/w/a", FileStatus::Added, 3, 1, &[2, 3, 4][..]),
            (1, "/w/b", FileStatus::Modified, 1, 0, &[5]),
            (2, "/w/old", FileStatus::Deleted, 0, 0, &[10]),
        ];
        assert_eq!(shown, expected);
        let diff = turns[0].files[0].diff.as_deref().unwrap();
        assert!(diff.starts_with("--- /dev/null\n+++ /w/a\n+one\n+two\n--- /w/a\n"), "{diff}");
    }

    #[test]
    fn long_diffs_are_cut_and_counted() {
        let long = "line of text\n".repeat(20_000);
        let turns = fold(&[call(1, 1, &edit("c1", "/w/a", None, &long))]);
        let file = &turns[0].files[0];
        assert_eq!(file.additions, 20_000);
        assert!(file.diff.as_ref().unwrap().len() <= DIFF_BYTES_MAX + 8);
    }
}
