//! One test for each recording.

use super::{
    recording::{Recording, folder},
    replay::{ClientKind, Replay},
    restore::RestoreReplay,
};
use std::{collections::BTreeSet, fs};

/// The agent opens a session and serves it: each of its messages is delivered once, in order, to the byte; each of its
/// requests is answered under its own id; each prompt has one outcome, which is the agent's own; and a client that
/// attaches later receives the same.
fn check_new_session(name: &str) {
    let replay = Replay::run(name, ClientKind::Recorded);
    let spoke = Recording::read(name).agent().filter(|it| !it.method().is_empty()).count();
    assert_eq!(replay.received.len(), spoke, "{name}: all messages are delivered");
}

/// The agent restores a session of the hub, and its replay is delivered to no client.
fn check_restored_session(name: &str) {
    let restored = RestoreReplay::run(name);
    let replayed: usize = restored.replayed.iter().sum();
    let recording = Recording::read(name);
    let spoke = recording.agent().filter(|it| !it.method().is_empty()).count();
    assert_eq!(
        restored.replay.received.len() + replayed,
        spoke,
        "{name}: all other messages are delivered"
    );
}

macro_rules! recordings {
    ($($play:ident { $($test:ident: $name:literal,)* })*) => {
        $($(
            #[test]
            fn $test() {
                $play($name);
            }
        )*)*

        const ALL: &[&str] = &[$($($name,)*)*];
    };
}

recordings! {
    check_new_session {
        auggie_is_delivered_unchanged: "auggie/main",
        claude_agent_acp_is_delivered_unchanged: "claude-agent-acp/main",
        cline_is_delivered_unchanged: "cline/main",
        codex_acp_is_delivered_unchanged: "codex-acp/main",
        copilot_is_delivered_unchanged: "copilot/main",
        crow_is_delivered_unchanged: "crow/main",
        fast_agent_is_delivered_unchanged: "fast-agent/main",
        gemini_is_delivered_unchanged: "gemini/main",
        gemini_without_relaunch_is_delivered_unchanged: "gemini/norelaunch",
        gemini_before_load_is_delivered_unchanged: "gemini/load-1-create",
        gemini_is_delivered_when_a_missing_file_is_empty: "gemini/fs-empty",
        gemini_is_delivered_when_a_missing_file_is_an_internal_error: "gemini/fs-enoent",
        gemini_is_delivered_when_a_missing_file_is_not_found: "gemini/fs-spec-32002",
        gemini_is_delivered_when_the_client_serves_no_files: "gemini/fs-nofs",
        goose_is_delivered_unchanged: "goose/main",
        goose_with_a_real_model_is_delivered_unchanged: "goose-real/real-llm",
        hermes_is_delivered_unchanged: "hermes/main",
        kilo_is_delivered_unchanged: "kilo/main",
        kimi_code_is_delivered_unchanged: "kimi-code/main",
        kimi_cli_refusal_is_passed_on: "kimi-old/main",
        opencode_is_delivered_unchanged: "opencode/main",
        openhands_is_delivered_unchanged: "openhands/main",
        pi_is_delivered_unchanged: "pi/main",
        python_sdk_echo_agent_is_delivered_unchanged: "py-sdk-echo/main",
        qwen_is_delivered_unchanged: "qwen/main",
        vibe_is_delivered_unchanged: "vibe/main",
        old_claude_code_acp_is_delivered_unchanged: "zed-claude-code-acp/main",
        old_codex_acp_is_delivered_unchanged: "zed-codex-acp/main",
    }
    check_restored_session {
        auggie_replay_of_load_is_not_delivered: "auggie/load",
        claude_agent_acp_replay_of_load_is_not_delivered: "claude-agent-acp/load",
        claude_agent_acp_replay_of_resume_is_not_delivered: "claude-agent-acp/resume",
        cline_replay_of_load_is_not_delivered: "cline/load",
        codex_acp_replay_of_load_is_not_delivered: "codex-acp/load",
        codex_acp_replay_of_resume_is_not_delivered: "codex-acp/resume",
        copilot_replay_of_load_is_not_delivered: "copilot/load",
        crow_replay_of_load_is_not_delivered: "crow/load",
        fast_agent_replay_of_load_is_not_delivered: "fast-agent/load",
        fast_agent_replay_of_resume_is_not_delivered: "fast-agent/resume",
        gemini_replay_of_load_is_not_delivered: "gemini/load",
        gemini_replay_of_late_load_is_not_delivered: "gemini/load-2-load-after-65s",
        goose_replay_of_load_is_not_delivered: "goose/load",
        hermes_replay_of_load_is_not_delivered: "hermes/load",
        hermes_replay_of_resume_is_not_delivered: "hermes/resume",
        kilo_replay_of_load_is_not_delivered: "kilo/load",
        kilo_replay_of_resume_is_not_delivered: "kilo/resume",
        kimi_code_replay_of_load_is_not_delivered: "kimi-code/load",
        kimi_code_replay_of_resume_is_not_delivered: "kimi-code/resume",
        opencode_replay_of_load_is_not_delivered: "opencode/load",
        opencode_replay_of_resume_is_not_delivered: "opencode/resume",
        openhands_replay_of_load_is_not_delivered: "openhands/load",
        pi_replay_of_load_is_not_delivered: "pi/load",
        qwen_replay_of_load_is_not_delivered: "qwen/load",
        qwen_replay_of_resume_is_not_delivered: "qwen/resume",
        vibe_replay_of_load_is_not_delivered: "vibe/load",
        old_claude_code_acp_replay_of_load_is_not_delivered: "zed-claude-code-acp/load",
        old_claude_code_acp_replay_of_resume_is_not_delivered: "zed-claude-code-acp/resume",
        old_codex_acp_replay_of_load_is_not_delivered: "zed-codex-acp/load",
        old_codex_acp_replay_of_resume_is_not_delivered: "zed-codex-acp/resume",
    }
}

#[test]
fn every_recording_has_a_test() {
    let mut found = BTreeSet::new();
    for agent in fs::read_dir(folder()).expect("the recordings are there") {
        let agent = agent.expect("a folder can be read");
        for file in fs::read_dir(agent.path()).expect("an agent has a folder") {
            let path = file.expect("a folder can be read").path();
            let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            found.insert(format!("{}/{stem}", agent.file_name().to_string_lossy()));
        }
    }
    assert_eq!(found, ALL.iter().map(|&it| it.to_owned()).collect());
}

#[test]
fn hub_answers_file_request_that_no_client_serves() {
    let mut answered = 0;
    for name in ALL.iter().filter(|it| !it.contains("/load") && !it.contains("/resume")) {
        let replay = Replay::run(name, ClientKind::Bare);
        let code = |it: &&serde_json::Value| it["error"]["code"] == -32603;
        answered += replay.answered.values().filter(code).count();
    }
    assert!(15 < answered, "{answered} answers: the recordings ask for files");
}
