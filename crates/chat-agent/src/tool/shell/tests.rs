//! Commands in our own processes and in terminals of the client. The results for the model are
//! equal.

use crate::tool::{
    IoCapabilities, RequiredPermission,
    test_session::{TestSession, wait_until, with_test_session},
};
use agent_client_protocol::v1::schema::{ToolCallContent, ToolKind};
use serde_json::json;
use std::{fs, time::Duration};

const TERMINAL: IoCapabilities =
    IoCapabilities { reads_files: false, writes_files: false, has_terminals: true };

#[tokio::test]
async fn outcome_has_the_output_and_the_exit_status() {
    for client_io in [IoCapabilities::default(), TERMINAL] {
        with_test_session(client_io, async |session| {
            fs::create_dir(session.at("sub")).unwrap();
            let args = json!({ "cmd": "echo out; echo err >&2; pwd; exit 3", "cwd": "sub" });
            let prepared = session.prepare("shell", args).await.unwrap();
            let line = "echo out; echo err >&2; pwd; exit 3";
            assert_eq!((prepared.title.as_str(), prepared.kind), (line, ToolKind::Execute));
            assert_eq!(
                prepared.input,
                json!({ "command": line, "cwd": "sub" }),
                "the input has the names of the parameters"
            );
            assert_eq!(
                prepared.permission,
                RequiredPermission::Named(format!("shell in sub: {line}"))
            );
            let outcome = session.run(prepared).await;
            let sub = fs::canonicalize(session.at("sub")).unwrap();
            assert!(outcome.is_error);
            assert_eq!(outcome.text, format!("out\nerr\n{}\n[exit status 3]", sub.display()));
            assert_eq!(outcome.raw_output.unwrap()["exitCode"], 3);
            let success = session.call("shell", json!({ "command": "true" })).await;
            assert_eq!(
                (success.is_error, success.text.as_str()),
                (false, "[it printed nothing; exit status 0]")
            );
            session.wait_for_no_commands().await;
        })
        .await;
    }
}

#[tokio::test]
async fn command_has_no_input() {
    with_test_session(IoCapabilities::default(), async |session| {
        let outcome = session.call("shell", json!({ "command": "cat; echo done" })).await;
        assert_eq!(outcome.text, "done\n[exit status 0]");
    })
    .await;
}

#[tokio::test]
async fn timed_out_command_is_killed_with_its_process_tree() {
    for client_io in [IoCapabilities::default(), TERMINAL] {
        with_test_session(client_io, async |session| {
            let line = "echo started; sleep 600 & sleep 600";
            let outcome = session.call("shell", json!({ "command": line, "timeout": "1" })).await;
            assert!(outcome.is_error && outcome.text.starts_with("started\n"), "{outcome:?}");
            assert!(outcome.text.contains("had not ended after 1 s"), "{}", outcome.text);
            assert_eq!(outcome.raw_output.unwrap()["timedOut"], true);
            session.wait_for_no_commands().await;
        })
        .await;
    }
}

#[tokio::test]
async fn canceled_command_leaves_no_process() {
    for client_io in [IoCapabilities::default(), TERMINAL] {
        with_test_session(client_io, async |session| {
            let line = "sleep 600 & echo $! > pid; echo started; sleep 600";
            let prepared = session.prepare("shell", json!({ "command": line })).await.unwrap();
            let started = wait_until(|| session.at("pid").exists());
            tokio::select! {
                outcome = session.run(prepared) => panic!("the command ended: {outcome:?}"),
                () = started => {}
            }
            session.wait_for_no_commands().await;
            let pid = fs::read_to_string(session.at("pid")).unwrap();
            let process = format!("/proc/{}", pid.trim());
            wait_until(|| !fs::exists(&process).unwrap()).await;
        })
        .await;
    }
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs() {
    with_test_session(IoCapabilities::default(), async |session| {
        let line = "echo one; until test -e go; do sleep 0.05; done; echo two";
        let prepared = session.prepare("shell", json!({ "command": line })).await.unwrap();
        let is_shown = |text: &str| session.updates().iter().any(|it| it.contains(text));
        let (outcome, ()) = tokio::join!(session.run(prepared), async {
            wait_until(|| is_shown("one")).await;
            fs::write(session.at("go"), "").unwrap();
        });
        assert_eq!(outcome.text, "one\ntwo\n[exit status 0]");
    })
    .await;
}

#[tokio::test]
async fn client_terminal_is_shown_and_released() {
    with_test_session(TERMINAL, async |session| {
        let outcome = session.call("shell", json!({ "command": "echo hi" })).await;
        let [ToolCallContent::Terminal(terminal)] = outcome.content.as_slice() else {
            panic!("{outcome:?}")
        };
        let id = terminal.terminal_id.to_string();
        assert!(session.updates().iter().any(|it| it.contains(&id)));
        wait_until(|| session.client.requests().last().is_some_and(|it| it == "release")).await;
        let requests = session.client.requests();
        assert_eq!(requests, ["create echo hi", "wait", "output", "kill", "release"]);
    })
    .await;
}

#[tokio::test]
async fn terminal_created_after_a_cancel_is_released() {
    with_test_session(TERMINAL, async |session: TestSession| {
        let prepared = session.prepare("shell", json!({ "command": "sleep 600" })).await.unwrap();
        let no_time = Duration::ZERO;
        assert!(tokio::time::timeout(no_time, session.run(prepared)).await.is_err());
        wait_until(|| session.client.requests().last().is_some_and(|it| it == "release")).await;
        session.wait_for_no_commands().await;
    })
    .await;
}

#[tokio::test]
async fn empty_command_and_invalid_directory_are_refused() {
    with_test_session(IoCapabilities::default(), async |session| {
        for args in [
            json!({ "command": " " }),
            json!({ "command": "ls", "cwd": ".." }),
            json!({ "command": "ls", "cwd": "missing" }),
        ] {
            assert!(session.call("shell", args.clone()).await.is_error, "{args}");
        }
    })
    .await;
}
