//! Pages of a log: ranges in both directions, the limit in bytes, failed reads, removed sessions.

use super::*;
use crate::{Config, Hub, Input, Recovered, Time};
use jackfield_events::{AgentMessage, EventBody, RawJson, SessionSummary};

const CLIENT: ConnId = ConnId(1);
const EVENTS: u64 = 10;

/// A hub with a client and a session of ten events, whose frames have this many bytes.
struct Scene {
    hub: Hub,
    frame_bytes: usize,
    next_id: u64,
}

impl Scene {
    fn new(frame_bytes: usize) -> Scene {
        let state = SessionSummary { seq: EVENTS, ..SessionSummary::default() };
        let recovered = [Recovered { session: "s-1".into(), state }];
        let mut hub = Hub::new(Config::default(), Time(0), recovered);
        hub.handle(Time(0), Input::ClientOpened { conn: CLIENT, peer: None });
        let mut scene = Scene { hub, frame_bytes, next_id: 0 };
        assert!(scene.ask("initialize", &json!({ "protocolVersion": 1 })).is_err());
        scene
    }

    fn event(&self, seq: u64) -> SessionEvent {
        let frame = format!(r#"{{"x":"{}"}}"#, "x".repeat(self.frame_bytes));
        let said = AgentMessage { turn: 1, late: false, frame: RawJson::trusted(frame) };
        SessionEvent { seq: Seq(seq), at: Time(seq), body: EventBody::Said(said) }
    }

    /// Sends a request. Returns what is read for it, or the answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Output, Value> {
        self.next_id += 1;
        let frame = Frame::request(&self.next_id.to_string(), method, &params.to_string());
        self.feed(Input::ClientSpoke { conn: CLIENT, frame })
    }

    fn feed(&mut self, input: Input) -> Result<Output, Value> {
        self.hub.handle(Time(1), input);
        self.outcome()
    }

    fn outcome(&mut self) -> Result<Output, Value> {
        let mut outcome = Err(Value::Null);
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::ToClient { text, .. } => {
                    outcome = Err(serde_json::from_slice(&text).unwrap());
                }
                Output::ReadPage { .. } => outcome = Ok(output),
                _ => {}
            }
        }
        outcome
    }

    /// Reads a page; the journal returns `events_per_read` at a time.
    fn read(&mut self, params: &Value, events_per_read: usize) -> Value {
        let mut outcome = self.ask("_jackfield/read_log", params);
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

#[test]
fn page_is_a_range_of_numbers_in_either_direction() {
    let mut scene = Scene::new(10);
    let all: Vec<u64> = (1..=EVENTS).collect();
    assert_eq!(scene.page(json!({})), (all.clone(), false, false));
    assert_eq!(scene.page(json!({ "limit": 4 })), (vec![7, 8, 9, 10], true, false));
    assert_eq!(scene.page(json!({ "before": 7, "limit": 4 })), (vec![3, 4, 5, 6], true, true));
    assert_eq!(scene.page(json!({ "before": 3, "limit": 4 })), (vec![1, 2], false, true));
    assert_eq!(scene.page(json!({ "before": 1 })), (vec![], false, true));
    assert_eq!(scene.page(json!({ "before": 99, "limit": 1 })), (vec![10], true, false));
    assert_eq!(scene.page(json!({ "after": 0, "limit": 1000 })), (all, false, false));
    assert_eq!(scene.page(json!({ "after": 3, "limit": 2 })), (vec![4, 5], true, true));
    assert_eq!(scene.page(json!({ "after": 10 })), (vec![], true, false));
    assert_eq!(scene.page(json!({ "after": 99 })), (vec![], true, false));
}

#[test]
fn page_of_large_events_ends_at_the_limit_and_has_at_least_one() {
    let mut scene = Scene::new(LOG_PAGE_BYTES_MAX / 4);
    assert_eq!(scene.page(json!({})), (vec![8, 9, 10], true, false));
    assert_eq!(scene.page(json!({ "before": 8 })), (vec![5, 6, 7], true, true));
    assert_eq!(scene.page(json!({ "after": 0 })), (vec![1, 2, 3], false, true));
    let mut scene = Scene::new(LOG_PAGE_BYTES_MAX + 1);
    assert_eq!(scene.page(json!({})), (vec![10], true, false));
    assert_eq!(scene.page(json!({ "after": 4 })), (vec![5], true, true));
    assert_eq!(scene.hub.parts.cx.retained_bytes.used_bytes(), 0);
}

#[test]
fn only_the_range_of_the_page_is_read() {
    let mut scene = Scene::new(10);
    let params = json!({ "sessionId": "s-1", "before": 9, "limit": 2 });
    let Ok(Output::ReadPage { after, events_max, .. }) = scene.ask("_jackfield/read_log", &params)
    else {
        panic!("nothing is read");
    };
    assert_eq!((after, events_max), (Seq(6), 2));
}

#[test]
fn invalid_range_is_refused() {
    let mut scene = Scene::new(10);
    for range in [
        json!({ "before": 1, "after": 2 }),
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
        json!({ "after": -1 }),
        json!({ "before": "x" }),
    ] {
        let mut params = range;
        params["sessionId"] = json!("s-1");
        let answer = scene.ask("_jackfield/read_log", &params).unwrap_err();
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
}

#[test]
fn damaged_event_is_left_out_and_failed_read_is_repeated() {
    let mut scene = Scene::new(10);
    let params = json!({ "sessionId": "s-1", "limit": 2 });
    let Ok(Output::ReadPage { page, .. }) = scene.ask("_jackfield/read_log", &params) else {
        panic!("nothing is read");
    };
    let failed = |damaged| Input::PageRead {
        page,
        events: Err(PageReadFailure { why: "no".into(), damaged }),
    };
    let Ok(Output::ReadPage { after, .. }) = scene.feed(failed(true)) else {
        panic!("the next event is not read");
    };
    assert_eq!(after, Seq(9));
    for _ in 0..RETRIES_MAX {
        assert_eq!(scene.feed(failed(false)).unwrap_err(), Value::Null);
        let at = scene.hub.poll_timeout().unwrap();
        assert_eq!(at.0 % APPEND_RETRY_MS, 1);
        scene.hub.handle(at, Input::Tick);
        assert!(scene.outcome().is_ok());
    }
    let answer = scene.feed(failed(false)).unwrap_err();
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "internal", "{answer}");
}

#[test]
fn request_is_answered_when_its_session_is_deleted() {
    let mut scene = Scene::new(10);
    let params = json!({ "sessionId": "s-1" });
    assert!(scene.ask("_jackfield/read_log", &params).is_ok());
    let frame = Frame::request("99", "session/delete", &params.to_string());
    scene.hub.handle(Time(1), Input::ClientSpoke { conn: CLIENT, frame });
    let texts = std::iter::from_fn(|| scene.hub.poll_output()).filter_map(|it| match it {
        Output::ToClient { text, .. } => serde_json::from_slice::<Value>(&text).ok(),
        _ => None,
    });
    let answers: Vec<Value> = texts.collect();
    let refused = answers.iter().find(|it| it["id"] == 2).expect("an answer");
    assert_eq!(refused["error"]["data"]["jackfield"]["code"], "session_not_found");
}
