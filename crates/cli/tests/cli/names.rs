//! Names of sessions, the latest session of a directory, filters, conflicting flags, and piped input.

use crate::{
    fake_hub::{FakeHub, attach_response, prompt_response, response, session_row},
    home::TestHome,
};
use serde_json::{Value, json};

fn row(home: &TestHome, id: &str, name: Option<&str>, dir: &str, agent: &str) -> Value {
    let mut row = session_row(id, agent, "idle", "fix the parser");
    row["name"] = json!(name);
    row["cwd"] = json!(home.path().join(dir));
    row
}

fn hub(home: &TestHome) -> FakeHub {
    let mut older = row(home, "s-b20abcdefghi", None, "project", "codex");
    older["updatedAt"] = json!("2026-11-14T08:29:00.000Z");
    let rows = [row(home, "s-7f3abcdefghi", Some("parser"), "elsewhere", "goose"), older];
    FakeHub::new()
        .with_sessions(&rows)
        .on("_jackfield/rename", &[response(&json!({}))])
        .on("session/prompt", &[prompt_response("end_turn")])
}

#[test]
fn new_session_gets_the_name() {
    let home = TestHome::new();
    let received = hub(&home).start(&home);
    assert_eq!(home.run(&["run", "--name", "build", "hi", "--", "goose", "acp"]).code, 0);
    let renamed = &received.with_method("_jackfield/rename")[0]["params"];
    assert_eq!(*renamed, json!({ "sessionId": "s-new4lnliedxj", "name": "build" }));
}

#[test]
fn session_is_renamed_and_used_by_its_name() {
    let home = TestHome::new();
    let received = hub(&home).start(&home);
    let renamed = home.run(&["sessions", "rename", "parser", "lexer"]);
    insta::assert_snapshot!("sessions_rename", renamed.to_snapshot());
    let params = &received.with_method("_jackfield/rename")[0]["params"];
    assert_eq!(*params, json!({ "sessionId": "s-7f3abcdefghi", "name": "lexer" }));
    assert_eq!(home.run(&["cancel", "parser"]).code, 0);
    let canceled = &received.with_method("session/cancel")[0]["params"]["sessionId"];
    assert_eq!(canceled, "s-7f3abcdefghi");
}

#[test]
fn continue_uses_the_latest_session_of_the_directory() {
    let home = TestHome::new();
    let received = hub(&home).start(&home);
    assert_eq!(home.run(&["run", "-c", "go on"]).code, 0);
    let prompted = &received.with_method("session/prompt")[0]["params"]["sessionId"];
    assert_eq!(prompted, "s-b20abcdefghi");
    let attached = home.run_with_input(&["attach", "-c"], "");
    assert_eq!(attached.code, 0, "{}", attached.stderr);
    let attaches = received.with_method("_jackfield/attach");
    assert_eq!(attaches.last().unwrap()["params"]["sessionId"], "s-b20abcdefghi");
    let none = home.run(&["run", "-c", "--cwd", "/", "go on"]);
    insta::assert_snapshot!("continue_none", none.to_snapshot());
}

#[test]
fn lists_show_names_and_directories() {
    let home = TestHome::new();
    let mut named = session_row("s-7f3abcdefghi", "goose", "idle", "fix the parser");
    named["name"] = json!("parser");
    let mut other = session_row("s-b20abcdefghi", "codex", "idle", "");
    other["cwd"] = json!("/srv/website");
    FakeHub::new().with_sessions(&[named, other]).start(&home);
    insta::assert_snapshot!("list_names", home.run(&["sessions", "list"]).to_snapshot());
    insta::assert_snapshot!("ps_names", home.run(&["ps"]).to_snapshot());
}

#[test]
fn lists_are_filtered() {
    let home = TestHome::new();
    hub(&home).start(&home);
    let ids = |args: &[&str]| {
        let outcome = home.run(&[args, &["--format", "quiet"]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout.lines().map(|it| it[..5].to_owned()).collect::<Vec<_>>()
    };
    for list in [&["ps"][..], &["sessions", "list"]] {
        let ids = |filter: &[&str]| ids(&[list, filter].concat());
        assert_eq!(ids(&[]), ["s-7f3", "s-b20"]);
        assert_eq!(ids(&["-n", "1"]), ["s-7f3"]);
        assert_eq!(ids(&["--agent", "codex"]), ["s-b20"]);
        assert_eq!(ids(&["--cwd", "."]), ["s-b20"]);
        assert_eq!(ids(&["--state", "asks,working"]), [""; 0]);
        assert_eq!(ids(&["--state", "idle"]).len(), 2);
    }
    let none = home.run(&["sessions", "list", "--state", "closed"]);
    assert!(none.stderr.contains("no session matches"), "{}", none.stderr);
    assert_eq!(home.run(&["ps", "--state", "sleepy"]).code, 2);
}

#[test]
fn usage_of_all_sessions_is_summed() {
    let home = TestHome::new();
    let answer = json!({
        "stopReason": "end_turn",
        "usage": { "inputTokens": 900, "outputTokens": 100, "totalTokens": 1000 },
        "_meta": { "jackfield": { "cost": { "amount": 0.25, "currency": "USD" } } },
    });
    let mut session = row(&home, "s-7f3abcdefghi", None, "project", "goose");
    session["turns"] = json!(2);
    let events = [
        &json!({ "is": "prompted", "turn": 1 }),
        &json!({ "is": "ended", "turn": 1, "how": "stopped", "answer": answer }),
        &json!({ "is": "prompted", "turn": 2 }),
    ];
    let log = attach_response("s-7f3abcdefghi", &events);
    FakeHub::new().with_sessions(&[session]).on("_jackfield/attach", &log).start(&home);
    insta::assert_snapshot!("usage", home.run(&["usage"]).to_snapshot());
    let json = home.run(&["usage", "--by", "model", "--format", "json"]);
    insta::assert_snapshot!("usage_json", json.to_snapshot());
}

#[test]
fn conflicting_flags_are_refused() {
    let home = TestHome::new();
    hub(&home).start(&home);
    let conflicts: [&[&str]; 8] = [
        &["run", "-a", "codex", "hi", "--", "goose", "acp"],
        &["run", "-s", "parser", "-a", "codex", "hi"],
        &["run", "-s", "parser", "--cwd", ".", "hi"],
        &["run", "-c", "-a", "codex", "hi"],
        &["run", "-s", "parser", "--name", "x", "hi"],
        &["run", "--isolated", "--keep", "hi", "--", "goose", "acp"],
        &["attach", "parser", "-a", "codex"],
        &["acp", "codex", "--", "goose", "acp"],
    ];
    let mut printed = String::new();
    for args in conflicts {
        let outcome = home.run(args);
        assert_eq!(outcome.code, 2, "{args:?}: {}", outcome.stderr);
        printed += &(outcome.to_snapshot() + "\n");
    }
    insta::assert_snapshot!("conflicting_flags", printed);
}

#[test]
fn agent_from_the_environment_yields_to_a_command_and_a_session() {
    let home = TestHome::new();
    let received = hub(&home).start(&home);
    for args in [&["run", "hi", "--", "goose", "acp"][..], &["run", "-s", "parser", "hi"]] {
        let output = home.command(args).env("JACKFIELD_AGENT", "codex").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let chosen = received.with_method("_jackfield/connect");
    assert!(chosen.iter().all(|it| it["params"]["agent"] != "codex"), "{chosen:?}");
}

#[test]
fn piped_input_is_appended_to_the_prompt_as_a_block() {
    let home = TestHome::new();
    let received = hub(&home).start(&home);
    let run = ["run", "explain", "--", "goose", "acp"];
    assert_eq!(home.run_with_input(&run, "error: 1\nerror: 2\n").code, 0);
    assert_eq!(home.run_with_input(&run, "").code, 0);
    let prompts = received.with_method("session/prompt");
    let prompt = &prompts[0]["params"]["prompt"];
    assert_eq!(prompt[0]["text"], "explain");
    assert_eq!(prompt[1]["text"], "<stdin>\nerror: 1\nerror: 2\n</stdin>");
    assert_eq!(prompts[1]["params"]["prompt"].as_array().unwrap().len(), 1);
}

#[test]
fn similar_command_is_suggested() {
    let home = TestHome::new();
    for (wrong, meant) in
        [("session", "sessions"), ("attache", "attach"), ("logs", "log"), ("daemons", "daemon")]
    {
        let outcome = home.run(&[wrong]);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains(&format!("'{meant}'")), "{wrong}: {}", outcome.stderr);
    }
    let nested = home.run(&["sessions", "renmae", "x", "y"]);
    assert!(nested.stderr.contains("'rename'"), "{}", nested.stderr);
}
