//! Processes that serve several sessions, agents that keep failing, and agents in place of others:
//! with the real daemon and real processes.

use crate::sleep::{client, home, row};
use jackfield_e2e::{Client, Home, procs, wait_for};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

const BOUND: Duration = Duration::from_secs(20);

/// The sessions of each process.
fn by_pid(client: &mut Client, sessions: &[String]) -> BTreeMap<u32, Vec<String>> {
    let mut served: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for id in sessions {
        let pid = row(client, id)["pid"].as_u64().expect("it has a process");
        served.entry(u32::try_from(pid).unwrap()).or_default().push(id.clone());
    }
    served
}

/// How the turns of a session ended, by its log.
fn outcomes(home: &Home, session: &str) -> Vec<String> {
    let mut client = home.dial();
    client.hello_aware();
    let params = json!({ "sessionId": session, "after": 0, "facts": true });
    let request = client.send("_jackfield/attach", &params);
    let mut ended = Vec::new();
    loop {
        let heard = client.next(BOUND).expect("the answer follows the log");
        if heard["id"] == request {
            return ended;
        }
        if heard["params"]["is"] == "ended" {
            ended.push(heard["params"]["how"].as_str().unwrap().to_owned());
        }
    }
}

#[test]
fn two_processes_serve_eight_sessions_and_the_death_of_one_is_felt_by_its_four_alone() {
    let (home, _) = home("", "sessions_per_process = 4");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let sessions: Vec<String> = (0..8).map(|_| client.open(home.path())).collect();
    for id in &sessions {
        assert_eq!(client.prompt(id, "hello"), "end_turn");
    }
    let served = by_pid(&mut client, &sessions);
    let counts: Vec<usize> = served.values().map(Vec::len).collect();
    assert_eq!(counts, [4, 4], "{served:?}");
    let (dies, lives) = (*served.keys().next().unwrap(), *served.keys().last().unwrap());

    let mut turns = BTreeMap::new();
    for id in &sessions {
        turns.insert(id.clone(), client.send_prompt(id, "hang"));
        client.result("_fake/echo", &json!({ "sessionId": id }));
    }
    procs::kill_9(dies);
    for id in &served[&dies] {
        let answer = client.answer(turns[id]);
        assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_gone", "{answer}");
        assert!(answer.to_string().contains("signal 9"), "{answer}");
    }
    for id in &served[&lives] {
        let row = row(&mut client, id);
        assert_eq!((&row["state"], &row["pid"]), (&json!("working"), &json!(lives)), "{row}");
    }

    for id in &served[&dies] {
        assert_eq!(client.prompt(id, "again"), "end_turn");
        assert_eq!(outcomes(&home, id), ["stopped", "interrupted", "stopped"]);
    }
    let woken = by_pid(&mut client, &served[&dies]);
    let counts: Vec<usize> = woken.values().map(Vec::len).collect();
    assert_eq!(counts, [4], "one other process serves them: {woken:?}");
    assert!(!woken.contains_key(&dies) && !woken.contains_key(&lives));

    for id in &served[&lives] {
        client.notify("session/cancel", &json!({ "sessionId": id }));
        let answer = client.answer(turns[id]);
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
        assert_eq!(outcomes(&home, id), ["stopped", "stopped"]);
    }
    drop(client);
    daemon.stop();
}

#[test]
fn a_session_that_is_closed_or_deleted_leaves_the_process_to_the_others() {
    let (home, _) = home("", "sessions_per_process = 4");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let sessions: Vec<String> = (0..3).map(|_| client.open(home.path())).collect();
    let pid = row(&mut client, &sessions[0])["pid"].clone();
    let running = client.send_prompt(&sessions[0], "hang");
    client.result("_fake/echo", &json!({ "sessionId": sessions[0] }));
    client.result("session/close", &json!({ "sessionId": sessions[0] }));
    assert_eq!(client.answer(running)["error"]["data"]["jackfield"]["code"], "interrupted");
    client.result("session/delete", &json!({ "sessionId": sessions[1] }));
    assert_eq!(client.prompt(&sessions[2], "hello"), "end_turn");
    assert_eq!(row(&mut client, &sessions[2])["pid"], pid);
    // The last one takes the process with it.
    client.result("session/close", &json!({ "sessionId": sessions[2] }));
    wait_for("the process to end", BOUND, || home.alive(&[daemon.pid()]).is_empty().then_some(()));
    drop(client);
    daemon.stop();
}

#[test]
fn a_warm_process_serves_whoever_finds_no_seat() {
    let (home, agent) = home("", "sessions_per_process = 2\nwarm = 1");
    let daemon = home.serve(&[]);
    let mut client = client(&home);
    let fakes = || {
        let is_fake = |it: &u32| procs::words(*it).first() == agent.first();
        procs::marked(home.mark()).into_iter().filter(is_fake).collect::<Vec<u32>>()
    };
    let mut sessions = vec![client.open(home.path())];
    wait_for("a warm process", BOUND, || (fakes().len() == 2).then_some(()));
    sessions.push(client.open(home.path()));
    let first = by_pid(&mut client, &sessions);
    assert_eq!(first.len(), 1, "a seat in what runs comes before a warm process: {first:?}");
    let warm = fakes().into_iter().find(|it| !first.contains_key(it)).expect("it is warm");
    sessions.push(client.open(home.path()));
    assert_eq!(row(&mut client, &sessions[2])["pid"], warm);
    drop(client);
    daemon.stop();
}

/// A home with an agent that cannot be started.
fn broken(of_agent: &str) -> Home {
    let home = Home::new();
    let good = json!(home.fake_agent(&[])).to_string();
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    let broken = "[agents.broken]\ncommand = [\"/nowhere/no-such-agent\"]";
    let text = format!("{broken}\n{of_agent}\n[agents.good]\ncommand = {good}\n");
    std::fs::write(home.path().join("config/config.toml"), text).unwrap();
    home
}

fn open_broken(client: &mut Client, home: &Home) -> Value {
    open_with(client, home, "broken")
}

fn open_with(client: &mut Client, home: &Home, agent: &str) -> Value {
    let meta = json!({ "jackfield": { "agent": agent } });
    let params = json!({ "cwd": home.path(), "mcpServers": [], "_meta": meta });
    client.ask("session/new", &params)
}

/// Only Linux can change the limit of another process.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_is_not_suspended_because_the_daemon_has_no_file_descriptors() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let home = broken("");
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello_aware();
    let first = open_with(&mut client, &home, "good");
    let session = first["result"]["sessionId"].as_str().unwrap().to_owned();
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).unwrap());
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = |current: Option<u64>| {
        prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).unwrap().current
    };
    // What is open stays open; nothing more can be opened.
    let before = limit(Some(3));
    for _ in 0..8 {
        let answer = open_with(&mut client, &home, "good");
        let ours = &answer["error"]["data"]["jackfield"];
        assert_eq!(ours["code"], "agent_not_started", "{answer}");
        let why = ours["why"].as_str().unwrap();
        assert!(why.contains("Too many open files") && why.contains("raise the limit"), "{why}");
    }
    limit(before);
    let opened = open_with(&mut client, &home, "good");
    assert!(opened["result"]["sessionId"].is_string(), "{opened}");
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    drop(client);
    daemon.stop();
}

#[test]
fn an_agent_that_keeps_failing_is_left_alone_and_whoever_wants_it_is_told_why() {
    let home = broken("");
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello_aware();
    for _ in 0..5 {
        let answer = open_broken(&mut client, &home);
        assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_not_started", "{answer}");
    }
    let answer = open_broken(&mut client, &home);
    let ours = &answer["error"]["data"]["jackfield"];
    assert_eq!(ours["code"], "agent_suspended", "{answer}");
    let why = ours["why"].as_str().unwrap();
    assert!(why.contains("failed 5 times") && why.contains("tried again in"), "{why}");
    assert!(why.contains("no-such-agent"), "{why}");
    // A hello of it is refused as well; other agents are not.
    let mut other = home.dial();
    other.notify("_jackfield/connect", &json!({ "agent": "broken", "cwd": home.path() }));
    let hello = other.ask("initialize", &json!({ "protocolVersion": 1 }));
    assert_eq!(hello["error"]["data"]["jackfield"]["code"], "agent_suspended", "{hello}");
    drop((client, other));
    daemon.stop();
}

#[test]
fn another_agent_takes_the_place_of_one_that_cannot_be_had_and_that_is_said() {
    let home = broken("fallback = \"good\"");
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello_aware();
    let answer = open_broken(&mut client, &home);
    let ours = &answer["result"]["_meta"]["jackfield"];
    assert_eq!(ours["agent"], "good", "{answer}");
    assert_eq!(ours["fallback"][0]["agent"], "broken", "{answer}");
    let id = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.prompt(&id, "hello"), "end_turn");
    let row = row(&mut client, &id);
    assert_eq!((&row["agent"], &row["fallback"][0]["agent"]), (&json!("good"), &json!("broken")));
    let ps = home.run(&["ps"], BOUND);
    let said = String::from_utf8_lossy(&ps.stderr).into_owned();
    assert!(said.contains("agent broken is not used"), "{said}");
    // Whoever connects to it is introduced to the other.
    let mut other = home.dial();
    other.notify("_jackfield/connect", &json!({ "agent": "broken", "cwd": home.path() }));
    let hello = other.hello_aware();
    assert_eq!(hello["_meta"]["jackfield"]["fallback"][0]["agent"], "broken", "{hello}");
    drop((client, other));
    daemon.stop();
}
