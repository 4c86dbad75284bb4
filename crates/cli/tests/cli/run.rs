//! `jackfield run`: words, formats, sessions, signals.

use crate::{
    fake_hub::{FakeHub, chunk, fact, result, row, say, stop, update},
    home::{Home, wait_for},
};
use rustix::process::Signal;
use serde_json::{Value, json};

const RUN: &[&str] = &["run", "hello", "--", "goose", "acp"];

fn busy_turn() -> Vec<String> {
    let tool = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read src/main.rs", "kind": "read",
    });
    let failed =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed" });
    let entry =
        |text: &str, status: &str| json!({ "content": text, "status": status, "priority": "low" });
    let plan = json!({
        "sessionUpdate": "plan",
        "entries": [entry("look", "completed"), entry("change", "in_progress"), entry("test", "pending")],
    });
    let image = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": { "type": "image", "data": "", "mimeType": "image/png" },
    });
    vec![
        chunk(1, "agent_thought_chunk", "Let me look.\nThen "),
        chunk(2, "agent_thought_chunk", "decide."),
        say("I will "),
        say("look."),
        update(3, &tool),
        update(4, &failed),
        update(5, &plan),
        update(6, &json!({ "sessionUpdate": "something_new", "x": 1 })),
        update(7, &json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" })),
        say("It is a parser. "),
        update(8, &image),
        stop("end_turn"),
    ]
}

#[test]
fn words_go_to_stdout_and_the_rest_to_stderr() {
    let home = Home::new();
    FakeHub::new().on("session/prompt", &busy_turn()).start(&home);
    insta::assert_snapshot!("run_text", home.run(RUN).told());
    let verbose = home.run(&["-v", "run", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_verbose", verbose.told());
    let quiet = home.run(&["-q", "run", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_hushed", quiet.told());
}

#[test]
fn quiet_prints_the_final_words_only() {
    let home = Home::new();
    FakeHub::new().on("session/prompt", &busy_turn()).start(&home);
    let did = home.run(&["run", "--format", "quiet", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_quiet", did.told());
}

#[test]
fn json_is_the_conversation_and_nothing_else() {
    let home = Home::new();
    let lines = [say("Hi."), crate::fake_hub::ask(1, "edit")];
    let heard =
        FakeHub::new().on("session/prompt", &lines).on("answer", &[stop("end_turn")]).start(&home);
    let args = ["run", "--format", "json", "--approve", "all", "hello", "--", "goose", "acp"];
    let did = home.run(&args);
    insta::assert_snapshot!("run_json", did.told());
    let hello = &heard.all("initialize")[0]["params"]["clientCapabilities"];
    assert!(hello.get("_meta").is_none(), "a plain client hears plain ACP");
    let printed: Vec<Value> =
        did.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(printed.iter().all(|it| it["jsonrpc"] == "2.0"));
}

#[test]
fn the_agents_command_gets_the_callers_environment_without_ours() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    let mut command = home.command(RUN);
    command.env("SOME_API_KEY", "secret").env("JACKFIELD_TIMEOUT", "60");
    assert!(command.output().unwrap().status.success());
    let params = &heard.all("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], json!({ "name": "goose", "argv": ["goose", "acp"] }));
    assert_eq!(params["env"]["SOME_API_KEY"], "secret");
    assert_eq!(params["env"].get("JACKFIELD_TIMEOUT"), None);
    assert_eq!(params["cwd"], heard.all("session/new")[0]["params"]["cwd"]);
}

#[test]
fn an_agent_by_name_is_looked_up_by_the_daemon() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    assert_eq!(home.run(&["run", "-a", "claude", "hello"]).code, 0);
    let params = &heard.all("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], "claude");
    assert!(params["env"]["PATH"].is_string(), "what its spec grants comes from here");
    assert_eq!(home.run(&["run", "hello"]).code, 0);
    assert_eq!(heard.all("_jackfield/connect").len(), 1, "the daemon chooses");
}

#[test]
fn the_prompt_may_come_from_stdin() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    assert_eq!(home.run_with_input(&["run", "-"], "two\nlines\n").code, 0);
    assert_eq!(heard.all("session/prompt")[0]["params"]["prompt"][0]["text"], "two\nlines\n");
}

#[test]
fn a_session_that_was_opened_is_closed_and_a_running_one_is_left_alone() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    home.run(RUN);
    assert_eq!(heard.all("session/close").len(), 1);
    home.run(&["run", "--keep", "hello", "--", "goose", "acp"]);
    home.run(&["run", "-s", "7f3", "go on"]);
    assert_eq!(heard.all("session/close").len(), 1);
    assert_eq!(heard.all("session/prompt")[2]["params"]["sessionId"], "s-7f3abcdefghi");
}

#[test]
fn a_sleeping_session_is_woken_with_the_callers_environment_and_put_back_to_sleep() {
    let home = Home::new();
    let ours = json!({ "code": "no_agent", "why": "no agent is called `goose`" });
    let unknown = crate::fake_hub::fault(-31004, "no agent to use", &ours);
    let bound = fact("session", 8, "bound", json!({ "rung": "resumed", "setup": null }));
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("_jackfield/connect", &[unknown])
        .on("session/prompt", &[bound, say("On we go."), stop("end_turn")])
        .start(&home);
    // The second answer is the same error here; the first is what decides.
    let did = home.run(&["run", "-s", "fix the parser", "go on"]);
    assert_eq!(did.code, 4);
    let asked = heard.all("_jackfield/connect");
    assert_eq!(asked[0]["params"]["agent"], "goose");
    assert_eq!(asked[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    assert_eq!(asked[1]["params"]["env"]["HOME"], home.path().to_str().unwrap());
}

#[test]
fn a_session_that_began_with_a_command_is_woken_with_it_even_if_the_name_is_known() {
    let home = Home::new();
    let by_name = result(&json!({ "command": false }));
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("_jackfield/connect", &[by_name])
        .on("session/prompt", &[stop("end_turn")])
        .start(&home);
    assert_eq!(home.run(&["run", "-s", "s-7f", "go on"]).code, 0);
    let asked = heard.all("_jackfield/connect");
    assert_eq!(asked[0]["params"]["agent"], "goose");
    assert_eq!(asked[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    assert_eq!(asked[1]["params"]["env"]["HOME"], home.path().to_str().unwrap());
}

#[test]
fn waking_a_session_is_told_and_it_is_closed_again() {
    let home = Home::new();
    let bound = fact("session", 8, "bound", json!({ "rung": "resumed", "setup": null }));
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("session/prompt", &[bound, say("On we go."), stop("end_turn")])
        .start(&home);
    insta::assert_snapshot!("run_session", home.run(&["run", "-s", "s-7f", "go on"]).told());
    assert_eq!(heard.methods().last().unwrap(), "session/close");
}

#[test]
fn without_waiting_the_id_is_printed_as_soon_as_the_hub_has_the_prompt() {
    let home = Home::new();
    let prompted = fact("turn", 2, "prompted", json!({ "turn": 1, "by": "x", "frame": {} }));
    let heard = FakeHub::new().on("session/prompt", &[prompted]).start(&home);
    let did = home.run(&["run", "--no-wait", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_no_wait", did.told());
    assert!(heard.all("session/close").is_empty());
}

#[test]
fn without_waiting_a_queued_prompt_is_enough() {
    let home = Home::new();
    let mut queued = row("s-7f3abcdefghi", "goose", "working", "fix the parser");
    queued["queued"] = json!(1);
    FakeHub::new().rows(&[queued]).start(&home);
    let args = ["run", "--no-wait", "--format", "json", "-s", "s-7f3", "go on"];
    insta::assert_snapshot!("run_no_wait_queued", home.run(&args).told());
}

#[test]
fn ctrl_c_cancels_the_turn_and_waits_for_its_end() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[say("Working")])
        .on("session/cancel", &[stop("cancelled")])
        .start(&home);
    for signal in [Signal::INT, Signal::TERM] {
        let before = heard.all("session/cancel").len();
        let running = home.start(RUN, None);
        wait_for("the prompt", || before < heard.all("session/prompt").len());
        running.signal(signal);
        let did = running.finish();
        assert_eq!(did.code, 130);
        insta::assert_snapshot!("run_interrupted", did.told());
        assert_eq!(heard.methods().last().unwrap(), "session/close");
    }
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let home = Home::new();
    let heard = FakeHub::new().start(&home);
    let running = home.start(RUN, None);
    wait_for("the prompt", || !heard.all("session/prompt").is_empty());
    running.signal(Signal::INT);
    wait_for("the cancel", || !heard.all("session/cancel").is_empty());
    running.signal(Signal::INT);
    let did = running.finish();
    insta::assert_snapshot!("run_left", did.told());
    assert_eq!(did.code, 130);
    assert!(heard.all("session/close").is_empty(), "the hub is still stopping the turn");
}

#[test]
fn ctrl_c_while_the_agent_starts_leaves_at_once() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/new", &[]).start(&home);
    let running = home.start(RUN, None);
    wait_for("the request", || !heard.all("session/new").is_empty());
    running.signal(Signal::INT);
    let did = running.finish();
    insta::assert_snapshot!("run_interrupted_while_starting", did.told());
    assert_eq!(did.code, 130);
}

#[test]
fn a_reader_that_has_heard_enough_is_no_failure() {
    let home = Home::new();
    let lines: Vec<String> = (0..2_000).map(|it| say(&format!("line {it}\n"))).collect();
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let mut child = home.command(RUN).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn requests_that_a_terminal_cannot_serve_are_refused() {
    let home = Home::new();
    let request =
        json!({ "jsonrpc": "2.0", "id": 9, "method": "_agent/open_browser", "params": {} });
    let heard = FakeHub::new()
        .on("session/prompt", &[request.to_string()])
        .on("answer", &[stop("end_turn")])
        .start(&home);
    assert_eq!(home.run(RUN).code, 0);
    assert_eq!(heard.all("answer")[0]["error"]["code"], -32601);
}

#[test]
fn a_variable_stands_for_a_flag() {
    let home = Home::new();
    FakeHub::new()
        .on("session/prompt", &[say("Hi."), result(&json!({ "stopReason": "end_turn" }))])
        .start(&home);
    let mut command = home.command(RUN);
    let output = command.env("JACKFIELD_FORMAT", "json").env("JACKFIELD_QUIET", "1").output();
    assert!(output.unwrap().stdout.starts_with(b"{\"jsonrpc\""));
}
