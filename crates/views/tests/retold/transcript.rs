//! Sessions as Markdown: what some real agents said, kept as snapshots that people have read.

use crate::test_events::received;
use crate::{
    log::{Log, SESSION},
    recorded::tapes,
};
use jackfield_views::{Transcript, Veil, transcript::About};
use serde_json::{Value, json};

fn about(agent: &str) -> About {
    About {
        session: SESSION.into(),
        title: Some("Say hello".into()),
        agent: agent.into(),
        cwd: "/user/project".into(),
        opened_at: "2026-11-15T08:00:00.000Z".into(),
    }
}

/// As `sessions export` makes it.
fn markdown(agent: &str, facts: &[Value]) -> String {
    let (mut veil, mut transcript) = (Veil::default(), Transcript::default());
    let mut shown = Transcript::header(&about(agent));
    for fact in facts {
        for fact in veil.push(fact.clone()) {
            shown.push_str(&transcript.fold(&received(&fact)));
        }
    }
    for fact in veil.finish() {
        shown.push_str(&transcript.fold(&received(&fact)));
    }
    shown.push_str(&transcript.finish());
    shown
}

/// Each does something that the others do not.
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
fn what_real_agents_said_reads_as_markdown() {
    let tapes = tapes();
    for agent in AGENTS {
        let (_, tapes) = tapes.iter().find(|it| it.0 == agent).unwrap();
        let (_, log) = tapes.iter().find(|it| it.0 == "main").unwrap();
        insta::assert_snapshot!(format!("markdown-{agent}"), markdown(agent, &log.facts));
    }
}

#[test]
fn every_recording_can_be_read_as_markdown_with_a_heading_for_each_turn() {
    for (agent, tapes) in tapes() {
        for (_, log) in tapes {
            let turns = log.facts.iter().filter(|it| it["is"] == "prompted").count();
            let shown = markdown(&agent, &log.facts);
            assert_eq!(shown.matches("\n## Turn ").count(), turns, "{shown}");
            assert_eq!(shown.contains("\n## Usage\n"), 0 < turns, "{shown}");
        }
    }
}

#[test]
fn a_session_with_all_that_can_happen_to_it() {
    let entries = json!([{ "content": "look", "status": "completed" },
                         { "content": "leap", "status": "in_progress" }]);
    let edit = json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "title": "Edit main.rs",
        "kind": "edit", "status": "completed", "content": [
            { "type": "diff", "path": "main.rs", "oldText": "a\n```\n", "newText": "b\n```\n" } ] });
    let mode = json!({ "sessionId": SESSION, "configId": "model", "value": "opus" });
    let frame = json!({ "method": "session/set_config_option", "params": mode });
    let log = Log::opened()
        .fact(json!({ "is": "configured", "frame": frame, "answer": {} }))
        .prompted("Fix it:\n\n```rust\nfn main() {")
        .thought("<hm>")
        .text("I look at `Vec<T>`, Vec<T> and\n```\nan open fence")
        .said(&json!({ "sessionUpdate": "plan", "entries": entries }))
        .tool("t", "cargo test")
        .asked("t")
        .fact(json!({ "is": "learned", "ask": 1, "rule": {} }))
        .answered("yes")
        .tool_done("t", &"ok\n".repeat(100))
        .said(&edit)
        .fact(json!({ "is": "unasked", "call": { "title": "Edit main.rs" } }))
        .stopped("end_turn")
        .text("One more thing.")
        .prompted("Again")
        .tool("u", "sleep 9")
        .asked("u")
        .fact(json!({ "is": "cancelled", "turn": 2, "step": 1 }))
        .fact(json!({ "is": "gone", "status": "killed by signal 9", "stderr": "a\nout of memory" }))
        .failed("agent ended")
        .fact(json!({ "is": "bound", "rung": "reloaded", "setup": null }))
        .fact(json!({ "is": "withdrawn", "prompt": 3, "why": "withdrawn by zed" }))
        .fact(json!({ "is": "closed" }));
    insta::assert_snapshot!("markdown_all", markdown("claude", &log.facts));
}
