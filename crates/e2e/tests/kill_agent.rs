//! SIGKILL for the agent: everyone who waits is answered at once, with the cause.

use jackfield_e2e::{Home, assert_takes_less, procs, wait_for};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_hundred_pending_requests_are_answered_within_100_ms_with_status_and_stderr() {
    assert_takes_less(Duration::from_millis(100), kill_agent_with_pending_requests);
}

/// Returns how long it took to answer them all.
fn kill_agent_with_pending_requests() -> Duration {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let state = home.path().join("agent");
    let agent = home.fake_agent(&["--state", state.to_str().unwrap(), "--stderr", "about to fall"]);
    let mut clients = [home.dial(), home.dial()];
    clients[0].connect(&agent);
    clients[1].hello();
    let id = clients[0].open(home.path());
    assert_eq!(clients[0].prompt(&id, "pid then stderr the last words"), "end_turn");
    let text = clients[0].text();
    let pid: u32 = text.trim().strip_prefix("pid ").unwrap().trim().parse().unwrap();
    clients[1].result("session/resume", &json!({ "sessionId": id, "cwd": home.path() }));
    let mut waiting = Vec::new();
    for client in &mut clients {
        for _ in 0..49 {
            waiting.push(client.send("_fake/hang", &json!({ "sessionId": id })));
        }
    }
    // Two of them are prompts: one runs, one waits behind it.
    let running = clients[0].send_prompt(&id, "hang");
    // Everything before this answer has reached the agent.
    clients[0].result("_fake/echo", &json!({ "sessionId": id }));
    let queued = clients[1].send_prompt(&id, "count");
    clients[1].result("_fake/echo", &json!({ "sessionId": id }));
    let begin = Instant::now();
    procs::kill_9(pid);
    for (at, request) in waiting.iter().enumerate() {
        let answer = clients[at / 49].answer(*request);
        assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_gone", "{answer}");
        let text = answer.to_string();
        assert!(text.contains("signal 9") && text.contains("the last words"), "{answer}");
    }
    let answer = clients[0].answer(running);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_gone", "{answer}");
    let took = begin.elapsed();
    // The prompt that waited gets a new agent and runs there.
    let answer = clients[1].answer(queued);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    drop(clients);
    daemon.stop();
    took
}

#[test]
fn an_agent_that_never_starts_is_reported_with_its_reason() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.notify(
        "_jackfield/connect",
        &json!({ "agent": { "name": "nope", "argv": ["/nowhere/no-such-agent"] } }),
    );
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let answer = client.ask("initialize", &hello);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_not_started", "{answer}");
    assert!(answer.to_string().contains("no-such-agent"), "{answer}");
    drop(client);
    daemon.stop();
}

#[test]
fn an_agent_that_dies_before_it_answers_shows_its_last_words() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    let argv = home.fake_agent(&["--exit-before-initialize", "7", "--stderr", "no config found"]);
    client.notify("_jackfield/connect", &json!({ "agent": { "name": "fake", "argv": argv } }));
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let answer = client.ask("initialize", &hello);
    let text = answer.to_string();
    assert!(text.contains("exit status 7") && text.contains("no config found"), "{answer}");
    drop(client);
    daemon.stop();
}

#[test]
fn closing_sessions_leaves_no_process_whatever_the_agent_does() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let flags = ["--reexec", "--grandchild-holds-stdout", "--ignore-term", "--ignore-eof"];
    let agent = home.fake_agent(&flags);
    let mut client = home.dial();
    client.connect(&agent);
    for _ in 0..4 {
        let id = client.open(home.path());
        client.prompt(&id, "spawn");
        client.result("session/close", &json!({ "sessionId": id }));
    }
    drop(client);
    let daemon_only = [daemon.pid()];
    wait_for("every agent process to be gone", Duration::from_secs(15), || {
        home.alive(&daemon_only).is_empty().then_some(())
    });
    daemon.stop();
}
