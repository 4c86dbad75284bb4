//! What the daemon says of its storage, in a sentence for people.

use crate::out::{Out, count};
use jackfield_protocol::Frame;
use serde_json::Value;

/// What is wrong with the storage and the way out; `None` if nothing is.
pub(crate) fn storage_warning(storage: &Value) -> Option<String> {
    let text = |name: &str| storage[name].as_str().unwrap_or_default();
    if storage["ok"] == false {
        let waits = storage["unwrittenEvents"].as_u64().and_then(|it| usize::try_from(it).ok());
        let waits = waits.map(|it| format!(", {} not written yet", count(it, "event")));
        return Some(format!(
            "the journal cannot be written: {}{} (since {}): {}",
            text("problem"),
            waits.unwrap_or_default(),
            text("since"),
            text("wayOut"),
        ));
    }
    storage["lostRecords"].as_u64().map(lost_records_warning)
}

/// Prints a `_jackfield/storage` notice: the journal cannot be written, or can be again.
pub(super) fn show_storage(out: &Out, notice: &Frame) {
    let state: Value =
        serde_json::from_str(notice.params().unwrap_or_default()).unwrap_or_default();
    match storage_warning(&state).filter(|_| state["ok"] == false) {
        Some(warning) => out.alert(&format!("warning: {warning}")),
        None => out.note("the journal can be written again"),
    }
}

/// What acknowledged records are missing, and why that may be.
pub(crate) fn lost_records_warning(records: u64) -> String {
    let records = count(usize::try_from(records).unwrap_or(usize::MAX), "record");
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
    fn trouble_is_one_sentence_with_the_way_out() {
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
