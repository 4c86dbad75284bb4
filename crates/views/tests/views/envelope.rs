//! Envelopes, case by case, with the status names of Happy's session protocol: `envelope/mod.rs` maps
//! `running`, `idle`, `stopped` and `error` to events of the log.

use crate::session_log::SessionLog;
use crate::test_events::build_event;
use jackfield_views::{
    Envelope,
    envelope::{EnvelopeEvent, EnvelopeRole, TurnStatus},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kinds of the envelopes in order: `turn-start`, `text` …
fn kinds(log: &SessionLog) -> Vec<String> {
    log.envelopes().iter().map(kind).collect()
}

fn kind(envelope: &Envelope) -> String {
    serde_json::to_value(&envelope.ev).unwrap()["t"].as_str().unwrap().to_owned()
}

/// The envelopes of the agent.
fn agent_envelopes(log: &SessionLog) -> Vec<Envelope> {
    log.envelopes().into_iter().filter(|it| it.role == EnvelopeRole::Agent).collect()
}

fn running() -> SessionLog {
    SessionLog::opened().prompted("Hi")
}

fn turn_statuses(log: &SessionLog) -> Vec<TurnStatus> {
    let status = |it: &Envelope| match it.ev {
        EnvelopeEvent::TurnEnd { status, .. } => Some(status),
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
    fn running_adds_one_turn_start_with_a_cuid_as_turn() {
        let envelopes = agent_envelopes(&running());
        assert_eq!(envelopes.len(), 1);
        assert_eq!(envelopes[0].ev, EnvelopeEvent::TurnStart);
        assert!(is_cuid(envelopes[0].turn.as_deref().unwrap()));
    }

    #[test]
    fn running_then_idle_completes_the_same_turn() {
        let envelopes = agent_envelopes(&running().stopped("end_turn"));
        let end = EnvelopeEvent::TurnEnd { status: TurnStatus::Completed, error: None };
        assert_eq!(envelopes.len(), 2);
        assert_eq!((&envelopes[0].ev, &envelopes[1].ev), (&EnvelopeEvent::TurnStart, &end));
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_then_error_fails_the_same_turn() {
        let envelopes = agent_envelopes(&running().failed("no key"));
        let end =
            EnvelopeEvent::TurnEnd { status: TurnStatus::Failed, error: Some("no key".into()) };
        assert_eq!(envelopes.len(), 2);
        assert_eq!(envelopes[1].ev, end);
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_then_stopped_cancels_the_same_turn() {
        let envelopes = agent_envelopes(&running().stopped("cancelled"));
        let end = EnvelopeEvent::TurnEnd { status: TurnStatus::Cancelled, error: None };
        assert_eq!(envelopes.len(), 2);
        assert_eq!(envelopes[1].ev, end);
        assert_eq!(envelopes[0].turn, envelopes[1].turn);
    }

    #[test]
    fn running_twice_adds_one_turn_start() {
        assert_eq!(kinds(&running().repeat_last()), ["text", "turn-start"]);
    }

    #[test]
    fn idle_without_running_adds_nothing() {
        assert_eq!(kinds(&SessionLog::opened().stopped("end_turn")), [""; 0]);
    }

    #[test]
    fn idle_twice_adds_one_turn_end() {
        assert_eq!(
            turn_statuses(&running().stopped("end_turn").repeat_last()),
            [TurnStatus::Completed]
        );
    }

    #[test]
    fn running_idle_running_idle_are_two_turns_with_two_ids() {
        let log = running().stopped("end_turn").prompted("More").stopped("end_turn");
        let envelopes = agent_envelopes(&log);
        let turns: Vec<&str> = envelopes.iter().map(|it| it.turn.as_deref().unwrap()).collect();
        assert_eq!(turns.len(), 4);
        assert!(turns[0] == turns[1] && turns[2] == turns[3] && turns[0] != turns[2]);
    }

    #[test]
    fn starting_is_ignored() {
        assert_eq!(kinds(&SessionLog::opened()), [""; 0]);
        let bound = json!({ "is": "bound", "restore": "resumed", "setup": null });
        assert_eq!(kinds(&SessionLog::opened().event(bound)), [""; 0]);
    }

    #[test]
    fn running_without_idle_ends_as_failed_when_the_next_turn_begins() {
        let log = running().tool("c1", "ls").prompted("More");
        let expected = ["text", "turn-start", "tool-call-start", "tool-call-end", "turn-end"];
        assert_eq!(kinds(&log)[..5], expected);
        assert_eq!(kinds(&log)[5..], ["text", "turn-start"]);
        assert_eq!(turn_statuses(&log), [TurnStatus::Failed]);
        let envelopes = agent_envelopes(&log);
        assert_eq!(envelopes[0].turn, envelopes[2].turn);
        assert_ne!(envelopes[0].turn, envelopes[4].turn);
    }

    #[test]
    fn interrupted_turn_is_failed_with_its_reason() {
        let error = json!({ "code": -31006, "message": "interrupted: the daemon ended during the turn",
                            "data": { "jackfield": { "code": "interrupted" } } });
        let log = running().ended("interrupted", &error);
        let message = "interrupted: the daemon ended during the turn".to_owned();
        let end = EnvelopeEvent::TurnEnd { status: TurnStatus::Failed, error: Some(message) };
        assert_eq!(agent_envelopes(&log)[1].ev, end);
    }

    #[test]
    fn turn_interrupted_by_a_cancellation_is_cancelled() {
        let error = json!({ "code": -31000, "message": "agent `claude` ended: killed" });
        let answer =
            json!({ "stopReason": "cancelled", "_meta": { "jackfield": { "error": error } } });
        let cancelled = json!({ "is": "cancelled", "turn": 1, "step": 3 });
        let log = running().event(cancelled).ended("stopped", &answer);
        assert_eq!(turn_statuses(&log), [TurnStatus::Cancelled]);
    }
}

mod text {
    use super::*;

    #[test]
    fn model_output_in_a_turn_is_text_with_that_turn() {
        let envelopes = agent_envelopes(&running().text("Hello"));
        assert_eq!(envelopes[1].ev, EnvelopeEvent::Text { text: "Hello".into(), thinking: false });
        assert_eq!(envelopes[1].turn, envelopes[0].turn);
    }

    #[test]
    fn model_output_outside_of_any_turn_is_text_without_a_turn() {
        let envelopes = agent_envelopes(&SessionLog::opened().text("Welcome"));
        assert_eq!(
            envelopes[0].ev,
            EnvelopeEvent::Text { text: "Welcome".into(), thinking: false }
        );
        assert_eq!(envelopes[0].turn, None);
    }

    #[test]
    fn empty_delta_adds_nothing() {
        assert_eq!(kinds(&running().text("")), ["text", "turn-start"]);
    }

    #[test]
    fn text_after_the_end_belongs_to_the_ended_turn() {
        let envelopes = agent_envelopes(&running().stopped("end_turn").text("Oh, and"));
        assert_eq!(
            envelopes[2].ev,
            EnvelopeEvent::Text { text: "Oh, and".into(), thinking: false }
        );
        assert_eq!(envelopes[2].turn, envelopes[0].turn);
    }

    #[test]
    fn prompt_is_text_of_the_user_before_the_turn_start() {
        let envelopes = running().envelopes();
        assert_eq!(envelopes[0].role, EnvelopeRole::User);
        assert_eq!(envelopes[0].ev, EnvelopeEvent::Text { text: "Hi".into(), thinking: false });
        assert_eq!(envelopes[0].turn, None);
    }

    #[test]
    fn other_blocks_of_a_prompt_are_files_or_links() {
        let prompt = json!([
            { "type": "text", "text": "Look" },
            { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
            { "type": "resource_link", "uri": "file:///p/a.rs", "name": "a.rs" },
        ]);
        let envelopes = SessionLog::opened().prompted_with(&prompt).envelopes();
        let evs: Vec<Value> =
            envelopes.iter().map(|it| serde_json::to_value(&it.ev).unwrap()).collect();
        let file = json!({ "t": "file", "ref": "s-abcdefghijkl/2/1", "name": "image.png",
                           "size": 5, "mimeType": "image/png" });
        assert_eq!(evs[1], file);
        assert_eq!(evs[2], json!({ "t": "text", "text": "[a.rs](file:///p/a.rs)" }));
        assert!(envelopes[..3].iter().all(|it| it.role == EnvelopeRole::User));
    }
}

mod tool_calls {
    use super::*;

    fn call(envelope: &Envelope) -> &str {
        match &envelope.ev {
            EnvelopeEvent::ToolCallStart { call, .. } | EnvelopeEvent::ToolCallEnd { call } => call,
            other => panic!("no tool call: {other:?}"),
        }
    }

    #[test]
    fn tool_call_start_has_all_members() {
        let envelopes = agent_envelopes(&running().tool("c1", "ls -l"));
        let EnvelopeEvent::ToolCallStart { call, name, title, description, args } =
            &envelopes[1].ev
        else {
            panic!("{:?}", envelopes[1]);
        };
        assert!(is_cuid(call));
        assert_eq!((name.as_str(), title.as_str()), ("Bash", "ls -l"));
        assert_eq!(description, "Running Bash");
        assert_eq!(Value::Object(args.clone()), json!({ "command": "ls -l" }));
    }

    #[test]
    fn tool_result_ends_the_call_with_the_same_cuid() {
        let envelopes = agent_envelopes(&running().tool("c1", "ls").tool_done("c1", "a"));
        assert_eq!(call(&envelopes[1]), call(&envelopes[2]));
        let end = EnvelopeEvent::ToolCallEnd { call: call(&envelopes[1]).to_owned() };
        assert_eq!(envelopes[2].ev, end);
    }

    #[test]
    fn several_tool_calls_have_their_own_cuids_and_pair_up() {
        let log = running().tool("c1", "a").tool("c2", "b").tool_done("c2", "").tool_done("c1", "");
        let envelopes = agent_envelopes(&log);
        let calls: Vec<&str> = envelopes[1..].iter().map(call).collect();
        assert!(calls[0] == calls[3] && calls[1] == calls[2] && calls[0] != calls[1]);
    }

    #[test]
    fn result_of_an_unknown_call_is_an_end_with_a_cuid() {
        let envelopes = agent_envelopes(&running().tool_done("unheard", "a"));
        assert_eq!(envelopes.len(), 2);
        assert_eq!(kind(&envelopes[1]), "tool-call-end");
        assert!(is_cuid(call(&envelopes[1])));
    }

    #[test]
    fn all_envelopes_of_tools_have_the_turn() {
        let log = running().tool("c1", "a").tool_done("c1", "").tool_done("unheard", "");
        let envelopes = agent_envelopes(&log);
        assert_eq!(envelopes.len(), 4);
        assert!(envelopes.iter().all(|it| it.turn == envelopes[0].turn));
    }

    #[test]
    fn open_call_ends_before_its_turn() {
        let log = running().tool("c1", "a").stopped("cancelled").tool_done("c1", "late");
        let expected = ["text", "turn-start", "tool-call-start", "tool-call-end", "turn-end"];
        assert_eq!(kinds(&log), expected);
    }

    #[test]
    fn call_of_a_sub_agent_has_its_id() {
        let child = json!({ "sessionUpdate": "tool_call", "toolCallId": "c2", "title": "ls",
                            "kind": "execute", "rawInput": { "command": "ls" },
                            "_meta": { "jackfield": { "parentToolCallId": "c1" } } });
        let log = running().tool("c1", "Look around").update(&child).tool_done("c2", "a");
        let envelopes = agent_envelopes(&log);
        let subagent = envelopes[2].subagent.as_deref().unwrap();
        assert!(is_cuid(subagent));
        assert_eq!(envelopes[3].subagent.as_deref(), Some(subagent));
        assert_eq!(envelopes[1].subagent, None);
    }
}

mod thinking {
    use super::*;

    #[test]
    fn thought_is_text_with_the_thinking_flag() {
        let envelopes = agent_envelopes(&running().thought("Hm"));
        assert_eq!(envelopes[1].ev, EnvelopeEvent::Text { text: "Hm".into(), thinking: true });
        assert_eq!(envelopes[1].turn, envelopes[0].turn);
        let sent = serde_json::to_value(&envelopes[1].ev).unwrap();
        assert_eq!(sent, json!({ "t": "text", "text": "Hm", "thinking": true }));
    }

    #[test]
    fn thought_without_text_adds_nothing() {
        assert_eq!(kinds(&running().thought("")), ["text", "turn-start"]);
    }
}

mod ignored_messages {
    use super::*;

    /// The kinds of envelopes after a turn has started and a tool runs.
    fn kinds_after(then: impl Fn(SessionLog) -> SessionLog) -> Vec<String> {
        let before = running().tool("c1", "ls");
        kinds(&then(before.clone()))[kinds(&before).len()..].to_vec()
    }

    #[test]
    fn permission_request_is_an_addition_to_the_protocol() {
        assert_eq!(kinds_after(|it| it.asked("c1")), ["permission-request"]);
    }

    #[test]
    fn permission_response_is_an_addition_to_the_protocol() {
        let kinds = kinds_after(|it| it.asked("c1").answered("yes"));
        assert_eq!(kinds, ["permission-request", "permission-response"]);
    }

    #[test]
    fn token_count_adds_nothing() {
        let usage = json!({ "sessionUpdate": "usage_update", "used": 7, "size": 100 });
        assert_eq!(kinds_after(|it| it.update(&usage)), [""; 0]);
    }

    #[test]
    fn file_edit_adds_nothing() {
        let diff = json!([{ "type": "diff", "path": "/p/a", "newText": "b" }]);
        let edit =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "content": diff });
        assert_eq!(kinds_after(|it| it.update(&edit)), [""; 0]);
    }

    #[test]
    fn terminal_output_adds_nothing() {
        let meta = json!({ "terminal_output": { "terminal_id": "t", "data": "a\n" } });
        let output =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "_meta": meta });
        assert_eq!(kinds_after(|it| it.update(&output)), [""; 0]);
    }

    #[test]
    fn plans_modes_commands_and_unknown_updates_add_nothing() {
        for kind in ["plan", "current_mode_update", "available_commands_update", "news"] {
            let update = json!({ "sessionUpdate": kind, "entries": [], "currentModeId": "plan" });
            assert_eq!(kinds_after(|it| it.update(&update)), [""; 0], "{kind}");
        }
    }
}

mod id_consistency {
    use super::*;

    fn full_turn(log: SessionLog) -> SessionLog {
        let log = log.prompted("Hi").text("I will").tool("c1", "ls").tool_done("c1", "a");
        log.text("Done").stopped("end_turn")
    }

    #[test]
    fn full_turn_has_consistent_ids() {
        let log = full_turn(SessionLog::opened());
        let expected =
            ["text", "turn-start", "text", "tool-call-start", "tool-call-end", "text", "turn-end"];
        assert_eq!(kinds(&log), expected);
        let envelopes = agent_envelopes(&log);
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
    fn turn_id_changes_between_turns() {
        let log = full_turn(full_turn(SessionLog::opened()));
        let turns: BTreeSet<_> = agent_envelopes(&log).iter().map(|it| it.turn.clone()).collect();
        assert_eq!(turns.len(), 2);
    }

    #[test]
    fn ids_are_stable_and_differ_between_sessions() {
        let log = full_turn(SessionLog::opened());
        assert_eq!(log.envelopes(), log.envelopes());
        let mut other = jackfield_views::EnvelopeView::new("s-other").with_additions();
        let other: BTreeSet<String> = log
            .events
            .iter()
            .flat_map(|it| other.fold_event(&build_event(it)))
            .map(|it| it.id)
            .collect();
        assert!(log.envelopes().iter().all(|it| !other.contains(&it.id)));
    }

    #[test]
    fn repeated_events_add_nothing() {
        let log = full_turn(full_turn(SessionLog::opened()));
        let mut view =
            jackfield_views::EnvelopeView::new(crate::session_log::SESSION).with_additions();
        let mut envelopes: Vec<Envelope> = Vec::new();
        for upto in 1..=log.events.len() {
            // A reader that lost its position and starts three events earlier each time.
            let from = upto.saturating_sub(4);
            envelopes.extend(
                log.events[from..upto].iter().flat_map(|it| view.fold_event(&build_event(it))),
            );
        }
        assert_eq!(envelopes, log.envelopes());
    }
}
