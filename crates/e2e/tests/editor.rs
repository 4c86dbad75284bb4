//! Jackfield as an editor starts it, and as the first screen of the README shows it: nothing runs
//! before, and what runs after is the daemon with its sessions.

use crate::{
    sdk::sdk_agent,
    sdk_client::{Ear, Way, agent, hello, leave, prompt, run, start_shim, talk, user},
};
use agent_client_protocol::v1::schema::{
    CancelNotification, LoadSessionRequest, NewSessionRequest, PromptRequest, StopReason,
};
use jackfield_e2e::{Home, client::PATIENCE, wait_for};
use serde_json::Value;
use std::{process::Output, time::Duration};

/// How long a shim may take to notice that its editor is gone.
const SHIM_ENDS_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn an_editor_needs_no_daemon_and_the_next_editor_finds_its_session() {
    let home = Home::new();
    let argv = sdk_agent(&home);
    let session = run(async {
        let ear = Ear::default();
        let (transport, shim) = start_shim(&home, &argv);
        let session = talk(transport, &ear, async |hub| {
            let told = hello(&hub).await?;
            assert_eq!(told.agent_info.map(|it| it.name).as_deref(), Some("sdk-agent"));
            let new = hub.send_request(NewSessionRequest::new(home.path())).block_task().await?;
            assert_eq!(prompt(&hub, &new.session_id, "hello").await?, StopReason::EndTurn);
            assert_eq!(ear.updates(&new.session_id), [agent("you said: hello")]);
            Ok(new.session_id)
        })
        .await;
        // `talk` has closed the pipes.
        tokio::time::timeout(SHIM_ENDS_WITHIN, leave(shim)).await.expect("the shim stays");
        session
    });
    assert!(said(&home, &["daemon", "status"]).contains("pid"), "the daemon lives on");
    run(async {
        let ear = Ear::default();
        Way::Stdio
            .talk(&home, &argv, &ear, async |hub| {
                hello(&hub).await?;
                let load = LoadSessionRequest::new(session.clone(), home.path());
                hub.send_request(load).block_task().await?;
                assert_eq!(ear.updates(&session), [user("hello"), agent("you said: hello")]);
                assert_eq!(prompt(&hub, &session, "count").await?, StopReason::EndTurn);
                assert_eq!(ear.updates(&session).last(), Some(&agent("count 2")));
                Ok(())
            })
            .await;
    });
    stop(&home);
}

#[test]
fn an_editor_that_is_closed_in_mid_turn_interrupts_nothing() {
    let home = Home::new();
    let argv = sdk_agent(&home);
    run(async {
        let ear = Ear::default();
        let first = Way::Stdio.talk(&home, &argv, &ear, async |hub| {
            hello(&hub).await?;
            let new = hub.send_request(NewSessionRequest::new(home.path())).block_task().await?;
            let wait = PromptRequest::new(new.session_id.clone(), vec!["wait".into()]);
            hub.send_request(wait).detach();
            ear.until_said("waiting").await;
            Ok(new.session_id)
        });
        let session = first.await;
        let ear = Ear::default();
        let second = Way::Stdio.talk(&home, &argv, &ear, async |hub| {
            hello(&hub).await?;
            let load = LoadSessionRequest::new(session.clone(), home.path());
            hub.send_request(load).block_task().await?;
            assert_eq!(ear.updates(&session), [user("wait"), agent("waiting")]);
            // The turn still runs, so this prompt would wait for ever if nobody stopped it.
            let count = PromptRequest::new(session.clone(), vec!["count".into()]);
            hub.send_notification(CancelNotification::new(session.clone()))?;
            hub.send_request(count).block_task().await?;
            assert_eq!(ear.updates(&session).last(), Some(&agent("count 2")));
            Ok(())
        });
        second.await;
    });
    stop(&home);
}

#[test]
fn the_first_screen_of_the_readme_works_in_a_clean_home() {
    let home = Home::new();
    let fake = home.fake_agent(&[]);
    assert_eq!(said(&home, &["run", "hello", "--", &fake[0]]), "you said: hello\n");

    let listed = said(&home, &["sessions", "list", "--format", "json"]);
    let session = session_of(&listed);
    said(&home, &["ps"]);
    let log = said(&home, &["log", &session]);
    assert!(log.contains("hello") && log.contains("you said: hello"), "{log}");
    stop(&home);
    assert!(said(&home, &["log", &session]).contains("you said: hello"), "the journal has it");
    stop(&home);
}

#[test]
fn a_session_that_was_kept_is_running_and_takes_the_next_prompt() {
    let home = Home::new();
    let fake = home.fake_agent(&[]);
    assert_eq!(said(&home, &["run", "--keep", "first", "--", &fake[0]]), "you said: first\n");
    let session = session_of(&said(&home, &["ps", "--format", "json"]));
    assert_eq!(said(&home, &["run", "-s", &session, "count"]), "count 2\n");
    stop(&home);
}

/// Stops the daemon that was started on demand; its last act is to give up its door, then it ends.
fn stop(home: &Home) {
    said(home, &["daemon", "stop"]);
    wait_for("the daemon to end", PATIENCE, || home.alive(&[]).is_empty().then_some(()));
}

/// Runs a command that must succeed; what it wrote to stdout.
fn said(home: &Home, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = home.run(args, PATIENCE);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "`jackfield {}`: {status}\n{stderr}", args.join(" "));
    String::from_utf8(stdout).expect("text")
}

/// The id of the only session in a JSON listing.
fn session_of(listed: &str) -> String {
    let listed: Value = serde_json::from_str(listed).unwrap();
    let rows = listed["sessions"].as_array().expect("a list of sessions");
    assert_eq!(rows.len(), 1, "{listed}");
    rows[0]["sessionId"].as_str().expect("a session id").to_owned()
}
