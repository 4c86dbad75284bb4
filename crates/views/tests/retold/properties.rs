//! What holds for every log: of real agents, of sessions made up by chance, and of no sessions at all.

use crate::{
    foreign::translated,
    log::{Log, SESSION},
    made_up::{anything, session},
    recorded::tapes,
    test_events::{received, received_any},
};
use jackfield_views::{AgentEvents, Envelope, Envelopes, envelope::Ev};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The envelopes of each fact.
fn envelopes(facts: &[Value]) -> Vec<Vec<Envelope>> {
    let mut envelopes = Envelopes::new(SESSION);
    facts.iter().map(|it| envelopes.fold(&received(it))).collect()
}

/// The events of each fact, without what only those know who were there from the beginning.
fn events(facts: &[Value]) -> Vec<Vec<Value>> {
    let mut events = AgentEvents::default();
    let told = |it| {
        let mut event = serde_json::to_value(&it).unwrap();
        event.as_object_mut().unwrap().shift_remove("costUsd");
        if event["label"] != "model" {
            event.as_object_mut().unwrap().shift_remove("model");
        }
        event
    };
    facts.iter().map(|it| events.fold(&received(it)).into_iter().map(told).collect()).collect()
}

/// Whoever starts later hears nothing else, and from the next turn on everything.
fn starting_anywhere_is_the_same(log: &Log) {
    let (whole, whole_events) = (envelopes(&log.facts), events(&log.facts));
    let mut mentioned: BTreeSet<String> = BTreeSet::new();
    for start in 1..log.facts.len() {
        mentioned.extend(mention(&log.facts[start - 1]));
        let rest = &log.facts[start..];
        let turn = rest.iter().position(|it| it["is"] == "prompted").unwrap_or(rest.len());
        let made = made(&rest[..turn]);
        for (index, told) in envelopes(rest).iter().enumerate() {
            let (expected, fact) = (&whole[start + index], &rest[index]);
            if turn < index {
                assert_eq!(timeless(told), timeless(expected), "{fact}");
            } else {
                // Of a call that the agent spoke of before, nobody can say how far it was told.
                let is_new = |it: &str| made.contains(it) && !mentioned.contains(it);
                let told = told.iter().filter(|it| call(it).is_none_or(is_new));
                within(told, expected, fact);
            }
        }
        let (later, told) = (rest.len().min(turn + 1), events(rest));
        assert_eq!(told[later..], whole_events[start + later..], "from {start}");
        for (told, expected) in told[..turn].iter().zip(&whole_events[start..]) {
            let expected: Vec<Value> = expected.iter().map(ageless).collect();
            let mut told = told.iter().filter(|it| !is_of_tool(it)).map(ageless);
            assert!(told.all(|it| expected.contains(&it)), "from {start}: {expected:?}");
        }
    }
}

/// Without what is counted from the beginning of the turn.
fn ageless(event: &Value) -> Value {
    let mut event = event.clone();
    for member in ["durationMs", "elapsedMs"] {
        event.as_object_mut().unwrap().shift_remove(member);
    }
    event
}

fn is_of_tool(event: &Value) -> bool {
    event["type"]
        .as_str()
        .is_some_and(|it| it.starts_with("tool_") || it.starts_with("permission_"))
}

/// Calls that are made before anything else is said of them.
fn made(facts: &[Value]) -> BTreeSet<String> {
    let mut first: BTreeMap<String, bool> = BTreeMap::new();
    for fact in facts {
        let made = fact["frame"]["params"]["update"]["sessionUpdate"] == "tool_call";
        if let Some(call) = mention(fact) {
            first.entry(call).or_insert(made);
        }
    }
    first.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}

/// The call that a fact is about, as envelopes name it.
fn mention(fact: &Value) -> Option<String> {
    let params = &fact["frame"]["params"];
    let of_update = params["update"]["toolCallId"].as_str();
    let id = of_update.or(params["toolCall"]["toolCallId"].as_str())?;
    let ended = Log::opened().prompted("").tool_done(id, "").envelopes().pop().unwrap();
    call(&ended).map(str::to_owned)
}

/// Clocks that go back are made up for from where one starts.
fn timeless(envelopes: &[Envelope]) -> Vec<Envelope> {
    envelopes.iter().map(|it| Envelope { time: 0, ..it.clone() }).collect()
}

/// Some of the same, with the same ids, turns and calls.
fn within<'a>(told: impl Iterator<Item = &'a Envelope>, expected: &[Envelope], fact: &Value) {
    for envelope in told {
        let found = expected.iter().find(|it| it.id == envelope.id);
        let found = found.unwrap_or_else(|| panic!("{envelope:?} is new at {fact}"));
        assert!(envelope.turn.is_none() || envelope.turn == found.turn, "{fact}");
        assert_eq!(call(envelope).or(call(found)), call(found), "{fact}");
        assert_eq!(envelope.role, found.role);
    }
}

fn call(envelope: &Envelope) -> Option<&str> {
    match &envelope.ev {
        Ev::ToolCallStart { call, .. }
        | Ev::ToolCallEnd { call }
        | Ev::PermissionRequest { call, .. } => Some(call),
        Ev::PermissionResponse { call, .. } => call.as_deref(),
        _ => None,
    }
}

fn ids_are_unique_and_times_increase(envelopes: &[Envelope]) {
    let ids: BTreeSet<&str> = envelopes.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), envelopes.len(), "{envelopes:#?}");
    assert!(envelopes.is_sorted_by(|a, b| a.time < b.time), "{envelopes:#?}");
}

/// Each tool is used once in a turn, and has one result when the turn is over.
fn every_tool_has_one_result(log: &Log) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (fact, told) in log.facts.iter().zip(events(&log.facts)) {
        for event in told {
            if let (Some("tool_use"), Some(id)) = (event["type"].as_str(), event["id"].as_str()) {
                assert!(open.insert(id.to_owned()), "{id} is used twice at {fact}");
                let uses = seen.entry(id.to_owned()).or_default();
                *uses += 1;
                assert_eq!(*uses, 1, "{id} is used again at {fact}");
            } else if event["type"] == "tool_result" {
                let id = event["toolUseId"].as_str().unwrap();
                let used = seen.contains_key(id);
                assert!(open.remove(id) || !used, "{id} has two results at {fact}");
            }
        }
        if fact["is"] == "ended" {
            assert!(open.is_empty(), "{open:?} have no result at {fact}");
        }
        if fact["is"] == "prompted" {
            seen.clear();
        }
    }
}

/// Nothing that was said is lost, doubled, or put in another order.
fn text_in_is_text_out(log: &Log) {
    for (kind, delta, thinking) in [
        ("agent_message_chunk", "text_delta", false),
        ("agent_thought_chunk", "thinking_delta", true),
    ] {
        let said: String = log.facts.iter().filter_map(|it| said(it, kind)).collect();
        let told = events(&log.facts).concat();
        let told = told.iter().filter(|it| it["type"] == delta);
        let told: String = told.filter_map(|it| it["delta"].as_str()).collect();
        assert_eq!(told, said);
        assert_eq!(texts(&log.envelopes(), thinking), said);
        let whole = texts(&log.whole_envelopes(), thinking);
        assert_eq!(whole.replace('\n', ""), said.replace('\n', ""));
    }
}

fn said<'a>(fact: &'a Value, kind: &str) -> Option<&'a str> {
    let update = &fact["frame"]["params"]["update"];
    let is_it = fact["is"] == "said" && update["sessionUpdate"] == kind;
    update["content"]["text"].as_str().filter(|_| is_it)
}

fn texts(envelopes: &[Envelope], of_thoughts: bool) -> String {
    let text = |it: &Envelope| match &it.ev {
        Ev::Text { text, thinking }
            if *thinking == of_thoughts && it.role == jackfield_views::envelope::Role::Agent =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    envelopes.iter().filter_map(text).collect()
}

fn all_holds(log: &Log) {
    ids_are_unique_and_times_increase(&log.envelopes());
    ids_are_unique_and_times_increase(&log.whole_envelopes());
    every_tool_has_one_result(log);
    text_in_is_text_out(log);
}

#[test]
fn everything_holds_for_what_real_agents_said() {
    for (_, log) in tapes().into_iter().flat_map(|it| it.1) {
        all_holds(&log);
    }
    for (_, log) in translated().into_values().flatten() {
        all_holds(&log);
    }
}

#[test]
fn whoever_starts_later_in_what_real_agents_said_hears_the_same() {
    for (_, log) in tapes().into_iter().flat_map(|it| it.1) {
        starting_anywhere_is_the_same(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_holds_for_sessions_made_up_by_chance(log in session()) {
        all_holds(&log);
        starting_anywhere_is_the_same(&log);
    }

    #[test]
    fn no_fact_is_a_reason_to_panic(facts in prop::collection::vec(anything(), 0..24)) {
        let mut views = (AgentEvents::default(), Envelopes::new(SESSION), Envelopes::accumulating(SESSION));
        let (mut pieces, mut whole) = (Vec::new(), Vec::new());
        for event in facts.iter().filter_map(received_any) {
            for event in views.0.fold(&event) {
                serde_json::to_string(&event).unwrap();
            }
            pieces.extend(views.1.fold(&event));
            whole.extend(views.2.fold(&event));
        }
        whole.extend(views.2.finish());
        for envelopes in [pieces, whole] {
            serde_json::to_string(&envelopes).unwrap();
            ids_are_unique_and_times_increase(&envelopes);
        }
    }
}
