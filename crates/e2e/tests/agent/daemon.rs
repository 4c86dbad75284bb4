//! Our own agent through the daemon: a session that clients share, that sleeps and wakes, that outlives
//! its agent and the daemon, and that can be copied.

use crate::sleep::{row, wait_for_state};
use jackfield_e2e::{Client, Daemon, Home, procs, wait_for};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::{fs, time::Duration};

const BOUND: Duration = Duration::from_secs(20);

/// A daemon that was started where the model's address is known.
fn serve(home: &Home, url: &str) -> Daemon {
    home.serve_in(&[], &[("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", "test-key")])
}

/// A client that wants the agent by its name.
fn connect(home: &Home) -> Client {
    let mut client = home.dial();
    client.notify("_jackfield/connect", &json!({ "agent": "chat" }));
    let told = client.hello_aware();
    assert_eq!(told["agentInfo"]["name"], "jackfield");
    client
}

fn attach(home: &Home, session: &str) -> Client {
    let mut client = home.dial();
    client.hello_aware();
    client.result("_jackfield/attach", &json!({ "sessionId": session, "after": 0 }));
    client
}

fn run(home: &Home, args: &[&str]) -> String {
    let output = home.run(args, BOUND);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_clients_share_a_session_that_sleeps_and_wakes_and_knows_everything() {
    let (home, model) = (Home::new(), FakeModel::start());
    fs::create_dir(home.path().join("config")).unwrap();
    let house = "[sessions]\nidle_after = \"300ms\"\n";
    fs::write(home.path().join("config/config.toml"), house).unwrap();
    let daemon = serve(&home, &format!("{}/v1", model.url()));
    let mut one = connect(&home);
    let session = one.open(home.path());
    assert_eq!(one.prompt(&session, "ECHO one"), "end_turn");
    let mut two = attach(&home, &session);
    assert_eq!(two.text(), "one");
    assert_eq!(two.prompt(&session, "ECHO two"), "end_turn");
    one.until("the words of the other", |it| it.to_string().contains("\"two\""));
    assert_eq!((one.text(), two.text()), ("onetwo".to_owned(), "onetwo".to_owned()));

    let turn = one.send_prompt(&session, "TOUCH it");
    let ask = two.until("the question", |it| it["method"] == "session/request_permission");
    one.until("the same question", |it| it["method"] == "session/request_permission");
    let outcome = json!({ "outcome": "selected", "optionId": "once" });
    two.respond(&ask, &json!({ "outcome": outcome }));
    assert_eq!(one.answer(turn)["result"]["stopReason"], "end_turn");
    assert!(home.path().join("touched-by-tool.txt").exists());

    let asleep = wait_for_state(&mut one, &session, "asleep");
    assert_eq!(asleep["pid"], Value::Null);
    wait_for("its processes to be gone", BOUND, || {
        home.alive(&[daemon.pid()]).is_empty().then_some(())
    });
    assert_eq!(one.prompt(&session, "COUNT"), "end_turn");
    assert!(one.text().ends_with("I see 4 user messages."), "{}", one.text());
    assert!(model.log().iter().all(|it| it["testKey"] != false), "the key reaches the model");
    drop((one, two));
    daemon.stop();
}

/// A model that answers, hangs in the middle of its second answer, and answers again.
fn hanging_model() -> ScriptedModel {
    let hangs = Reply::stream().delta(&json!({ "content": "Half an" })).hang();
    ScriptedModel::start([Reply::say("Hello."), hangs, Reply::say("Here again.")])
}

/// The last request has everything that was said, and is one that servers accept.
fn check_history(model: &ScriptedModel) {
    assert_eq!(model.left(), 0);
    let asked = model.asked();
    let messages = &asked.last().unwrap().body["messages"];
    super::must_be_sound(messages);
    let messages: Vec<&Value> =
        messages.as_array().unwrap().iter().filter(|it| it["role"] != "system").collect();
    assert_eq!(messages.len(), 3, "{messages:#?}");
    assert_eq!(
        (&messages[0]["content"], &messages[1]["content"]),
        (&"one".into(), &"Hello.".into())
    );
    let last = messages[2]["content"].to_string();
    assert!(last.contains("two") && last.contains("three"), "{last}");
}

/// How the turn with this number ended, as everybody is told who comes later.
fn outcome(client: &Client, turn: u64) -> Value {
    let is_end = |it: &&Value| it["params"]["is"] == "ended" && it["params"]["turn"] == turn;
    let ends: Vec<&Value> = client.heard.iter().filter(is_end).collect();
    assert_eq!(ends.len(), 1, "one outcome: {ends:?}");
    ends[0]["params"]["how"].clone()
}

#[test]
fn an_agent_that_is_killed_in_mid_turn_is_replaced_and_knows_what_was_said() {
    let (home, model) = (Home::new(), hanging_model());
    let daemon = serve(&home, &model.url());
    let mut client = connect(&home);
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "one"), "end_turn");
    let turn = client.send_prompt(&session, "two");
    client.until("half of an answer", |it| it.to_string().contains("Half an"));
    let pid = row(&mut client, &session)["pid"].as_u64().unwrap();
    procs::kill_9(u32::try_from(pid).unwrap());
    let answer = client.answer(turn);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "agent_gone", "{answer}");
    assert_eq!(client.prompt(&session, "three"), "end_turn");
    assert!(client.text().ends_with("Here again."), "{}", client.text());
    check_history(&model);
    assert_eq!(outcome(&attach(&home, &session), 2), "interrupted");
    drop(client);
    daemon.stop();
}

#[test]
fn a_daemon_that_is_killed_in_mid_turn_goes_on_with_the_session() {
    let (home, model) = (Home::new(), hanging_model());
    let daemon = serve(&home, &model.url());
    let mut client = connect(&home);
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "one"), "end_turn");
    client.send_prompt(&session, "two");
    client.until("half of an answer", |it| it.to_string().contains("Half an"));
    daemon.kill_9();
    wait_for("the agent to go, too", BOUND, || home.alive(&[]).is_empty().then_some(()));
    assert!(home.path().join("state/agent/agent.db").exists(), "it stores its sessions");

    let daemon = serve(&home, &model.url());
    let mut client = attach(&home, &session);
    assert_eq!(outcome(&client, 2), "interrupted");
    assert_eq!(client.prompt(&session, "three"), "end_turn");
    assert!(client.text().ends_with("Here again."), "{}", client.text());
    check_history(&model);
    drop(client);
    daemon.stop();
}

#[test]
fn a_fork_knows_what_was_said_before_it_and_both_go_on_by_themselves() {
    let (home, model) = (Home::new(), FakeModel::start());
    let daemon = serve(&home, &format!("{}/v1", model.url()));
    let mut client = connect(&home);
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    let fork = run(&home, &["sessions", "fork", &session]).trim().to_owned();
    let mut other = attach(&home, &fork);
    let count = |client: &mut Client, session: &str, expected: usize| {
        assert_eq!(client.prompt(session, "COUNT"), "end_turn");
        let text = client.text();
        assert!(text.ends_with(&format!("I see {expected} user messages.")), "{text}");
    };
    count(&mut other, &fork, 2);
    count(&mut other, &fork, 3);
    count(&mut client, &session, 2);
    count(&mut other, &fork, 4);
    drop((client, other));
    daemon.stop();
}

#[test]
fn it_is_an_agent_of_the_catalogue_like_any_other() {
    let (home, model) = (Home::new(), FakeModel::start());
    let url = format!("{}/v1", model.url());
    let daemon = home.serve(&[]);
    let say = |args: &[&str]| {
        let mut command = home.command(args);
        // The daemon knows nothing of it: it is the user's environment that counts.
        command.env("OPENAI_BASE_URL", &url).env("OPENAI_API_KEY", "test-key");
        let output = jackfield_e2e::home::finish(command, BOUND);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(say(&["run", "-a", "chat", "hello"]), "Hello from the fake model.\n");
    let models: Value =
        serde_json::from_str(&say(&["models", "chat", "--probe", "--format", "json"])).unwrap();
    assert_eq!(models["source"], "acp", "{models}");
    let ids: Vec<&str> =
        models["models"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"fake-model") && ids.contains(&"fake-model-mini"), "{ids:?}");
    let agents: Value = serde_json::from_str(&say(&["agents", "--format", "json"])).unwrap();
    let agents = agents["agents"].as_array().unwrap();
    let chat = agents.iter().find(|it| it["id"] == "chat").expect("it is in the list");
    assert_eq!(chat["name"], "Jackfield's own agent");
    daemon.stop();
}
