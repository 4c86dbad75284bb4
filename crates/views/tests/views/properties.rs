//! Properties of the views for every log: recorded agents, generated sessions, and arbitrary events.

use crate::{
    adapters::load_translated,
    generated::{any_event, any_session},
    recorded::load_recordings,
    session_log::{SESSION, SessionLog},
    test_events::{build_event, build_event_if_known},
};
use jackfield_views::{AgentEventView, Envelope, EnvelopeView, envelope::EnvelopeEvent};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The envelopes of each event.
fn envelopes_by_event(events: &[Value]) -> Vec<Vec<Envelope>> {
    let mut view = EnvelopeView::new(SESSION).with_additions();
    events.iter().map(|it| view.fold_event(&build_event(it))).collect()
}

/// The agent events of each event, without the members that depend on the start of the session.
fn agent_events_by_event(events: &[Value]) -> Vec<Vec<Value>> {
    let mut view = AgentEventView::default();
    let comparable = |it| {
        let mut event = serde_json::to_value(&it).unwrap();
        event.as_object_mut().unwrap().shift_remove("costUsd");
        if event["label"] != "model" {
            event.as_object_mut().unwrap().shift_remove("model");
        }
        event
    };
    let fold = |it| view.fold_event(&build_event(it)).into_iter().map(comparable).collect();
    events.iter().map(fold).collect()
}

/// A reader that starts later gets nothing else, and from the next turn on everything.
fn assert_same_from_any_start(log: &SessionLog) {
    let (all, all_events) = (envelopes_by_event(&log.events), agent_events_by_event(&log.events));
    let mut mentioned: BTreeSet<String> = BTreeSet::new();
    for start in 1..log.events.len() {
        mentioned.extend(mentioned_call(&log.events[start - 1]));
        let rest = &log.events[start..];
        let turn = rest.iter().position(|it| it["is"] == "prompted").unwrap_or(rest.len());
        let made = calls_made_first(&rest[..turn]);
        for (index, envelopes) in envelopes_by_event(rest).iter().enumerate() {
            let (expected, event) = (&all[start + index], &rest[index]);
            if turn < index {
                assert_eq!(without_times(envelopes), without_times(expected), "{event}");
            } else {
                // The state of a call that was mentioned before is unknown.
                let is_new = |it: &str| made.contains(it) && !mentioned.contains(it);
                let known = envelopes.iter().filter(|it| call_of(it).is_none_or(is_new));
                assert_contained(known, expected, event);
            }
        }
        let (later, events) = (rest.len().min(turn + 1), agent_events_by_event(rest));
        assert_eq!(events[later..], all_events[start + later..], "from {start}");
        for (events, expected) in events[..turn].iter().zip(&all_events[start..]) {
            let expected: Vec<Value> = expected.iter().map(without_durations).collect();
            let mut events = events.iter().filter(|it| !is_tool_event(it)).map(without_durations);
            assert!(events.all(|it| expected.contains(&it)), "from {start}: {expected:?}");
        }
    }
}

/// The event without durations since the start of the turn.
fn without_durations(event: &Value) -> Value {
    let mut event = event.clone();
    for member in ["durationMs", "elapsedMs"] {
        event.as_object_mut().unwrap().shift_remove(member);
    }
    event
}

fn is_tool_event(event: &Value) -> bool {
    event["type"]
        .as_str()
        .is_some_and(|it| it.starts_with("tool_") || it.starts_with("permission_"))
}

/// Calls whose first mention is the `tool_call`.
fn calls_made_first(events: &[Value]) -> BTreeSet<String> {
    let mut first: BTreeMap<String, bool> = BTreeMap::new();
    for event in events {
        let is_made = event["frame"]["params"]["update"]["sessionUpdate"] == "tool_call";
        if let Some(call) = mentioned_call(event) {
            first.entry(call).or_insert(is_made);
        }
    }
    first.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}

/// The call that an event is about, by its id in envelopes.
fn mentioned_call(event: &Value) -> Option<String> {
    let params = &event["frame"]["params"];
    let update_id = params["update"]["toolCallId"].as_str();
    let id = update_id.or(params["toolCall"]["toolCallId"].as_str())?;
    let ended = SessionLog::opened().prompted("").tool_done(id, "").envelopes().pop().unwrap();
    call_of(&ended).map(str::to_owned)
}

/// Times are corrected from the start on if the clock goes back, so they depend on the start.
fn without_times(envelopes: &[Envelope]) -> Vec<Envelope> {
    envelopes.iter().map(|it| Envelope { time: 0, ..it.clone() }).collect()
}

/// The envelopes are a subset of the expected ones, with the same ids, turns and calls.
fn assert_contained<'a>(
    envelopes: impl Iterator<Item = &'a Envelope>,
    expected: &[Envelope],
    event: &Value,
) {
    for envelope in envelopes {
        let found = expected.iter().find(|it| it.id == envelope.id);
        let found = found.unwrap_or_else(|| panic!("{envelope:?} is new at {event}"));
        assert!(envelope.turn.is_none() || envelope.turn == found.turn, "{event}");
        assert_eq!(call_of(envelope).or(call_of(found)), call_of(found), "{event}");
        assert_eq!(envelope.role, found.role);
    }
}

fn call_of(envelope: &Envelope) -> Option<&str> {
    match &envelope.ev {
        EnvelopeEvent::ToolCallStart { call, .. }
        | EnvelopeEvent::ToolCallEnd { call }
        | EnvelopeEvent::PermissionRequest { call, .. } => Some(call),
        EnvelopeEvent::PermissionResponse { call, .. } => call.as_deref(),
        _ => None,
    }
}

fn assert_unique_ids_and_increasing_times(envelopes: &[Envelope]) {
    let ids: BTreeSet<&str> = envelopes.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), envelopes.len(), "{envelopes:#?}");
    assert!(envelopes.is_sorted_by(|a, b| a.time < b.time), "{envelopes:#?}");
}

/// Each tool call starts once in a turn, and has one result at the end of the turn.
fn assert_one_result_per_tool(log: &SessionLog) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (logged, events) in log.events.iter().zip(agent_events_by_event(&log.events)) {
        for event in events {
            if let (Some("tool_use"), Some(id)) = (event["type"].as_str(), event["id"].as_str()) {
                assert!(open.insert(id.to_owned()), "{id} starts twice at {logged}");
                let uses = seen.entry(id.to_owned()).or_default();
                *uses += 1;
                assert_eq!(*uses, 1, "{id} starts again at {logged}");
            } else if event["type"] == "tool_result" {
                let id = event["toolUseId"].as_str().unwrap();
                let used = seen.contains_key(id);
                assert!(open.remove(id) || !used, "{id} has two results at {logged}");
            }
        }
        if logged["is"] == "ended" {
            assert!(open.is_empty(), "{open:?} have no result at {logged}");
        }
        if logged["is"] == "prompted" {
            seen.clear();
        }
    }
}

/// No text is lost, repeated or reordered.
fn assert_complete_text(log: &SessionLog) {
    for (kind, delta, thinking) in [
        ("agent_message_chunk", "text_delta", false),
        ("agent_thought_chunk", "thinking_delta", true),
    ] {
        let logged: String = log.events.iter().filter_map(|it| logged_text(it, kind)).collect();
        let events = agent_events_by_event(&log.events).concat();
        let deltas = events.iter().filter(|it| it["type"] == delta);
        let deltas: String = deltas.filter_map(|it| it["delta"].as_str()).collect();
        assert_eq!(deltas, logged);
        assert_eq!(envelope_text(&log.envelopes(), thinking), logged);
        let joined = envelope_text(&log.joined_envelopes(), thinking);
        assert_eq!(joined.replace('\n', ""), logged.replace('\n', ""));
    }
}

fn logged_text<'a>(event: &'a Value, kind: &str) -> Option<&'a str> {
    let update = &event["frame"]["params"]["update"];
    let is_match = event["is"] == "said" && update["sessionUpdate"] == kind;
    update["content"]["text"].as_str().filter(|_| is_match)
}

fn envelope_text(envelopes: &[Envelope], is_thought: bool) -> String {
    let text = |it: &Envelope| match &it.ev {
        EnvelopeEvent::Text { text, thinking }
            if *thinking == is_thought
                && it.role == jackfield_views::envelope::EnvelopeRole::Agent =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    envelopes.iter().filter_map(text).collect()
}

fn assert_all_properties(log: &SessionLog) {
    assert_unique_ids_and_increasing_times(&log.envelopes());
    assert_unique_ids_and_increasing_times(&log.joined_envelopes());
    assert_one_result_per_tool(log);
    assert_complete_text(log);
}

#[test]
fn recorded_sessions_have_all_properties() {
    for (_, log) in load_recordings().into_iter().flat_map(|it| it.1) {
        assert_all_properties(&log);
    }
    for (_, log) in load_translated().into_values().flatten() {
        assert_all_properties(&log);
    }
}

#[test]
fn recorded_sessions_read_the_same_from_any_start() {
    for (_, log) in load_recordings().into_iter().flat_map(|it| it.1) {
        assert_same_from_any_start(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_sessions_have_all_properties(log in any_session()) {
        assert_all_properties(&log);
        assert_same_from_any_start(&log);
    }

    #[test]
    fn no_event_causes_a_panic(events in prop::collection::vec(any_event(), 0..24)) {
        let mut views = (AgentEventView::default(), EnvelopeView::new(SESSION), EnvelopeView::joining_chunks(SESSION));
        let (mut separate, mut joined) = (Vec::new(), Vec::new());
        for event in events.iter().filter_map(build_event_if_known) {
            for event in views.0.fold_event(&event) {
                serde_json::to_string(&event).unwrap();
            }
            separate.extend(views.1.fold_event(&event));
            joined.extend(views.2.fold_event(&event));
        }
        joined.extend(views.2.finish());
        for envelopes in [separate, joined] {
            serde_json::to_string(&envelopes).unwrap();
            assert_unique_ids_and_increasing_times(&envelopes);
        }
    }
}
