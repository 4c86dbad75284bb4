//! Sessions as Markdown: snapshots of recorded agents and of a session with every kind of event.

use crate::test_events::build_event;
use crate::{
    recorded::load_recordings,
    session_log::{SESSION, SessionLog},
};
use jackfield_views::{MarkdownTranscript, StreamingRedactor, transcript::TranscriptHeader};
use serde_json::{Value, json};

fn header(agent: &str) -> TranscriptHeader {
    TranscriptHeader {
        session: SESSION.into(),
        title: Some("Say hello".into()),
        agent: agent.into(),
        cwd: "/user/project".into(),
        opened_at: "2026-11-15T08:00:00.000Z".into(),
    }
}

/// The transcript as `sessions export` writes it.
fn markdown(agent: &str, events: &[Value]) -> String {
    let (mut redactor, mut transcript) =
        (StreamingRedactor::default(), MarkdownTranscript::default());
    let mut text = MarkdownTranscript::render_header(&header(agent));
    for event in events {
        for event in redactor.push(event.clone()) {
            text.push_str(&transcript.fold_event(&build_event(&event)));
        }
    }
    for event in redactor.finish() {
        text.push_str(&transcript.fold_event(&build_event(&event)));
    }
    text.push_str(&transcript.finish());
    text
}

/// Each of these agents shows a different behavior.
const AGENTS: [&str; 8] = [
    "claude-agent-acp",
    "codex-acp",
    "gemini",
    "goose",
    "hermes",
    "kimi-code",
    "openhands",
    "zed-claude-code-acp",
];

#[test]
fn recorded_sessions_match_their_markdown_snapshots() {
    let recordings = load_recordings();
    for agent in AGENTS {
        let (_, recordings) = recordings.iter().find(|it| it.0 == agent).unwrap();
        let (_, log) = recordings.iter().find(|it| it.0 == "main").unwrap();
        insta::assert_snapshot!(format!("markdown-{agent}"), markdown(agent, &log.events));
    }
}

#[test]
fn every_recording_has_a_heading_for_each_turn() {
    for (agent, recordings) in load_recordings() {
        for (_, log) in recordings {
            let turns = log.events.iter().filter(|it| it["is"] == "prompted").count();
            let text = markdown(&agent, &log.events);
            assert_eq!(text.matches("\n## Turn ").count(), turns, "{text}");
            assert_eq!(text.contains("\n## Usage\n"), 0 < turns, "{text}");
        }
    }
}

#[test]
fn session_with_every_event_matches_its_snapshot() {
    let entries = json!([{ "content": "look", "status": "completed" },
                         { "content": "leap", "status": "in_progress" }]);
    let edit = json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "title": "Edit main.rs",
        "kind": "edit", "status": "completed", "content": [
            { "type": "diff", "path": "main.rs", "oldText": "a\n```\n", "newText": "b\n```\n" } ] });
    let mode = json!({ "sessionId": SESSION, "configId": "model", "value": "opus" });
    let frame = json!({ "method": "session/set_config_option", "params": mode });
    let log = SessionLog::opened()
        .event(json!({ "is": "configured", "frame": frame, "answer": {} }))
        .prompted("Fix it:\n\n```rust\nfn main() {")
        .thought("<hm>")
        .text("I look at `Vec<T>`, Vec<T> and\n```\nan open fence")
        .update(&json!({ "sessionUpdate": "plan", "entries": entries }))
        .tool("t", "cargo test")
        .asked("t")
        .event(json!({ "is": "learned", "ask": 1, "rule": {} }))
        .answered("yes")
        .tool_done("t", &"ok\n".repeat(100))
        .update(&edit)
        .event(json!({ "is": "unasked", "call": { "title": "Edit main.rs" } }))
        .stopped("end_turn")
        .text("One more thing.")
        .prompted("Again")
        .tool("u", "sleep 9")
        .asked("u")
        .event(json!({ "is": "cancelled", "turn": 2, "step": 1 }))
        .event(
            json!({ "is": "gone", "status": "killed by signal 9", "stderr": "a\nout of memory" }),
        )
        .failed("agent ended")
        .event(json!({ "is": "bound", "restore": "reloaded", "setup": null }))
        .event(json!({ "is": "withdrawn", "prompt": 3, "why": "withdrawn by zed" }))
        .event(json!({ "is": "closed" }));
    insta::assert_snapshot!("markdown_all", markdown("claude", &log.events));
}
