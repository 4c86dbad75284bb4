//! `jackfield run`: output, formats, sessions, signals.

use crate::{
    fake_hub::{
        FakeHub, agent_text, hub_event, message_chunk, prompt_response, response, session_row,
        session_update,
    },
    home::{TestHome, wait_for},
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
        message_chunk(1, "agent_thought_chunk", "Let me look.\nThen "),
        message_chunk(2, "agent_thought_chunk", "decide."),
        agent_text("I will "),
        agent_text("look."),
        session_update(3, &tool),
        session_update(4, &failed),
        session_update(5, &plan),
        session_update(6, &json!({ "sessionUpdate": "something_new", "x": 1 })),
        session_update(
            7,
            &json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }),
        ),
        agent_text("It is a parser. "),
        session_update(8, &image),
        prompt_response("end_turn"),
    ]
}

#[test]
fn agent_messages_go_to_stdout_and_notes_to_stderr() {
    let home = TestHome::new();
    FakeHub::new().on("session/prompt", &busy_turn()).start(&home);
    insta::assert_snapshot!("run_text", home.run(RUN).to_snapshot());
    let verbose = home.run(&["-v", "run", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_verbose", verbose.to_snapshot());
    let quiet = home.run(&["-q", "run", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_quiet_flag", quiet.to_snapshot());
}

#[test]
fn quiet_format_prints_only_the_final_message() {
    let home = TestHome::new();
    FakeHub::new().on("session/prompt", &busy_turn()).start(&home);
    let outcome = home.run(&["run", "--format", "quiet", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_quiet", outcome.to_snapshot());
}

#[test]
fn json_format_prints_only_acp_messages() {
    let home = TestHome::new();
    let lines = [agent_text("Hi."), crate::fake_hub::permission_request(1, "edit")];
    let received = FakeHub::new()
        .on("session/prompt", &lines)
        .on("answer", &[prompt_response("end_turn")])
        .start(&home);
    let args = ["run", "--format", "json", "--approve", "all", "hello", "--", "goose", "acp"];
    let outcome = home.run(&args);
    insta::assert_snapshot!("run_json", outcome.to_snapshot());
    let capabilities = &received.with_method("initialize")[0]["params"]["clientCapabilities"];
    assert!(capabilities.get("_meta").is_none(), "the client receives ACP messages only");
    let printed: Vec<Value> =
        outcome.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(printed.iter().all(|it| it["jsonrpc"] == "2.0"));
}

#[test]
fn agent_command_gets_the_callers_environment_without_jackfield_variables() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    let mut command = home.command(RUN);
    command.env("SOME_API_KEY", "secret").env("JACKFIELD_TIMEOUT", "60");
    assert!(command.output().unwrap().status.success());
    let params = &received.with_method("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], json!({ "name": "goose", "argv": ["goose", "acp"] }));
    assert_eq!(params["env"]["SOME_API_KEY"], "secret");
    assert_eq!(params["env"].get("JACKFIELD_TIMEOUT"), None);
    assert_eq!(params["cwd"], received.with_method("session/new")[0]["params"]["cwd"]);
}

#[test]
fn named_agent_is_resolved_by_the_daemon() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    assert_eq!(home.run(&["run", "-a", "claude", "hello"]).code, 0);
    let params = &received.with_method("_jackfield/connect")[0]["params"];
    assert_eq!(params["agent"], "claude");
    assert!(params["env"]["PATH"].is_string(), "the environment is sent");
    assert_eq!(home.run(&["run", "hello"]).code, 0);
    let params = &received.with_method("_jackfield/connect")[1]["params"];
    assert_eq!(params["agent"], "goose", "the only installed agent");
    assert!(params["env"]["PATH"].is_string(), "the default agent gets the same environment");
    home.write_config("default_agent = \"codex\"\n");
    assert_eq!(home.run(&["run", "hello"]).code, 0);
    assert_eq!(received.with_method("_jackfield/connect")[2]["params"]["agent"], "codex");
}

#[test]
fn prompt_is_read_from_stdin() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    assert_eq!(home.run_with_input(&["run", "-"], "two\nlines\n").code, 0);
    assert_eq!(
        received.with_method("session/prompt")[0]["params"]["prompt"][0]["text"],
        "two\nlines\n"
    );
}

#[test]
fn run_closes_the_session_it_opened_and_keeps_a_running_one_open() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    home.run(RUN);
    assert_eq!(received.with_method("session/close").len(), 1);
    home.run(&["run", "--keep", "hello", "--", "goose", "acp"]);
    home.run(&["run", "-s", "7f3", "go on"]);
    assert_eq!(received.with_method("session/close").len(), 1);
    assert_eq!(received.with_method("session/prompt")[2]["params"]["sessionId"], "s-7f3abcdefghi");
}

#[test]
fn sleeping_session_restarts_by_name_and_then_by_command() {
    let home = TestHome::new();
    let hub_data = json!({ "code": "no_agent", "why": "unknown agent `goose`" });
    let unknown = crate::fake_hub::hub_error(-31004, "no agent to use", &hub_data);
    let bound = hub_event("session", 8, "bound", json!({ "restore": "resumed", "setup": null }));
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("_jackfield/connect", &[unknown])
        .on("session/prompt", &[bound, agent_text("On we go."), prompt_response("end_turn")])
        .start(&home);
    // The hub answers the second request with the same error.
    let outcome = home.run(&["run", "-s", "fix the parser", "go on"]);
    assert_eq!(outcome.code, 4);
    let asked = received.with_method("_jackfield/connect");
    assert_eq!(asked[0]["params"]["agent"], "goose");
    assert_eq!(asked[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    assert_eq!(asked[1]["params"]["env"]["HOME"], home.path().to_str().unwrap());
}

#[test]
fn session_opened_by_command_restarts_with_that_command() {
    let home = TestHome::new();
    let by_name = response(&json!({ "command": false }));
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("_jackfield/connect", &[by_name])
        .on("session/prompt", &[prompt_response("end_turn")])
        .start(&home);
    assert_eq!(home.run(&["run", "-s", "s-7f", "go on"]).code, 0);
    let asked = received.with_method("_jackfield/connect");
    assert_eq!(asked[0]["params"]["agent"], "goose");
    assert_eq!(asked[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    assert_eq!(asked[1]["params"]["env"]["HOME"], home.path().to_str().unwrap());
}

#[test]
fn restored_session_is_reported_and_closed_again() {
    let home = TestHome::new();
    let bound = hub_event("session", 8, "bound", json!({ "restore": "resumed", "setup": null }));
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "asleep", "fix the parser")])
        .on("session/prompt", &[bound, agent_text("On we go."), prompt_response("end_turn")])
        .start(&home);
    insta::assert_snapshot!("run_session", home.run(&["run", "-s", "s-7f", "go on"]).to_snapshot());
    assert_eq!(received.methods().last().unwrap(), "session/close");
}

#[test]
fn no_wait_prints_the_id_when_the_hub_has_the_prompt() {
    let home = TestHome::new();
    let prompted = hub_event("turn", 2, "prompted", json!({ "turn": 1, "by": "x", "frame": {} }));
    let received = FakeHub::new().on("session/prompt", &[prompted]).start(&home);
    let outcome = home.run(&["run", "--no-wait", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_no_wait", outcome.to_snapshot());
    assert!(received.with_method("session/close").is_empty());
}

#[test]
fn no_wait_accepts_a_queued_prompt() {
    let home = TestHome::new();
    let mut queued = session_row("s-7f3abcdefghi", "goose", "working", "fix the parser");
    queued["queued"] = json!(1);
    FakeHub::new().with_sessions(&[queued]).start(&home);
    let args = ["run", "--no-wait", "--format", "json", "-s", "s-7f3", "go on"];
    insta::assert_snapshot!("run_no_wait_queued", home.run(&args).to_snapshot());
}

#[test]
fn ctrl_c_cancels_the_turn_and_waits_for_its_end() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Working")])
        .on("session/cancel", &[prompt_response("cancelled")])
        .start(&home);
    for signal in [Signal::INT, Signal::TERM] {
        let before = received.with_method("session/cancel").len();
        let running = home.start(RUN, None);
        wait_for("the prompt", || before < received.with_method("session/prompt").len());
        running.signal(signal);
        let outcome = running.finish();
        assert_eq!(outcome.code, 130);
        insta::assert_snapshot!("run_interrupted", outcome.to_snapshot());
        assert_eq!(received.methods().last().unwrap(), "session/close");
    }
}

#[test]
fn second_ctrl_c_exits_at_once() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    let running = home.start(RUN, None);
    wait_for("the prompt", || !received.with_method("session/prompt").is_empty());
    running.signal(Signal::INT);
    wait_for("the cancel", || !received.with_method("session/cancel").is_empty());
    running.signal(Signal::INT);
    let outcome = running.finish();
    insta::assert_snapshot!("run_left", outcome.to_snapshot());
    assert_eq!(outcome.code, 130);
    assert!(received.with_method("session/close").is_empty(), "the hub is still stopping the turn");
}

#[test]
fn ctrl_c_during_the_agent_start_exits_at_once() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/new", &[]).start(&home);
    let running = home.start(RUN, None);
    wait_for("the request", || !received.with_method("session/new").is_empty());
    running.signal(Signal::INT);
    let outcome = running.finish();
    insta::assert_snapshot!("run_interrupted_while_starting", outcome.to_snapshot());
    assert_eq!(outcome.code, 130);
}

#[test]
fn closed_stdout_is_not_an_error() {
    let home = TestHome::new();
    let lines: Vec<String> = (0..2_000).map(|it| agent_text(&format!("line {it}\n"))).collect();
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let mut child = home.command(RUN).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn unsupported_requests_are_refused() {
    let home = TestHome::new();
    let request =
        json!({ "jsonrpc": "2.0", "id": 9, "method": "_agent/open_browser", "params": {} });
    let received = FakeHub::new()
        .on("session/prompt", &[request.to_string()])
        .on("answer", &[prompt_response("end_turn")])
        .start(&home);
    assert_eq!(home.run(RUN).code, 0);
    assert_eq!(received.with_method("answer")[0]["error"]["code"], -32601);
}

#[test]
fn environment_variable_sets_a_flag() {
    let home = TestHome::new();
    FakeHub::new()
        .on("session/prompt", &[agent_text("Hi."), response(&json!({ "stopReason": "end_turn" }))])
        .start(&home);
    let mut command = home.command(RUN);
    let output = command.env("JACKFIELD_FORMAT", "json").env("JACKFIELD_QUIET", "1").output();
    assert!(output.unwrap().stdout.starts_with(b"{\"jsonrpc\""));
}
