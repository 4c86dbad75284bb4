//! Sleep, places and warmth with real processes: who is not used costs nothing, and nobody notices.

use jackfield_e2e::{Client, Home, procs, wait_for};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(20);

/// A home whose fake agent is called `fake` and has a disk, and a daemon that keeps house so.
pub(crate) fn home(house: &str, of_agent: &str) -> (Home, Vec<String>) {
    let home = Home::new();
    let state = home.path().join("agent");
    let agent = home.fake_agent(&["--state", state.to_str().unwrap(), "--caps", "load,resume"]);
    let command = json!(agent).to_string();
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    let text = format!("{house}\n[agents.fake]\ncommand = {command}\n{of_agent}\n");
    std::fs::write(home.path().join("config/config.toml"), text).unwrap();
    (home, agent)
}

/// A client of the agent that is called `fake`.
pub(crate) fn client(home: &Home) -> Client {
    let mut client = home.dial();
    let connect = json!({ "agent": "fake", "cwd": home.path() });
    client.notify("_jackfield/connect", &connect);
    client.hello_aware();
    client
}

pub(crate) fn row(client: &mut Client, session: &str) -> Value {
    let rows = client.result("_jackfield/sessions", &json!({}));
    let rows = rows["sessions"].as_array().unwrap().clone();
    rows.into_iter().find(|it| it["sessionId"] == session).unwrap()
}

pub(crate) fn wait_for_state(client: &mut Client, session: &str, state: &str) -> Value {
    wait_for(&format!("{session} to be {state}"), BOUND, || {
        let row = row(client, session);
        (row["state"] == state).then_some(row)
    })
}

#[test]
fn an_idle_agent_ends_and_the_next_prompt_wakes_the_same_session() {
    let (home, _) = home("[sessions]\nidle_after = \"300ms\"", "");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let id = client.open(home.path());
    assert_eq!(client.prompt(&id, "hello"), "end_turn");
    let asleep = wait_for_state(&mut client, &id, "asleep");
    assert_eq!(asleep["pid"], Value::Null);
    wait_for("its processes to be gone", BOUND, || {
        home.alive(&[daemon.pid()]).is_empty().then_some(())
    });
    assert_eq!(client.prompt(&id, "again"), "end_turn");
    assert_eq!(row(&mut client, &id)["turns"], 2);
    drop(client);
    daemon.stop();
}

#[test]
fn with_one_place_two_sessions_take_turns_and_the_one_in_line_is_shown() {
    let (home, _) = home("[sessions]\nmax_live = 1", "");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let first = client.open(home.path());
    let second = client.open(home.path());
    wait_for_state(&mut client, &first, "asleep");
    let slow = client.send_prompt(&second, "slow 8 100");
    let queued = client.send_prompt(&first, "hello");
    let waits = wait_for_state(&mut client, &first, "waiting");
    let sentence = "waits for the one agent that may be alive to become free";
    assert_eq!(waits["doing"], sentence);
    for prompt in [slow, queued] {
        let answer = client.answer(prompt);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    drop(client);
    daemon.stop();
}

#[test]
fn a_warm_process_is_there_before_the_session() {
    let (home, _) = home("", "warm = 1");
    let daemon = home.serve(&[]);
    let mut one = client(&home);
    let first = one.open(home.path());
    let serving = row(&mut one, &first)["pid"].as_u64().unwrap();
    let fakes = || {
        let mut pids = home.alive(&[daemon.pid()]);
        pids.retain(|pid| is_fake_agent(*pid));
        pids
    };
    let warm = wait_for("a warm process", BOUND, || {
        fakes().into_iter().find(|pid| u64::from(*pid) != serving)
    });
    let mut two = client(&home);
    let second = two.open(home.path());
    assert_eq!(row(&mut two, &second)["pid"], warm);
    assert_eq!(two.prompt(&second, "hello"), "end_turn");
    wait_for("the next warm process", BOUND, || (fakes().len() == 3).then_some(()));
    drop((one, two));
    daemon.stop();
    assert!(!procs::is_alive(warm));
}

fn is_fake_agent(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "fake-agent"
}

#[test]
fn waking_costs_little_beside_the_agents_own_start() {
    let (home, agent) = home("", "");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let id = client.open(home.path());
    let mut wake = Duration::MAX;
    let mut own = Duration::MAX;
    for _ in 0..10 {
        client.result("session/close", &json!({ "sessionId": id }));
        wait_for_state(&mut client, &id, "closed");
        let begin = Instant::now();
        assert_eq!(client.prompt(&id, "hello"), "end_turn");
        wake = wake.min(begin.elapsed());
        own = own.min(own_start(&agent));
    }
    let over = wake.saturating_sub(own);
    assert!(over <= Duration::from_millis(50), "{wake:?} to wake, {own:?} of it the agent's own");
    drop(client);
    daemon.stop();
}

/// From the start of the process to its answer to `initialize`.
fn own_start(agent: &[String]) -> Duration {
    let begin = Instant::now();
    let mut child = Command::new(&agent[0])
        .args(&agent[1..])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(
        stdin,
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":1}}}}"#
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let took = begin.elapsed();
    drop(stdin);
    child.wait().unwrap();
    took
}

#[test]
fn two_hundred_sessions_that_wake_at_once_all_wake() {
    const SESSIONS: usize = 200;
    let (home, _) = home("", "");
    let daemon = home.serve(&[]);
    let mut one = client(&home);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let id = one.open(home.path());
        one.result("session/close", &json!({ "sessionId": id }));
        sessions.push(id);
    }
    drop(one);
    daemon.stop();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let prompts: Vec<u64> = sessions.iter().map(|it| client.send_prompt(it, "hello")).collect();
    for prompt in prompts {
        let answer = client.answer(prompt);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    drop(client);
    daemon.stop();
}
