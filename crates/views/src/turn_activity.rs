//! Tells the events of a running turn from those that are recorded after its agent was gone, so that the duration of an
//! interrupted turn does not include the time in between.

use jackfield_events::{EventBody, INTERRUPTED_BY_IMPORT, INTERRUPTED_LATER_SUFFIX, TurnOutcome};
use serde_json::Value;

/// Whether an event was written while its turn ran. The other events are also written when an interrupted turn is
/// ended later.
pub(crate) fn is_turn_activity(body: &EventBody<Value>) -> bool {
    match body {
        EventBody::Answered(answered) => answered.answer.get("void").is_none(),
        EventBody::Ended(_)
        | EventBody::Moved(_)
        | EventBody::Forked(_)
        | EventBody::Imported(_)
        | EventBody::Bound(_) => false,
        _ => true,
    }
}

/// Whether the hub ended the turn after its agent was gone: at the next start of the daemon, after the loss of the
/// host, or in a copy of the session. Journals contain only the message of the error.
pub(crate) fn is_recorded_later(outcome: &TurnOutcome<Value>) -> bool {
    let TurnOutcome::Interrupted(error) = outcome else { return false };
    let message = error["message"].as_str().unwrap_or_default();
    let reasons = [INTERRUPTED_LATER_SUFFIX, INTERRUPTED_BY_IMPORT];
    error["data"]["jackfield"]["code"] == "interrupted"
        && reasons.iter().any(|it| message.ends_with(it))
}

#[cfg(test)]
mod tests {
    use crate::{SessionUsage, test_events::build_event};
    use serde_json::json;

    /// The duration of a turn with a message after two seconds, which was ended fifteen minutes later.
    fn duration_of_interrupted(why: &str) -> Option<u64> {
        let data = json!({ "jackfield": { "code": "interrupted", "why": why } });
        let error = json!({ "message": format!("interrupted: {why}"), "data": data });
        let events = [
            json!({ "is": "prompted", "turn": 1, "at": 1000 }),
            json!({ "is": "said", "turn": 1, "at": 3000 }),
            json!({ "is": "answered", "at": 901_000, "answer": { "void": "restarted" } }),
            json!({ "is": "ended", "turn": 1, "at": 901_000, "how": "interrupted", "answer": error }),
        ];
        let mut usage = SessionUsage::default();
        for it in &events {
            usage.fold_event(&build_event(it));
        }
        usage.turns[0].ms
    }

    #[test]
    fn turn_whose_end_is_recorded_later_ends_with_its_last_event() {
        for why in [
            "the daemon ended during the turn",
            "host `west` was lost during the turn",
            "the session was forked during the turn",
            "the session was brought here from elsewhere",
        ] {
            assert_eq!(duration_of_interrupted(why), Some(2000), "{why}");
        }
        assert_eq!(duration_of_interrupted("the session was closed"), Some(900_000));
    }
}
