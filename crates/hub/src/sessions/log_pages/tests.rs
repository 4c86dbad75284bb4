//! Pages of a log: ranges in both directions, the limit in bytes, failed reads, removed sessions.

use super::*;
use crate::{
    Input, Time,
    test_hub::{TestHub, messages_to_clients},
};
use jackfield_events::{AgentMessage, EventBody, RawJson};

const CLIENT: ConnId = ConnId(1);
const EVENTS: u64 = 10;

/// A hub with a client and a session of ten events, whose frames have this many bytes.
struct PagedLog {
    hub: TestHub,
    frame_bytes: usize,
}

impl PagedLog {
    fn new(frame_bytes: usize) -> PagedLog {
        let mut hub = TestHub::with_sessions(&["s-1"], EVENTS);
        hub.connect_client(CLIENT, None);
        PagedLog { hub, frame_bytes }
    }

    fn event(&self, seq: u64) -> SessionEvent {
        let frame = format!(r#"{{"x":"{}"}}"#, "x".repeat(self.frame_bytes));
        let said = AgentMessage { turn: 1, late: false, frame: RawJson::trusted(frame) };
        SessionEvent { seq: Seq(seq), at: Time(seq), body: EventBody::Said(said) }
    }

    /// Requests a page. Returns what is read for it, or the answer.
    fn request(&mut self, params: &Value) -> Result<Output, Value> {
        outcome(self.hub.send_request(CLIENT, "_jackfield/read_log", params))
    }

    fn feed(&mut self, input: Input) -> Result<Output, Value> {
        outcome(self.hub.feed_input(input))
    }

    /// Reads a page; the journal returns `events_per_read` at a time.
    fn read(&mut self, params: &Value, events_per_read: usize) -> Value {
        let mut outcome = self.request(params);
        while let Ok(Output::ReadPage { page, after, events_max, .. }) = outcome {
            let seqs = (after.0 + 1..=EVENTS).take(events_max.min(events_per_read));
            let events = seqs.map(|it| self.event(it)).collect();
            outcome = self.feed(Input::PageRead { page, events: Ok(events) });
        }
        outcome.unwrap_err()["result"].clone()
    }

    /// Reads a page: its numbers, and whether there is more before and after it.
    fn page(&mut self, mut params: Value) -> (Vec<u64>, bool, bool) {
        params["sessionId"] = json!("s-1");
        let page = self.read(&params, 3);
        assert_eq!(page["last"], EVENTS);
        let lines = page["lines"].as_str().unwrap().lines();
        let seqs = lines.map(|it| serde_json::from_str::<Value>(it).unwrap()["seq"].clone());
        let seqs = seqs.map(|it| it.as_u64().unwrap()).collect();
        (seqs, page["hasBefore"] == true, page["hasAfter"] == true)
    }
}

/// What is read, or else the last answer.
fn outcome(mut outputs: Vec<Output>) -> Result<Output, Value> {
    match outputs.iter().position(|it| matches!(it, Output::ReadPage { .. })) {
        Some(read) => Ok(outputs.swap_remove(read)),
        None => Err(messages_to_clients(outputs).pop().map(|(_, it)| it).unwrap_or_default()),
    }
}

#[test]
fn page_is_a_range_of_numbers_in_either_direction() {
    let mut log = PagedLog::new(10);
    let all: Vec<u64> = (1..=EVENTS).collect();
    assert_eq!(log.page(json!({})), (all.clone(), false, false));
    assert_eq!(log.page(json!({ "limit": 4 })), (vec![7, 8, 9, 10], true, false));
    assert_eq!(log.page(json!({ "before": 7, "limit": 4 })), (vec![3, 4, 5, 6], true, true));
    assert_eq!(log.page(json!({ "before": 3, "limit": 4 })), (vec![1, 2], false, true));
    assert_eq!(log.page(json!({ "before": 1 })), (vec![], false, true));
    assert_eq!(log.page(json!({ "before": 99, "limit": 1 })), (vec![10], true, false));
    assert_eq!(log.page(json!({ "after": 0, "limit": 1000 })), (all, false, false));
    assert_eq!(log.page(json!({ "after": 3, "limit": 2 })), (vec![4, 5], true, true));
    assert_eq!(log.page(json!({ "after": 10 })), (vec![], true, false));
    assert_eq!(log.page(json!({ "after": 99 })), (vec![], true, false));
}

#[test]
fn page_of_large_events_ends_at_the_limit_and_has_at_least_one() {
    let mut log = PagedLog::new(LOG_PAGE_BYTES_MAX / 4);
    assert_eq!(log.page(json!({})), (vec![8, 9, 10], true, false));
    assert_eq!(log.page(json!({ "before": 8 })), (vec![5, 6, 7], true, true));
    assert_eq!(log.page(json!({ "after": 0 })), (vec![1, 2, 3], false, true));
    let mut log = PagedLog::new(LOG_PAGE_BYTES_MAX + 1);
    assert_eq!(log.page(json!({})), (vec![10], true, false));
    assert_eq!(log.page(json!({ "after": 4 })), (vec![5], true, true));
    assert_eq!(log.hub.hub.parts.cx.retained_bytes.used_bytes(), 0);
}

#[test]
fn only_the_range_of_the_page_is_read() {
    let mut log = PagedLog::new(10);
    let params = json!({ "sessionId": "s-1", "before": 9, "limit": 2 });
    let Ok(Output::ReadPage { after, events_max, .. }) = log.request(&params) else {
        panic!("nothing is read");
    };
    assert_eq!((after, events_max), (Seq(6), 2));
}

#[test]
fn invalid_range_is_refused() {
    let mut log = PagedLog::new(10);
    for range in [
        json!({ "before": 1, "after": 2 }),
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
        json!({ "after": -1 }),
        json!({ "before": "x" }),
    ] {
        let mut params = range;
        params["sessionId"] = json!("s-1");
        let answer = log.request(&params).unwrap_err();
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
}

#[test]
fn damaged_event_is_left_out_and_failed_read_is_repeated() {
    let mut log = PagedLog::new(10);
    let params = json!({ "sessionId": "s-1", "limit": 2 });
    let Ok(Output::ReadPage { page, .. }) = log.request(&params) else {
        panic!("nothing is read");
    };
    let failed = |damaged| Input::PageRead {
        page,
        events: Err(PageReadFailure { why: "no".into(), damaged }),
    };
    let Ok(Output::ReadPage { after, .. }) = log.feed(failed(true)) else {
        panic!("the next event is not read");
    };
    assert_eq!(after, Seq(9));
    for _ in 0..RETRIES_MAX {
        assert_eq!(log.feed(failed(false)).unwrap_err(), Value::Null);
        let at = log.hub.hub.poll_timeout().unwrap();
        assert_eq!(at.0 % APPEND_RETRY_MS, 1);
        log.hub.now_ms = at.0;
        assert!(log.feed(Input::Tick).is_ok());
    }
    let answer = log.feed(failed(false)).unwrap_err();
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "internal", "{answer}");
}

#[test]
fn request_is_answered_when_its_session_is_deleted() {
    let mut log = PagedLog::new(10);
    let params = json!({ "sessionId": "s-1" });
    assert!(log.request(&params).is_ok());
    let outputs = log.hub.send_request(CLIENT, "session/delete", &params);
    let answers = messages_to_clients(outputs);
    let (_, refused) = answers.iter().find(|(_, it)| it["id"] == 2).expect("an answer");
    assert_eq!(refused["error"]["data"]["jackfield"]["code"], "session_not_found");
}
