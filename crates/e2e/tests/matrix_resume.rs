//! Every way in which the fake agent takes a session up again, or does not: the documented step, the
//! same session, the same past to the byte, and one event that says how it came back.

use jackfield_e2e::{Home, procs};
use serde_json::{Value, json};
use std::time::Duration;

const BOUND: Duration = Duration::from_secs(20);

/// What the agent has of the past when it is prompted again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    /// Its own.
    Own,
    /// What it was told.
    Told,
    /// None, and nobody can tell: it says that it has the session, and takes prompts.
    Made,
}
use Past::{Made, Own, Told};

/// A name, the agent's flags, whether it keeps its sessions on disk, the steps in the log, and what
/// it has of the past. `spec/resume.md` says the same in prose.
type Row = (&'static str, &'static [&'static str], bool, &'static [&'static str], Past);

const LOADS: &[&str] = &["--caps", "load", "--load"];

const ROWS: &[Row] = &[
    ("resume", &[], true, &["resumed"], Own),
    ("resume-null", &["--resume", "null"], true, &["resumed"], Own),
    ("resume-refused", &["--resume", "error"], true, &["reloaded"], Own),
    ("resume-lost", &[], false, &["reseeded"], Told),
    ("resume-made-up", &["--resume", "success-for-missing"], false, &["resumed"], Made),
    ("resume-pretended", &["--resume", "pretend"], true, &["resumed", "reloaded"], Own),
    ("both-lost", &["--resume", "pretend"], false, &["resumed", "reseeded"], Told),
    ("load-ok", LOADS, true, &["reloaded"], Own),
    ("load-null", LOADS, true, &["reseeded"], Own),
    ("load-empty", LOADS, true, &["reseeded"], Own),
    ("load-error-32603", LOADS, true, &["reseeded"], Told),
    ("load-error-32002", LOADS, true, &["reseeded"], Told),
    ("load-error-32602", LOADS, true, &["reseeded"], Told),
    ("load-locked-once", LOADS, true, &["reloaded"], Own),
    ("load-pretend", LOADS, true, &["reseeded", "reseeded"], Told),
    ("load-success-for-missing", LOADS, false, &["reseeded"], Told),
    ("load-replay-then-null", LOADS, true, &["reloaded"], Own),
    ("load-replay-new-tool-ids", LOADS, true, &["reloaded"], Own),
    ("load-replay-after-answer", LOADS, true, &["reloaded"], Own),
    ("neither", &["--caps", "none"], true, &["reseeded"], Told),
];

#[test]
fn each_way_to_come_back_reaches_the_documented_rung_and_changes_nothing_that_was() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    std::thread::scope(|scope| {
        for row in ROWS {
            scope.spawn(|| play(&home, row));
        }
    });
    daemon.stop();
}

fn play(home: &Home, (name, flags, keeps, steps, past): &Row) {
    let mut flags: Vec<&str> = flags.to_vec();
    if flags.last() == Some(&"--load") {
        flags.push(name.strip_prefix("load-").expect("named after what it does"));
    }
    let state = home.path().join(name);
    if *keeps {
        flags.extend(["--state", state.to_str().unwrap()]);
    }
    let mut client = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": home.fake_agent(&flags) } });
    client.notify("_jackfield/connect", &agent);
    client.hello_aware();
    let id = client.open(home.path());
    let mode = json!({ "sessionId": id, "modeId": "plan" });
    client.result("session/set_mode", &mode);
    client.prompt(&id, "remember 17");
    client.prompt(&id, "tool then pid");
    let text = client.text();
    let pid = text.rsplit_once("pid ").and_then(|(_, it)| it.trim().parse().ok()).expect("a pid");
    let before = transcript(home, &id);

    procs::kill_9(pid);
    client.until("the agent's end", |it| it["params"]["is"] == "gone");
    let first = client.heard.len();
    assert_eq!(client.prompt(&id, "history then params then mode"), "end_turn", "{name}");
    let woken = &client.heard[first..];
    let facts = |is: &'static str| {
        let is_it = move |it: &&Value| it["params"]["is"] == is;
        woken.iter().filter(is_it).collect::<Vec<_>>()
    };
    let reached: Vec<&str> =
        facts("bound").iter().filter_map(|it| it["params"]["restore"].as_str()).collect();
    assert_eq!(reached, *steps, "{name}");
    assert_eq!(facts("prompted").len(), 1, "{name}: one prompt, written once");
    assert_eq!(facts("ended").len(), 1, "{name}");

    let after = transcript(home, &id);
    assert_eq!(after[..before.len()], before, "{name}: what was, was");
    let said: String = texts(&after[before.len()..]).concat();
    let (own, told) = (said.contains("history: remember 17"), said.contains("User: remember 17"));
    assert_eq!(own, *past == Own, "{name}: {said}");
    assert_eq!(told, *past == Told || reached == ["reseeded"], "{name}: {said}");
    assert!(said.contains("mode plan"), "{name}: {said}");
    client.result("session/close", &json!({ "sessionId": id }));
}

/// What a plain client that loads the session hears, line by line.
fn transcript(home: &Home, id: &str) -> Vec<String> {
    let mut client = home.dial();
    client.hello();
    let params = json!({ "sessionId": id, "cwd": home.path(), "mcpServers": [] });
    let request = client.send("session/load", &params);
    let answer = format!(r#""id":{request},"#);
    let mut lines = Vec::new();
    loop {
        let line = client.next_line(BOUND).expect("the replay ends");
        if line.contains(&answer) {
            return lines;
        }
        lines.push(line);
    }
}

fn texts(lines: &[String]) -> Vec<String> {
    let text = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap();
        let update = &line["params"]["update"];
        let said = update["sessionUpdate"] == "agent_message_chunk";
        said.then(|| update["content"]["text"].as_str().map(str::to_owned))?
    };
    lines.iter().filter_map(text).collect()
}
