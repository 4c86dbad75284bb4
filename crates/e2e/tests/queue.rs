//! Prompts that wait when the daemon is killed: kept, shown as held, run once when somebody says so,
//! and not before.

use jackfield_e2e::{Client, Home, wait_for};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

const PATIENCE: Duration = Duration::from_secs(20);

fn connect(home: &Home, agent: &[String]) -> Client {
    let mut client = home.dial();
    client.notify("_jackfield/connect", &json!({ "agent": { "name": "fake", "argv": agent } }));
    client.hello_aware();
    client
}

fn agent(home: &Home, state: &Path) -> Vec<String> {
    home.fake_agent(&["--state", state.to_str().unwrap(), "--caps", "load,resume"])
}

fn queue(home: &Home, id: &str) -> Vec<(u64, String, bool)> {
    let output = home.run(&["queue", id, "--format", "json"], PATIENCE);
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |it: &Value| {
        let text = it["text"].as_str().unwrap().to_owned();
        (it["prompt"].as_u64().unwrap(), text, it["held"].as_bool().unwrap())
    };
    told["prompts"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn what_waits_is_kept_over_a_kill_and_runs_once_when_it_is_released() {
    let home = Home::new();
    let agent = agent(&home, &home.path().join("agent"));
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &agent);
    let id = client.open(home.path());
    client.send_prompt(&id, "slow 1000 5");
    client.until("an update", |it| it["method"] == "session/update");
    for text in ["say one", "say two", "say three"] {
        client.send_prompt(&id, text);
        client.until("the prompt to be queued", |it| it["params"]["is"] == "queued");
    }
    let row = |number: u64, text: &str, held: bool| (number, text.to_owned(), held);
    let waits = |held| vec![row(1, "say one", held), row(2, "say two", held)];
    let three = |held| row(3, "say three", held);
    assert_eq!(queue(&home, &id), [waits(false), vec![three(false)]].concat());
    daemon.kill_9();
    let gone = || home.alive(&[]).is_empty().then_some(());
    wait_for("the agent's tree to be gone", Duration::from_secs(5), gone);

    let daemon = home.serve(&[]);
    assert_eq!(queue(&home, &id), [waits(true), vec![three(true)]].concat());
    let mut client = connect(&home, &agent);
    // The session works, and what is held still does not run.
    assert_eq!(client.prompt(&id, "say now"), "end_turn");
    assert_eq!(queue(&home, &id), [waits(true), vec![three(true)]].concat());
    let withdrawn = home.run(&["queue", &id, "--withdraw", "3"], PATIENCE);
    assert!(withdrawn.status.success(), "{withdrawn:?}");
    let released = home.run(&["queue", &id, "--run"], PATIENCE);
    assert!(released.status.success(), "{released:?}");
    client
        .until("the last to end", |it| it["params"]["is"] == "ended" && it["params"]["turn"] == 4);
    assert_eq!(queue(&home, &id), []);
    assert!(
        home.run(&["queue", &id, "--run"], PATIENCE).status.success(),
        "nothing is left to run"
    );

    // Each ran once, in order, and the withdrawn one never.
    let mut reader = connect(&home, &agent);
    reader.result("_jackfield/attach", &json!({ "sessionId": id, "after": 0 }));
    let prompted = reader.heard.iter().filter(|it| it["params"]["is"] == "prompted");
    let text = |it: &Value| it["params"]["frame"]["params"]["prompt"][0]["text"].clone();
    let ran: Vec<Value> = prompted.map(text).collect();
    assert_eq!(ran, ["slow 1000 5", "say now", "say one", "say two"]);
    drop((client, reader));
    daemon.stop();
}

#[test]
fn a_steering_prompt_stops_the_turn_and_leaves_the_queue() {
    let home = Home::new();
    let agent = agent(&home, &home.path().join("agent"));
    let daemon = home.serve(&[]);
    let mut client = connect(&home, &agent);
    let id = client.open(home.path());
    let first = client.send_prompt(&id, "slow 1000 5");
    client.until("an update", |it| it["method"] == "session/update");
    let later = client.send_prompt(&id, "say later");
    client.until("the prompt to be queued", |it| it["params"]["is"] == "queued");
    let run = home.run(&["run", "-s", &id, "--steer", "say this"], PATIENCE);
    assert!(run.status.success(), "{run:?}");
    assert_eq!(client.answer(first)["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer(later)["result"]["stopReason"], "end_turn");
    let prompted = client.heard.iter().filter(|it| it["params"]["is"] == "prompted");
    let text = |it: &Value| it["params"]["frame"]["params"]["prompt"][0]["text"].clone();
    let ran: Vec<Value> = prompted.map(text).collect();
    assert_eq!(ran, ["slow 1000 5", "say this", "say later"]);
    drop(client);
    daemon.stop();
}
