//! SIGKILL for the daemon in mid-turn, again and again: nothing leaks, nothing heard is lost, the turn
//! has one outcome, and the next prompt works.

use jackfield_e2e::{Client, Home, procs, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    process::{Command, Stdio},
    time::Duration,
};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn kills_of_the_daemon_leave_no_process_and_lose_no_delivered_event() {
    kill_in_homes(2, 3);
}

#[test]
#[ignore = "nightly: a minute of kills"]
fn fifty_kills_of_the_daemon_leave_no_process_and_lose_no_delivered_event() {
    kill_in_homes(5, 10);
}

/// As `killall -9 jackfield` does it. Guards are the same program under another name.
#[test]
fn kill_of_everything_with_the_name_of_the_daemon_leaves_no_tool() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &home.fake_agent(&["--grandchild"]));
    let session = client.open(home.path());
    client.send_prompt(&session, "hang");
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let processes = wait_for("agent and tool", SOON, || {
        let alive = home.alive(&[]);
        (4 <= alive.len()).then_some(alive)
    });
    let named: Vec<u32> = processes.into_iter().filter(|it| name(*it) == "jackfield\n").collect();
    assert_eq!(named, [daemon.pid()], "the daemon alone has its name");
    daemon.kill_9();
    wait_for("all to be gone", SOON, || home.alive(&[]).is_empty().then_some(()));
}

/// What no guard is left to end is ended by the watcher beside the daemon, not only at the next start.
#[test]
fn tools_end_when_daemon_and_guards_are_killed_together() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &home.fake_agent(&["--grandchild"]));
    let session = client.open(home.path());
    client.send_prompt(&session, "hang");
    wait_for("agent and tool", SOON, || (4 <= home.alive(&[]).len()).then_some(()));
    let find = |name: &str| procs::child_named(daemon.pid(), name);
    let guard = wait_for("the guard", SOON, || find("jf-guard"));
    wait_for("the watcher", SOON, || find("jf-watcher"));
    // Neither of them can act on the end of the other.
    daemon.signal(Signal::STOP);
    procs::kill_9(guard);
    daemon.kill_9();
    wait_for("all to be gone", SOON, || home.alive(&[]).is_empty().then_some(()));
}

/// Homes run side by side; every second one has agents that can only load, not resume.
fn kill_in_homes(homes: usize, kills_each: usize) {
    let mut bystander = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    std::thread::scope(|scope| {
        for number in 0..homes {
            scope.spawn(move || kill_repeatedly(number, kills_each));
        }
    });
    assert!(bystander.try_wait().unwrap().is_none(), "an unrelated process was signalled");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

fn kill_repeatedly(number: usize, kills: usize) {
    let home = Home::new();
    let state = home.path().join("agent");
    // Half of the homes resume, the others can only load.
    let caps = if number.is_multiple_of(2) { "load,resume" } else { "load" };
    let flags = ["--state", state.to_str().unwrap(), "--caps", caps, "--reexec", "--grandchild"];
    let agent = home.fake_agent(&flags);
    let mut session: Option<String> = None;
    for kill in 0..kills {
        let daemon = home.serve(&[]);
        let mut client = connect(&home, &agent);
        let id = session.get_or_insert_with(|| client.open(home.path())).clone();
        attach(&mut client, &id);
        client.send_prompt(&id, "burst 50 then slow 1000 5");
        let wanted = 60 + 13 * kill;
        let mut live = 0;
        client.until("updates of the turn", |it| {
            let is_update = it["method"] == "session/update";
            is_update && it.pointer("/params/update/content/text").is_some()
        });
        while live < wanted {
            client.until("an update", |it| it["method"] == "session/update");
            live += 1;
        }
        daemon.kill_9();
        while client.next(Duration::from_millis(500)).is_some() {}
        let bound = Duration::from_secs(5);
        wait_for("the agent's tree to be gone", bound, || home.alive(&[]).is_empty().then_some(()));
        check_after_restart(&home, &agent, &id, &client.heard, kill);
    }
}

/// A new daemon knows everything the old one said, and goes on.
fn check_after_restart(home: &Home, agent: &[String], id: &str, heard: &[Value], kill: usize) {
    let daemon = home.serve(&[]);
    let mut client = connect(home, agent);
    attach(&mut client, id);
    let log: Vec<&Value> = client.heard.iter().filter(|it| seq(it).is_some()).collect();
    let mut seqs: Vec<u64> = log.iter().filter_map(|it| seq(it)).collect();
    // A prompt is told twice: as a fact, and as the user's words.
    seqs.dedup();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "a gap or a repeat");
    for message in heard.iter().filter(|it| seq(it).is_some()) {
        assert!(log.contains(&message), "heard before the kill, not in the log: {message}");
    }
    // Each kill leaves two turns: the interrupted one and the one below.
    let turn = json!(kill * 2 + 1);
    let ends: Vec<&&Value> = log
        .iter()
        .filter(|it| it["params"]["is"] == "ended" && it["params"]["turn"] == turn)
        .collect();
    assert_eq!(ends.len(), 1, "one outcome: {ends:?}");
    assert_eq!(ends[0]["params"]["how"], "interrupted");
    assert_eq!(client.prompt(id, "count"), "end_turn");
    assert!(
        client.text().contains(&format!("count {}", kill * 2 + 2)),
        "the agent has its history"
    );
    drop(client);
    daemon.stop();
}

fn connect(home: &Home, agent: &[String]) -> Client {
    let mut client = home.dial();
    client.notify("_jackfield/connect", &json!({ "agent": { "name": "fake", "argv": agent } }));
    client.hello_aware();
    client
}

fn attach(client: &mut Client, id: &str) {
    client.result("_jackfield/attach", &json!({ "sessionId": id, "after": 0 }));
}

/// The seq of a message that tells an event.
fn seq(message: &Value) -> Option<u64> {
    let of_update = message.pointer("/params/_meta/jackfield/seq");
    of_update.or_else(|| message.pointer("/params/seq"))?.as_u64()
}

#[test]
fn a_killed_daemon_can_be_replaced_at_once_even_while_its_agents_still_die() {
    let home = Home::new();
    let state = home.path().join("agent");
    let agent =
        home.fake_agent(&["--state", state.to_str().unwrap(), "--ignore-term", "--ignore-eof"]);
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &agent);
    let id = client.open(home.path());
    client.send_prompt(&id, "slow 1000 5");
    client.until("an update", |it| it["method"] == "session/update");
    let old: Vec<u32> = home.alive(&[daemon.pid()]);
    assert!(!old.is_empty());
    daemon.kill_9();
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &agent);
    assert_eq!(client.prompt(&id, "count"), "end_turn");
    let bound = Duration::from_secs(5);
    wait_for("the old tree to be gone", bound, || {
        old.iter().all(|it| !procs::is_alive(*it)).then_some(())
    });
    drop(client);
    daemon.stop();
}
