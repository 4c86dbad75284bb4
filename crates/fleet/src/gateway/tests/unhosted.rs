//! Sessions without an eligible host: observers read the log, managing requests are soon refused.

use super::*;
use bytes::Bytes;
use jackfield_events::SessionEvent;
use jackfield_hub::Seq;

const ATTACH: &str = "_jackfield/attach";

/// No host may own `s-1`.
fn refuse_location(fixture: &mut GatewayFixture) {
    let owner = Err(Fault::NoHost { why: "its host `z` is away".into() });
    fixture.feed(GatewayInput::SessionLocated { session: "s-1".into(), owner });
}

fn observe_params(facts: bool) -> Value {
    json!({ "sessionId": "s-1", "after": 0, "observe": true, "facts": facts })
}

/// The token and the position of the last read.
fn last_read(fixture: &GatewayFixture) -> (u64, u64) {
    match fixture.other_outputs.last() {
        Some(GatewayOutput::ReadLog { token, after, .. }) => (*token, *after),
        other => panic!("not a read: {other:?}"),
    }
}

fn closed_event(seq: u64) -> SessionEvent {
    let line = Bytes::from_static(br#"{"at":5,"is":"closed"}"#);
    SessionEvent::decode(Seq(seq), &line).unwrap()
}

#[test]
fn observer_reads_the_log_without_a_host_and_is_attached_later() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(A, &request(&json!(1), ATTACH, &observe_params(true)));
    refuse_location(&mut fixture);
    let (token, after) = last_read(&fixture);
    assert_eq!(after, 0);
    let events = Ok(vec![closed_event(1), closed_event(2)]);
    fixture.feed(GatewayInput::LogRead { token, events });
    assert_eq!(last_read(&fixture), (token, 2), "the next page");
    let seqs: Vec<&Value> =
        fixture.client_frames.iter().map(|(_, it)| &it["params"]["seq"]).collect();
    assert_eq!(seqs, [&json!(1), &json!(2)]);
    fixture.feed(GatewayInput::LogRead { token, events: Ok(vec![]) });
    let (_, answer) = fixture.client_frames.last().unwrap();
    let result = json!({ "sessionId": "s-1", "head": 2, "away": "its host `z` is away" });
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &result));

    // A host owns the session again: the observer is attached after the last event it read.
    fixture.advance_time(250);
    fixture.answer_locate("s-1", "x");
    let (_, said) = fixture.host_frames.last().unwrap();
    assert_eq!((&said["method"], &said["params"]["after"]), (&json!(ATTACH), &json!(2)));
}

#[test]
fn log_replay_pauses_while_the_observer_does_not_read() {
    let limits = GatewayLimits { outbox_bytes_max: 100, ..GatewayLimits::default() };
    let mut fixture =
        GatewayFixture::with_config(GatewayConfig { limits, ..GatewayConfig::default() });
    fixture.send_from_client(A, &request(&json!(1), ATTACH, &observe_params(true)));
    refuse_location(&mut fixture);
    let (token, _) = last_read(&fixture);
    fixture.other_outputs.clear();
    fixture.feed(GatewayInput::LogRead { token, events: Ok(vec![closed_event(1)]) });
    let reads = |it: &GatewayOutput| matches!(it, GatewayOutput::ReadLog { .. });
    assert!(!fixture.other_outputs.iter().any(reads));
    fixture.feed(GatewayInput::ClientWrote { conn: A, bytes: 1_000 });
    assert!(fixture.other_outputs.iter().any(reads));
}

#[test]
fn managing_requests_without_a_host_are_refused_while_prompts_wait() {
    let mut fixture = GatewayFixture::new();
    let params = json!({ "sessionId": "s-1" });
    fixture.send_from_client(A, &request(&json!(1), "session/delete", &params));
    fixture.send_from_client(A, &request(&json!(2), "session/prompt", &params));
    refuse_location(&mut fixture);
    assert!(
        fixture.client_frames.is_empty(),
        "a host that is started again may take it: {:?}",
        fixture.client_frames
    );
    fixture.advance_time(5_000);
    refuse_location(&mut fixture);
    let [(A, answer)] = &fixture.client_frames[..] else { panic!("{:?}", fixture.client_frames) };
    assert_eq!(answer["id"], 1);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("its host `z` is away") && message.contains("its log"), "{message}");
}

#[test]
fn failed_log_read_is_an_error_and_a_disconnect_ends_the_read() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(A, &request(&json!(1), ATTACH, &observe_params(false)));
    refuse_location(&mut fixture);
    let (token, _) = last_read(&fixture);
    let events = Err(Fault::HostLost { why: "the servers do not answer".into() });
    fixture.feed(GatewayInput::LogRead { token, events });
    assert_eq!(
        fixture.client_frames.last().unwrap().1["error"]["data"]["jackfield"]["code"],
        "host_lost"
    );

    fixture.send_from_client(B, &request(&json!(2), ATTACH, &observe_params(false)));
    fixture.advance_time(250);
    refuse_location(&mut fixture);
    let (token, _) = last_read(&fixture);
    fixture.feed(GatewayInput::ClientGone { conn: B });
    let before = fixture.client_frames.len();
    fixture.feed(GatewayInput::LogRead { token, events: Ok(vec![closed_event(1)]) });
    assert_eq!(fixture.client_frames.len(), before);
}
