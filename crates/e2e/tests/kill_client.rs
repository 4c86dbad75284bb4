//! A client that goes away in mid-turn: the turn finishes, and everyone can read all of it.

use jackfield_e2e::{Home, wait_for};
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};

#[test]
fn a_turn_outlives_its_client_and_is_replayed_to_another() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let agent = home.fake_agent(&[]);
    let mut client = home.dial();
    client.connect(&agent);
    let id = client.open(home.path());
    client.send_prompt(&id, "slow 60 10 then title done indeed");
    client.until("an update", |it| it["method"] == "session/update");
    drop(client);
    let mut other = home.dial();
    other.hello();
    wait_for("the end of the turn", Duration::from_secs(20), || {
        let rows = other.result("_jackfield/sessions", &json!({}));
        (rows["sessions"][0]["state"] == "idle").then_some(())
    });
    other.heard.clear();
    other.result("session/load", &json!({ "sessionId": id, "cwd": home.path(), "mcpServers": [] }));
    assert_whole(&other.heard);
    let log = home.run(&["log", &id], Duration::from_secs(20));
    let text = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
    for number in 1..=60 {
        assert!(text.contains(&format!("slow {number} ")), "`jackfield log` lacks chunk {number}");
    }
    drop(other);
    daemon.stop();
}

/// User's words first, then every chunk in order, then the title.
fn assert_whole(heard: &[Value]) {
    let updates: Vec<&Value> = heard.iter().filter_map(|it| it.pointer("/params/update")).collect();
    assert_eq!(updates[0]["sessionUpdate"], "user_message_chunk");
    let texts: Vec<&str> = updates
        .iter()
        .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|it| it.pointer("/content/text")?.as_str())
        .collect();
    let wanted: Vec<String> = (1..=60).map(|number| format!("slow {number} ")).collect();
    assert_eq!(texts, wanted);
    assert!(updates.iter().any(|it| it["title"] == "done indeed"));
}

#[test]
fn a_killed_shim_costs_nothing_but_itself() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let agent = home.fake_agent(&[]);
    let mut args = vec!["run", "slow 40 10", "--"];
    args.extend(agent.iter().map(String::as_str));
    let mut run = home
        .command(&args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut other = home.dial();
    other.hello();
    wait_for("the turn to run", Duration::from_secs(20), || {
        let rows = other.result("_jackfield/sessions", &json!({}));
        (rows["sessions"][0]["state"] == "working").then_some(())
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let row = wait_for("the turn to finish", Duration::from_secs(20), || {
        let rows = other.result("_jackfield/sessions", &json!({}));
        let row = rows["sessions"][0].clone();
        (row["state"] == "idle").then_some(row)
    });
    assert!(row["events"].as_u64().unwrap() >= 42, "{row}");
    drop(other);
    daemon.stop();
}
