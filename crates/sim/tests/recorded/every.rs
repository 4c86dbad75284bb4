//! Every recording, one test each.

use super::{
    replay::{Client, Replay},
    tape::{Tape, folder},
    wake::Wake,
};
use std::{collections::BTreeSet, fs};

/// The agent opens a session and serves it: all it says is heard once, in order, to the byte; all
/// it asks is answered under its own ids; each prompt has one outcome, which is the agent's own;
/// and a client that comes later hears the same.
fn whole(name: &str) {
    let replay = Replay::of(name, Client::Recorded);
    let spoke = Tape::read(name).agent().filter(|it| !it.method().is_empty()).count();
    assert_eq!(replay.heard.len(), spoke, "{name}: what was said was heard");
}

/// The agent takes up a session of the hub's, and the past it tells is told to nobody.
fn past_is_told_once(name: &str) {
    let wake = Wake::of(name);
    let told: usize = wake.past.iter().sum();
    let tape = Tape::read(name);
    let spoke = tape.agent().filter(|it| !it.method().is_empty()).count();
    assert_eq!(wake.replay.heard.len() + told, spoke, "{name}: the rest was heard");
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
    whole {
        auggie_is_heard_as_it_spoke: "auggie/main",
        claude_agent_acp_is_heard_as_it_spoke: "claude-agent-acp/main",
        cline_is_heard_as_it_spoke: "cline/main",
        codex_acp_is_heard_as_it_spoke: "codex-acp/main",
        copilot_is_heard_as_it_spoke: "copilot/main",
        crow_is_heard_as_it_spoke: "crow/main",
        fast_agent_is_heard_as_it_spoke: "fast-agent/main",
        gemini_is_heard_as_it_spoke: "gemini/main",
        gemini_is_heard_as_it_spoke_when_it_does_not_relaunch_itself: "gemini/norelaunch",
        gemini_is_heard_as_it_spoke_before_a_session_is_loaded: "gemini/load-1-create",
        gemini_is_heard_when_a_missing_file_is_empty: "gemini/fs-empty",
        gemini_is_heard_when_a_missing_file_is_an_internal_error: "gemini/fs-enoent",
        gemini_is_heard_when_a_missing_file_is_not_found: "gemini/fs-spec-32002",
        gemini_is_heard_when_the_client_serves_no_files: "gemini/fs-nofs",
        goose_is_heard_as_it_spoke: "goose/main",
        goose_is_heard_as_it_spoke_with_a_real_model: "goose-real/real-llm",
        hermes_is_heard_as_it_spoke: "hermes/main",
        kilo_is_heard_as_it_spoke: "kilo/main",
        kimi_code_is_heard_as_it_spoke: "kimi-code/main",
        kimi_cli_refuses_a_session_in_its_own_words: "kimi-old/main",
        opencode_is_heard_as_it_spoke: "opencode/main",
        openhands_is_heard_as_it_spoke: "openhands/main",
        pi_is_heard_as_it_spoke: "pi/main",
        the_echo_agent_of_the_python_sdk_is_heard_as_it_spoke: "py-sdk-echo/main",
        qwen_is_heard_as_it_spoke: "qwen/main",
        vibe_is_heard_as_it_spoke: "vibe/main",
        the_old_claude_code_acp_is_heard_as_it_spoke: "zed-claude-code-acp/main",
        the_old_codex_acp_is_heard_as_it_spoke: "zed-codex-acp/main",
    }
    past_is_told_once {
        auggie_loads_and_its_past_is_told_once: "auggie/load",
        claude_agent_acp_loads_and_its_past_is_told_once: "claude-agent-acp/load",
        claude_agent_acp_resumes_and_its_past_is_told_once: "claude-agent-acp/resume",
        cline_loads_and_its_past_is_told_once: "cline/load",
        codex_acp_loads_and_its_past_is_told_once: "codex-acp/load",
        codex_acp_resumes_and_its_past_is_told_once: "codex-acp/resume",
        copilot_loads_and_its_past_is_told_once: "copilot/load",
        crow_loads_and_its_past_is_told_once: "crow/load",
        fast_agent_loads_and_its_past_is_told_once: "fast-agent/load",
        fast_agent_resumes_and_its_past_is_told_once: "fast-agent/resume",
        gemini_loads_and_its_past_is_told_once: "gemini/load",
        gemini_loads_after_a_minute_and_its_past_is_told_once: "gemini/load-2-load-after-65s",
        goose_loads_and_its_past_is_told_once: "goose/load",
        hermes_loads_and_its_past_is_told_once: "hermes/load",
        hermes_resumes_and_its_past_is_told_once: "hermes/resume",
        kilo_loads_and_its_past_is_told_once: "kilo/load",
        kilo_resumes_and_its_past_is_told_once: "kilo/resume",
        kimi_code_loads_and_its_past_is_told_once: "kimi-code/load",
        kimi_code_resumes_and_its_past_is_told_once: "kimi-code/resume",
        opencode_loads_and_its_past_is_told_once: "opencode/load",
        opencode_resumes_and_its_past_is_told_once: "opencode/resume",
        openhands_loads_and_its_past_is_told_once: "openhands/load",
        pi_loads_and_its_past_is_told_once: "pi/load",
        qwen_loads_and_its_past_is_told_once: "qwen/load",
        qwen_resumes_and_its_past_is_told_once: "qwen/resume",
        vibe_loads_and_its_past_is_told_once: "vibe/load",
        the_old_claude_code_acp_loads_and_its_past_is_told_once: "zed-claude-code-acp/load",
        the_old_claude_code_acp_resumes_and_its_past_is_told_once: "zed-claude-code-acp/resume",
        the_old_codex_acp_loads_and_its_past_is_told_once: "zed-codex-acp/load",
        the_old_codex_acp_resumes_and_its_past_is_told_once: "zed-codex-acp/resume",
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
fn a_file_that_no_client_serves_is_answered_by_the_hub_under_the_agents_own_id() {
    let mut answered = 0;
    for name in ALL.iter().filter(|it| !it.contains("/load") && !it.contains("/resume")) {
        let replay = Replay::of(name, Client::Bare);
        let code = |it: &&serde_json::Value| it["error"]["code"] == -32603;
        answered += replay.answered.values().filter(code).count();
    }
    assert!(15 < answered, "{answered} answers: the recordings ask for files");
}
