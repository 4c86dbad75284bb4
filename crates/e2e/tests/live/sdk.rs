//! The official SDK's client, started the way an editor starts it, with the real CLIs.

use super::rig::Rig;
use crate::sdk_client::{Ear, hello, leave, prompt, start_shim_in, talk};
use agent_client_protocol::v1::schema::{
    CancelNotification, NewSessionRequest, PromptRequest, SessionUpdate, SetSessionModeRequest,
    StopReason,
};
use jackfield_e2e::Home;
use jackfield_test_support::fake_model::FakeModel;
use std::{fs, time::Duration};

/// Some of them take seconds to start.
const CONVERSATION_MAX: Duration = Duration::from_secs(90);

/// Text, a tool, a cancel and one more prompt.
fn converse(rig: &str) {
    let rig = Rig::named(rig);
    let (home, model) = (Home::new(), FakeModel::start());
    let (own, project) = (home.path().join("own"), home.path().join("project"));
    fs::create_dir_all(&project).unwrap();
    let cli = rig.cli(&own, &model.url());
    let daemon = home.serve(&[]);
    let ear = Ear::default();
    let conversation = async {
        let (transport, shim) = start_shim_in(&home, &rig.argv(&cli), &cli.env);
        talk(transport, &ear, async |hub| {
            hello(&hub).await?;
            let session = hub.send_request(NewSessionRequest::new(&*project)).block_task().await?;
            let session = session.session_id;
            assert_eq!(prompt(&hub, &session, "Say hello").await?, StopReason::EndTurn);
            assert!(ear.text().contains("Hello from the fake model."), "{}", ear.text());

            if let Some(mode) = rig.mode_that_acts {
                let mode = SetSessionModeRequest::new(session.clone(), mode);
                hub.send_request(mode).block_task().await?;
            }
            assert_eq!(prompt(&hub, &session, "Use a TOOL").await?, StopReason::EndTurn);
            let called = |it: &SessionUpdate| {
                matches!(it, SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_))
            };
            assert!(ear.updates(&session).iter().any(called), "{:?}", ear.updates(&session));

            let slow = PromptRequest::new(session.clone(), vec!["Be SLOW about it".into()]);
            let slow = hub.send_request(slow);
            if rig.streams() {
                ear.until_heard("tick-2 ").await;
            }
            hub.send_notification(CancelNotification::new(session.clone()))?;
            assert_eq!(slow.block_task().await?.stop_reason, StopReason::Cancelled);
            assert_eq!(prompt(&hub, &session, "Say hello").await?, StopReason::EndTurn);
            Ok(())
        })
        .await;
        leave(shim).await;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(CONVERSATION_MAX, conversation).await.expect("it hangs");
    });
    daemon.stop();
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn claude_talks_to_the_sdk_over_acp() {
    converse("claude_agent_acp");
}

#[test]
fn claude_talks_to_the_sdk_through_an_adapter() {
    converse("claude");
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn codex_talks_to_the_sdk_over_acp() {
    converse("codex_acp");
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn codex_talks_to_the_sdk_through_its_app_server() {
    converse("codex_app_server");
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn codex_talks_to_the_sdk_turn_by_turn() {
    converse("codex_exec");
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn gemini_talks_to_the_sdk_over_acp() {
    converse("gemini_acp");
}

#[test]
#[ignore = "nightly: another agent behind the same SDK; claude and goose are tested with every change"]
fn gemini_talks_to_the_sdk_through_an_adapter() {
    converse("gemini_json");
}

#[test]
fn goose_talks_to_the_sdk_over_acp() {
    converse("goose");
}
