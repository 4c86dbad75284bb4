//! Every kind of event is written as the same bytes as ever, and read back.

use crate::*;
use std::collections::HashSet;

/// One line per kind of event, with and without its optional members, as the journal has them.
const LINES: &str = include_str!("lines.ndjson");

fn decode(line: &str) -> Result<SessionEvent, InvalidEvent> {
    SessionEvent::decode(Seq(7), line.as_bytes())
}

#[test]
fn every_kind_of_event_is_written_as_the_bytes_that_were_read() {
    let mut kinds = HashSet::new();
    for line in LINES.lines() {
        let event = decode(line).unwrap_or_else(|it| panic!("{line}: {it}"));
        let mut written = Vec::new();
        event.encode(&mut written);
        assert_eq!(String::from_utf8(written).unwrap(), line);
        assert_eq!(EventKind::from_name(&event.body.kind().to_string()), Some(event.body.kind()));
        kinds.insert(event.body.kind());
        assert_eq!((event.seq, event.at), (Seq(7), Time(1_700_000_000_123)));
    }
    assert_eq!(kinds.len(), 24, "a kind of event has no line");
}

#[test]
fn embedded_json_keeps_its_exact_text() {
    let event = decode(r#"{"at":1,"is":"said","turn":1,"frame":{"b": 1.50,"a":[ ]}}"#).unwrap();
    let EventBody::Said(AgentMessage { frame, .. }) = event.body else { panic!("{event:?}") };
    assert_eq!(frame.as_str(), r#"{"b": 1.50,"a":[ ]}"#);
}

#[test]
fn null_is_a_value_of_a_required_member_and_none_of_an_optional_one() {
    let line = r#"{"at":1,"is":"bound","restore":"resumed","setup":null,"tried":null}"#;
    let EventBody::Bound(bound) = decode(line).unwrap().body else { panic!("{line}") };
    assert_eq!((bound.setup, bound.tried), (RawJson::null(), None));
}

#[test]
fn restore_step_of_an_earlier_version_is_read() {
    let line = r#"{"at":1,"is":"bound","rung":"resumed","setup":null}"#;
    let EventBody::Bound(bound) = decode(line).unwrap().body else { panic!("{line}") };
    assert_eq!(bound.restore, RestoreStep::Resumed);
}

#[test]
fn frame_at_the_nesting_limit_is_written_and_read() {
    let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    let line = format!(r#"{{"at":1,"is":"answered","ask":1,"by":"tty","answer":{deep}}}"#);
    let mut written = Vec::new();
    decode(&line).unwrap().encode(&mut written);
    assert_eq!(String::from_utf8(written).unwrap(), line);
}

#[test]
fn order_of_members_does_not_matter() {
    let line = r#"{"why":"idle","is":"slept","at":5}"#;
    assert_eq!(decode(line).unwrap().at, Time(5));
}

#[test]
fn events_of_a_newer_version_are_refused_by_name() {
    let why = decode(r#"{"at":1,"is":"teleported"}"#).unwrap_err().why;
    assert_eq!(why, "invalid event `teleported`: this version does not know it");
    let why = decode(r#"{"at":1,"is":"ended","turn":1,"how":"exploded","answer":{}}"#);
    assert!(why.unwrap_err().why.contains("`exploded`"));
    let why = decode(r#"{"at":1,"is":"slept"}"#).unwrap_err().why;
    assert!(why.contains("`slept`") && why.contains("`why`"), "{why}");
}
