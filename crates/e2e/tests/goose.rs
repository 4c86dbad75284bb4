//! goose, a real agent, through the real daemon, with a model server of ours on loopback.

use jackfield_e2e::{Cli, Client, Home, client::PATIENCE, wait_for};
use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};
use std::{fs, path::PathBuf, time::Duration};

/// A goose with a home of its own; whatever it does, it sees nothing of ours.
struct Goose {
    cli: Cli,
    project: PathBuf,
}

impl Goose {
    fn new(home: &Home, model: &FakeModel) -> Goose {
        let project = home.path().join("project");
        fs::create_dir_all(&project).unwrap();
        Goose { cli: Cli::new("goose", &home.path().join("goose"), &model.url()), project }
    }

    fn connect(&self, home: &Home) -> Client {
        let mut client = home.dial();
        let argv = self.cli.argv(&["acp", "--with-builtin", "developer"]);
        let agent = json!({ "name": "goose", "argv": argv });
        client.notify("_jackfield/connect", &json!({ "agent": agent, "env": self.cli.env }));
        let told = client.hello_aware();
        assert_eq!(told["agentInfo"]["name"], "goose");
        client
    }
}

fn is_permission(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

fn allow_once(client: &mut Client, ask: &Value) {
    let options = ask["params"]["options"].as_array().expect("options");
    let once = options.iter().find(|it| it["kind"] == "allow_once").expect("a way to allow it");
    let outcome = json!({ "outcome": "selected", "optionId": once["optionId"] });
    client.respond(ask, &json!({ "outcome": outcome }));
}

fn said(client: &Client, words: &str) -> bool {
    client.text().contains(words)
}

/// Waits until the agent has said these words.
fn hear(client: &mut Client, words: &str) {
    while !said(client, words) {
        client.until(words, |it| it["method"] == "session/update");
    }
}

#[test]
fn goose_talks_uses_a_tool_when_it_may_and_stops_when_told() {
    let (home, model) = (Home::new(), FakeModel::start());
    let goose = Goose::new(&home, &model);
    let daemon = home.serve(&[]);
    let mut client = goose.connect(&home);
    let session = client.open(&goose.project);

    assert_eq!(client.prompt(&session, "Say hello"), "end_turn");
    assert!(said(&client, "Hello from the fake model."), "{}", client.text());

    let turn = client.send_prompt(&session, "TOUCH something");
    let ask = client.until("a permission request", is_permission);
    assert_eq!(ask["params"]["sessionId"], json!(session));
    let touched = goose.project.join("touched-by-tool.txt");
    assert!(!touched.exists(), "nothing happens before the answer");
    allow_once(&mut client, &ask);
    assert_eq!(client.answer(turn)["result"]["stopReason"], "end_turn");
    assert!(touched.exists(), "the tool ran");
    assert!(said(&client, "The tool answered: hello-from-tool"), "{}", client.text());

    let turn = client.send_prompt(&session, "Be SLOW about it");
    hear(&mut client, "tick-3 ");
    client.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(client.answer(turn)["result"]["stopReason"], "cancelled");
    assert!(!said(&client, "tick-50 "), "it did not finish");
    assert!(model.log().iter().all(|it| it["testKey"] != json!(false)), "only the dummy key");
    drop(client);
    daemon.stop();
}

#[test]
fn goose_loses_nothing_when_the_daemon_is_killed_in_mid_turn() {
    let (home, model) = (Home::new(), FakeModel::start());
    let goose = Goose::new(&home, &model);
    let daemon = home.serve(&[]);
    let mut client = goose.connect(&home);
    let session = client.open(&goose.project);
    assert_eq!(client.prompt(&session, "Say hello"), "end_turn");
    assert_eq!(client.prompt(&session, "Say it again"), "end_turn");
    client.send_prompt(&session, "Be SLOW about it");
    hear(&mut client, "tick-3 ");
    assert!(2 <= home.alive(&[daemon.pid()]).len(), "goose and its guard are alive");
    daemon.kill_9();
    while client.next(Duration::from_secs(1)).is_some() {}
    wait_for("goose to be gone", Duration::from_secs(5), || {
        home.alive(&[]).is_empty().then_some(())
    });

    let daemon = home.serve(&[]);
    let mut later = goose.connect(&home);
    let load = json!({ "sessionId": session, "cwd": goose.project, "mcpServers": [] });
    later.result("session/load", &load);
    let updates = |client: &Client| {
        let is_update = |it: &&Value| it["method"] == "session/update";
        client.heard.iter().filter(is_update).cloned().collect::<Vec<Value>>()
    };
    let replayed = updates(&later);
    for update in updates(&client) {
        assert!(replayed.contains(&update), "heard before the kill, not in the journal: {update}");
    }
    let ended = |it: &&Value| it["params"]["is"] == "ended" && it["params"]["turn"] == 3;
    let ends: Vec<&Value> = later.heard.iter().filter(ended).collect();
    assert_eq!(ends.len(), 1, "one outcome: {ends:?}");
    assert_eq!(ends[0]["params"]["how"], "interrupted");

    // Two answered prompts, and the interrupted one together with this one.
    assert_eq!(later.prompt(&session, "COUNT what you see"), "end_turn");
    assert!(said(&later, "I see 3 user messages."), "it kept the context: {}", later.text());
    assert_eq!(updates(&later)[..replayed.len()], replayed, "its own replay is nobody's news");
    drop((client, later));
    daemon.stop();
}

#[test]
fn a_tool_of_goose_that_runs_when_the_daemon_is_killed_dies_with_it() {
    let (home, model) = (Home::new(), FakeModel::start());
    let goose = Goose::new(&home, &model);
    let daemon = home.serve(&[]);
    let mut client = goose.connect(&home);
    let session = client.open(&goose.project);
    client.send_prompt(&session, "SLEEP a while");
    let ask = client.until("a permission request", is_permission);
    allow_once(&mut client, &ask);
    // The tool is `tail -f`, in a shell that goose started.
    wait_for("the tool to run", PATIENCE, || {
        let runs_tail = |pid: &u32| {
            let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.starts_with("tail\0")
        };
        home.alive(&[]).iter().any(runs_tail).then_some(())
    });
    daemon.kill_9();
    wait_for("the tree to be gone", Duration::from_secs(5), || {
        home.alive(&[]).is_empty().then_some(())
    });

    let daemon = home.serve(&[]);
    let mut later = goose.connect(&home);
    assert_eq!(later.prompt(&session, "ECHO still here"), "end_turn");
    assert!(said(&later, "still here"), "{}", later.text());
    drop((client, later));
    daemon.stop();
}
