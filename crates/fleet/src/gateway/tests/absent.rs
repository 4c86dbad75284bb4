//! Sessions that no host may have at the moment: what reads them is served, what manages them is refused soon.

use super::*;
use bytes::Bytes;
use jackfield_events::SessionEvent;
use jackfield_hub::Seq;

const ATTACH: &str = "_jackfield/attach";

/// Nobody may have `s-1`.
fn refuse(scene: &mut Scene) {
    let owner = Err(Fault::NoHost { why: "its host `z` is away".into() });
    scene.feed(GatewayInput::Located { session: "s-1".into(), owner });
}

fn observe(facts: bool) -> Value {
    json!({ "sessionId": "s-1", "after": 0, "observe": true, "facts": facts })
}

/// The token and the place of the last read that was asked for.
fn last_read(scene: &Scene) -> (u64, u64) {
    match scene.others.last() {
        Some(GatewayOutput::ReadLog { token, after, .. }) => (*token, *after),
        other => panic!("no read was asked for: {other:?}"),
    }
}

fn closed(seq: u64) -> SessionEvent {
    let line = Bytes::from_static(br#"{"at":5,"is":"closed"}"#);
    SessionEvent::decode(Seq(seq), &line).unwrap()
}

#[test]
fn observer_reads_the_log_of_a_session_whose_host_is_away_and_hears_on_later() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), ATTACH, &observe(true)));
    refuse(&mut scene);
    let (token, after) = last_read(&scene);
    assert_eq!(after, 0);
    let events = Ok(vec![closed(1), closed(2)]);
    scene.feed(GatewayInput::LogRead { token, events });
    assert_eq!(last_read(&scene), (token, 2), "the next page");
    let heard: Vec<&Value> = scene.told.iter().map(|(_, it)| &it["params"]["seq"]).collect();
    assert_eq!(heard, [&json!(1), &json!(2)]);
    scene.feed(GatewayInput::LogRead { token, events: Ok(vec![]) });
    let (_, answer) = scene.told.last().unwrap();
    let result = json!({ "sessionId": "s-1", "head": 2, "away": "its host `z` is away" });
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &result));

    // A host has it again: it is heard on behind what was read.
    scene.pass(250);
    scene.locate("s-1", "x");
    let (_, said) = scene.said.last().unwrap();
    assert_eq!((&said["method"], &said["params"]["after"]), (&json!(ATTACH), &json!(2)));
}

#[test]
fn observer_that_does_not_read_is_sent_no_more_until_it_has() {
    let limits = GatewayLimits { outbox_bytes_max: 100, ..GatewayLimits::default() };
    let mut scene = Scene::with(GatewayConfig { limits, ..GatewayConfig::default() });
    scene.say(A, &request(&json!(1), ATTACH, &observe(true)));
    refuse(&mut scene);
    let (token, _) = last_read(&scene);
    scene.others.clear();
    scene.feed(GatewayInput::LogRead { token, events: Ok(vec![closed(1)]) });
    let reads = |it: &GatewayOutput| matches!(it, GatewayOutput::ReadLog { .. });
    assert!(!scene.others.iter().any(reads));
    scene.feed(GatewayInput::ClientWrote { conn: A, bytes: 1_000 });
    assert!(scene.others.iter().any(reads));
}

#[test]
fn what_manages_a_session_without_a_host_is_refused_after_a_pause_and_prompts_wait_on() {
    let mut scene = Scene::new();
    let params = json!({ "sessionId": "s-1" });
    scene.say(A, &request(&json!(1), "session/delete", &params));
    scene.say(A, &request(&json!(2), "session/prompt", &params));
    refuse(&mut scene);
    assert!(scene.told.is_empty(), "a host that is started again may take it: {:?}", scene.told);
    scene.pass(5_000);
    refuse(&mut scene);
    let [(A, answer)] = &scene.told[..] else { panic!("{:?}", scene.told) };
    assert_eq!(answer["id"], 1);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("its host `z` is away") && message.contains("its log"), "{message}");
}

#[test]
fn log_that_cannot_be_read_is_an_error_and_a_withdrawn_read_ends() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), ATTACH, &observe(false)));
    refuse(&mut scene);
    let (token, _) = last_read(&scene);
    let events = Err(Fault::HostLost { why: "the servers do not answer".into() });
    scene.feed(GatewayInput::LogRead { token, events });
    assert_eq!(scene.told.last().unwrap().1["error"]["data"]["jackfield"]["code"], "host_lost");

    scene.say(B, &request(&json!(2), ATTACH, &observe(false)));
    scene.pass(250);
    refuse(&mut scene);
    let (token, _) = last_read(&scene);
    scene.feed(GatewayInput::ClientGone { conn: B });
    let before = scene.told.len();
    scene.feed(GatewayInput::LogRead { token, events: Ok(vec![closed(1)]) });
    assert_eq!(scene.told.len(), before);
}
