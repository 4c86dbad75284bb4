//! Envelopes, case by case. The first part are the cases that the plan of the generic ACP runner
//! lists for its mapper, by its own words: `running`, `idle`, `stopped`, `error` are the facts that
//! `envelope/mod.rs` says they are.

use crate::log::Log;
use crate::test_events::received;
use jackfield_views::{
    Envelope,
    envelope::{Ev, Role, TurnStatus},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the envelopes are, in order: `turn-start`, `text` …
fn kinds(log: &Log) -> Vec<String> {
    log.envelopes().iter().map(kind).collect()
}

fn kind(envelope: &Envelope) -> String {
    serde_json::to_value(&envelope.ev).unwrap()["t"].as_str().unwrap().to_owned()
}

/// Without what the user said.
fn agents(log: &Log) -> Vec<Envelope> {
    log.envelopes().into_iter().filter(|it| it.role == Role::Agent).collect()
}

fn running() -> Log {
    Log::opened().prompted("Hi")
}

fn ends(log: &Log) -> Vec<TurnStatus> {
    let status = |it: &Envelope| match it.ev {
        Ev::TurnEnd { status, .. } => Some(status),
        _ => None,
    };
    log.envelopes().iter().filter_map(status).collect()
}

fn is_cuid(id: &str) -> bool {
    id.len() == 24
        && id.starts_with(|it: char| it.is_ascii_lowercase())
        && id.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
}

mod turn_lifecycle {
    use super::*;

    #[test]
    fn running_emits_one_turn_start_with_a_cuid_as_turn() {
        let envelopes = agents(&running());
        assert_eq!(envelopes.len(), 1);
        assert_eq!(envelopes[0].ev, Ev::TurnStart);
        assert!(is_cuid(envelopes[0].turn.as_deref().unwrap()));
    }

    #[test]
    fn running_then_idle_completes_the_same_turn() {
        let envelopes = agents(&running().stopped("end_turn"));
        let end = Ev::TurnEnd { status: TurnStatus::Completed, error: None };
        assert_eq!(envelopes.len(), 2);
        assert_eq!((&envelopes[0].ev, &envelopes[1].ev), (&Ev::TurnStart, &end));
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_then_error_fails_the_same_turn() {
        let envelopes = agents(&running().failed("no key"));
        let end = Ev::TurnEnd { status: TurnStatus::Failed, error: Some("no key".into()) };
        assert_eq!(envelopes.len(), 2);
        assert_eq!(envelopes[1].ev, end);
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_then_stopped_cancels_the_same_turn() {
        let envelopes = agents(&running().stopped("cancelled"));
        let end = Ev::TurnEnd { status: TurnStatus::Cancelled, error: None };
        assert_eq!(envelopes.len(), 2);
        assert_eq!(envelopes[1].ev, end);
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_twice_makes_one_turn_start() {
        assert_eq!(kinds(&running().again()), ["text", "turn-start"]);
    }

    #[test]
    fn idle_without_running_makes_nothing() {
        assert_eq!(kinds(&Log::opened().stopped("end_turn")), [""; 0]);
    }

    #[test]
    fn idle_twice_makes_one_turn_end() {
        assert_eq!(ends(&running().stopped("end_turn").again()), [TurnStatus::Completed]);
    }

    #[test]
    fn running_idle_running_idle_are_two_turns_with_two_ids() {
        let log = running().stopped("end_turn").prompted("More").stopped("end_turn");
        let envelopes = agents(&log);
        let turns: Vec<&str> = envelopes.iter().map(|it| it.turn.as_deref().unwrap()).collect();
        assert_eq!(turns.len(), 4);
        assert!(turns[0] == turns[1] && turns[2] == turns[3] && turns[0] != turns[2]);
    }

    #[test]
    fn starting_is_ignored() {
        assert_eq!(kinds(&Log::opened()), [""; 0]);
        let bound = json!({ "is": "bound", "rung": "resumed", "setup": null });
        assert_eq!(kinds(&Log::opened().fact(bound)), [""; 0]);
    }

    #[test]
    fn running_without_idle_ends_as_failed_when_the_next_turn_begins() {
        let log = running().tool("c1", "ls").prompted("More");
        let told = ["text", "turn-start", "tool-call-start", "tool-call-end", "turn-end"];
        assert_eq!(kinds(&log)[..5], told);
        assert_eq!(kinds(&log)[5..], ["text", "turn-start"]);
        assert_eq!(ends(&log), [TurnStatus::Failed]);
        let envelopes = agents(&log);
        assert_eq!(envelopes[0].turn, envelopes[2].turn);
        assert_ne!(envelopes[0].turn, envelopes[4].turn);
    }

    #[test]
    fn a_turn_that_was_interrupted_is_failed_and_says_why() {
        let error = json!({ "code": -31006, "message": "interrupted: the daemon ended during the turn",
                            "data": { "jackfield": { "code": "interrupted" } } });
        let log = running().ended("interrupted", &error);
        let message = "interrupted: the daemon ended during the turn".to_owned();
        let end = Ev::TurnEnd { status: TurnStatus::Failed, error: Some(message) };
        assert_eq!(agents(&log)[1].ev, end);
    }

    #[test]
    fn a_turn_that_a_cancel_interrupted_is_cancelled() {
        let error = json!({ "code": -31000, "message": "agent `claude` ended: killed" });
        let answer =
            json!({ "stopReason": "cancelled", "_meta": { "jackfield": { "error": error } } });
        let cancelled = json!({ "is": "cancelled", "turn": 1, "step": 3 });
        let log = running().fact(cancelled).ended("stopped", &answer);
        assert_eq!(ends(&log), [TurnStatus::Cancelled]);
    }
}

mod text {
    use super::*;

    #[test]
    fn model_output_in_a_turn_is_text_with_that_turn() {
        let envelopes = agents(&running().text("Hello"));
        assert_eq!(envelopes[1].ev, Ev::Text { text: "Hello".into(), thinking: false });
        assert_eq!(envelopes[1].turn, envelopes[0].turn);
    }

    #[test]
    fn model_output_outside_of_any_turn_is_text_without_a_turn() {
        let envelopes = agents(&Log::opened().text("Welcome"));
        assert_eq!(envelopes[0].ev, Ev::Text { text: "Welcome".into(), thinking: false });
        assert_eq!(envelopes[0].turn, None);
    }

    #[test]
    fn an_empty_delta_makes_nothing() {
        assert_eq!(kinds(&running().text("")), ["text", "turn-start"]);
    }

    #[test]
    fn words_after_the_end_are_told_with_the_turn_that_is_over() {
        let envelopes = agents(&running().stopped("end_turn").text("Oh, and"));
        assert_eq!(envelopes[2].ev, Ev::Text { text: "Oh, and".into(), thinking: false });
        assert_eq!(envelopes[2].turn, envelopes[0].turn);
    }

    #[test]
    fn a_prompt_is_text_of_the_user_before_the_turn_starts() {
        let envelopes = running().envelopes();
        assert_eq!(envelopes[0].role, Role::User);
        assert_eq!(envelopes[0].ev, Ev::Text { text: "Hi".into(), thinking: false });
        assert_eq!(envelopes[0].turn, None);
    }

    #[test]
    fn what_a_prompt_has_besides_text_is_told_as_a_file_or_a_link() {
        let prompt = json!([
            { "type": "text", "text": "Look" },
            { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
            { "type": "resource_link", "uri": "file:///p/a.rs", "name": "a.rs" },
        ]);
        let envelopes = Log::opened().prompted_with(&prompt).envelopes();
        let evs: Vec<Value> =
            envelopes.iter().map(|it| serde_json::to_value(&it.ev).unwrap()).collect();
        let file = json!({ "t": "file", "ref": "s-abcdefghijkl/2/1", "name": "image.png",
                           "size": 5, "mimeType": "image/png" });
        assert_eq!(evs[1], file);
        assert_eq!(evs[2], json!({ "t": "text", "text": "[a.rs](file:///p/a.rs)" }));
        assert!(envelopes[..3].iter().all(|it| it.role == Role::User));
    }
}

mod tool_calls {
    use super::*;

    fn call(envelope: &Envelope) -> &str {
        match &envelope.ev {
            Ev::ToolCallStart { call, .. } | Ev::ToolCallEnd { call } => call,
            other => panic!("no tool call: {other:?}"),
        }
    }

    #[test]
    fn a_tool_call_starts_with_a_cuid_a_name_a_title_a_description_and_its_args() {
        let envelopes = agents(&running().tool("c1", "ls -l"));
        let Ev::ToolCallStart { call, name, title, description, args } = &envelopes[1].ev else {
            panic!("{:?}", envelopes[1]);
        };
        assert!(is_cuid(call));
        assert_eq!((name.as_str(), title.as_str()), ("Bash", "ls -l"));
        assert_eq!(description, "Running Bash");
        assert_eq!(Value::Object(args.clone()), json!({ "command": "ls -l" }));
    }

    #[test]
    fn a_tool_result_ends_the_call_with_the_same_cuid() {
        let envelopes = agents(&running().tool("c1", "ls").tool_done("c1", "a"));
        assert_eq!(call(&envelopes[1]), call(&envelopes[2]));
        let end = Ev::ToolCallEnd { call: call(&envelopes[1]).to_owned() };
        assert_eq!(envelopes[2].ev, end);
    }

    #[test]
    fn several_tool_calls_have_cuids_of_their_own_and_pair_up() {
        let log = running().tool("c1", "a").tool("c2", "b").tool_done("c2", "").tool_done("c1", "");
        let envelopes = agents(&log);
        let calls: Vec<&str> = envelopes[1..].iter().map(call).collect();
        assert!(calls[0] == calls[3] && calls[1] == calls[2] && calls[0] != calls[1]);
    }

    #[test]
    fn a_result_of_an_unknown_call_still_ends_one_with_a_cuid() {
        let envelopes = agents(&running().tool_done("unheard", "a"));
        assert_eq!(envelopes.len(), 2);
        assert_eq!(kind(&envelopes[1]), "tool-call-end");
        assert!(is_cuid(call(&envelopes[1])));
    }

    #[test]
    fn all_envelopes_of_tools_carry_the_turn() {
        let log = running().tool("c1", "a").tool_done("c1", "").tool_done("unheard", "");
        let envelopes = agents(&log);
        assert_eq!(envelopes.len(), 4);
        assert!(envelopes.iter().all(|it| it.turn == envelopes[0].turn));
    }

    #[test]
    fn a_call_that_is_open_when_the_turn_ends_is_ended_before_it() {
        let log = running().tool("c1", "a").stopped("cancelled").tool_done("c1", "late");
        let told = ["text", "turn-start", "tool-call-start", "tool-call-end", "turn-end"];
        assert_eq!(kinds(&log), told);
    }

    #[test]
    fn a_call_of_a_sub_agent_names_it() {
        let child = json!({ "sessionUpdate": "tool_call", "toolCallId": "c2", "title": "ls",
                            "kind": "execute", "rawInput": { "command": "ls" },
                            "_meta": { "jackfield": { "parentToolCallId": "c1" } } });
        let log = running().tool("c1", "Look around").said(&child).tool_done("c2", "a");
        let envelopes = agents(&log);
        let subagent = envelopes[2].subagent.as_deref().unwrap();
        assert!(is_cuid(subagent));
        assert_eq!(envelopes[3].subagent.as_deref(), Some(subagent));
        assert_eq!(envelopes[1].subagent, None);
    }
}

mod thinking {
    use super::*;

    #[test]
    fn a_thought_is_text_that_says_so_with_the_turn() {
        let envelopes = agents(&running().thought("Hm"));
        assert_eq!(envelopes[1].ev, Ev::Text { text: "Hm".into(), thinking: true });
        assert_eq!(envelopes[1].turn, envelopes[0].turn);
        let sent = serde_json::to_value(&envelopes[1].ev).unwrap();
        assert_eq!(sent, json!({ "t": "text", "text": "Hm", "thinking": true }));
    }

    #[test]
    fn a_thought_without_text_makes_nothing() {
        assert_eq!(kinds(&running().thought("")), ["text", "turn-start"]);
    }
}

mod ignored_messages {
    use super::*;

    /// What comes after a turn has started and a tool runs.
    fn told(then: impl Fn(Log) -> Log) -> Vec<String> {
        let before = running().tool("c1", "ls");
        kinds(&then(before.clone()))[kinds(&before).len()..].to_vec()
    }

    #[test]
    fn a_permission_request_is_none_of_the_protocols_messages_but_an_addition() {
        assert_eq!(told(|it| it.asked("c1")), ["permission-request"]);
    }

    #[test]
    fn a_permission_response_is_none_of_the_protocols_messages_but_an_addition() {
        let told = told(|it| it.asked("c1").answered("yes"));
        assert_eq!(told, ["permission-request", "permission-response"]);
    }

    #[test]
    fn a_token_count_makes_nothing() {
        let usage = json!({ "sessionUpdate": "usage_update", "used": 7, "size": 100 });
        assert_eq!(told(|it| it.said(&usage)), [""; 0]);
    }

    #[test]
    fn an_edit_of_a_file_makes_nothing() {
        let diff = json!([{ "type": "diff", "path": "/p/a", "newText": "b" }]);
        let edit =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "content": diff });
        assert_eq!(told(|it| it.said(&edit)), [""; 0]);
    }

    #[test]
    fn the_output_of_a_terminal_makes_nothing() {
        let meta = json!({ "terminal_output": { "terminal_id": "t", "data": "a\n" } });
        let output =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "_meta": meta });
        assert_eq!(told(|it| it.said(&output)), [""; 0]);
    }

    #[test]
    fn plans_modes_commands_and_news_make_nothing() {
        for kind in ["plan", "current_mode_update", "available_commands_update", "news"] {
            let update = json!({ "sessionUpdate": kind, "entries": [], "currentModeId": "plan" });
            assert_eq!(told(|it| it.said(&update)), [""; 0], "{kind}");
        }
    }
}

mod id_consistency {
    use super::*;

    fn full_turn(log: Log) -> Log {
        let log = log.prompted("Hi").text("I will").tool("c1", "ls").tool_done("c1", "a");
        log.text("Done").stopped("end_turn")
    }

    #[test]
    fn a_full_turn_has_one_turn_id_one_call_id_and_an_id_for_each_envelope() {
        let log = full_turn(Log::opened());
        let told =
            ["text", "turn-start", "text", "tool-call-start", "tool-call-end", "text", "turn-end"];
        assert_eq!(kinds(&log), told);
        let envelopes = agents(&log);
        assert!(envelopes.iter().all(|it| it.turn.is_some() && it.turn == envelopes[0].turn));
        let started = serde_json::to_value(&envelopes[2].ev).unwrap();
        let ended = serde_json::to_value(&envelopes[3].ev).unwrap();
        assert_eq!(started["call"], ended["call"]);
        let all = log.envelopes();
        let ids: BTreeSet<&str> = all.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        assert!(ids.iter().all(|it| is_cuid(it)));
    }

    #[test]
    fn the_turn_changes_between_turns() {
        let log = full_turn(full_turn(Log::opened()));
        let turns: BTreeSet<_> = agents(&log).iter().map(|it| it.turn.clone()).collect();
        assert_eq!(turns.len(), 2);
    }

    #[test]
    fn reading_again_gives_the_same_and_another_session_gives_other_ids() {
        let log = full_turn(Log::opened());
        assert_eq!(log.envelopes(), log.envelopes());
        let mut other = jackfield_views::Envelopes::new("s-other");
        let other: BTreeSet<String> =
            log.facts.iter().flat_map(|it| other.fold(&received(it))).map(|it| it.id).collect();
        assert!(log.envelopes().iter().all(|it| !other.contains(&it.id)));
    }

    #[test]
    fn facts_that_come_again_make_nothing_twice() {
        let log = full_turn(full_turn(Log::opened()));
        let mut envelopes = jackfield_views::Envelopes::new(crate::log::SESSION);
        let mut told: Vec<Envelope> = Vec::new();
        for upto in 1..=log.facts.len() {
            // A reader that lost its place and begins three facts earlier each time.
            let from = upto.saturating_sub(4);
            told.extend(log.facts[from..upto].iter().flat_map(|it| envelopes.fold(&received(it))));
        }
        assert_eq!(told, log.envelopes());
    }
}
