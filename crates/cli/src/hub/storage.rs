//! Warnings about the daemon's storage.

use crate::out::CommandOutput;
use crate::plain_text::format_count;
use jackfield_protocol::Frame;
use serde_json::Value;

/// Describes the storage problem and how to solve it; `None` if there is none.
pub(crate) fn storage_warning(storage: &Value) -> Option<String> {
    let text = |name: &str| storage[name].as_str().unwrap_or_default();
    if storage["ok"] == false {
        let unwritten = storage["unwrittenEvents"].as_u64().and_then(|it| usize::try_from(it).ok());
        let unwritten =
            unwritten.map(|it| format!(", {} not written yet", format_count(it, "event")));
        return Some(format!(
            "the journal cannot be written: {}{} (since {}): {}",
            text("problem"),
            unwritten.unwrap_or_default(),
            text("since"),
            text("wayOut"),
        ));
    }
    storage["lostRecords"].as_u64().map(lost_records_warning)
}

/// Prints a `_jackfield/storage` notification: writing to the journal fails, or works again.
pub(super) fn print_storage_notice(output: &CommandOutput, notice: &Frame) {
    let state: Value =
        serde_json::from_str(notice.params().unwrap_or_default()).unwrap_or_default();
    match storage_warning(&state).filter(|_| state["ok"] == false) {
        Some(warning) => output.print_alert(&format!("warning: {warning}")),
        None => output.print_note("the journal can be written again"),
    }
}

/// Reports missing acknowledged records and the possible causes.
pub(crate) fn lost_records_warning(records: u64) -> String {
    let records = format_count(usize::try_from(records).unwrap_or(usize::MAX), "record");
    format!(
        "the journal lacks {records} at its end that were acknowledged before this start: its WAL file was removed or \
         cut, an older copy was put in its place, or the power failed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn storage_problem_is_one_sentence_with_its_solution() {
        assert_eq!(storage_warning(&json!({ "ok": true })), None);
        assert_eq!(storage_warning(&Value::Null), None, "an older daemon");
        let failing = json!({
            "ok": false, "problem": "the disk is full", "wayOut": "free space", "since": "now",
            "unwrittenEvents": 2,
        });
        let expected = "the journal cannot be written: the disk is full, 2 events not written yet \
                        (since now): free space";
        assert_eq!(storage_warning(&failing).unwrap(), expected);
        let lost = storage_warning(&json!({ "ok": true, "lostRecords": 1 })).unwrap();
        assert!(lost.starts_with("the journal lacks 1 record at its end"), "{lost}");
    }
}
