//! The end of the agent: whenever its editor leaves or a signal tells it to, with all it started. And
//! what it writes where, until then.

use super::Desk;
use jackfield_e2e::{Home, wait_for};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::Stdio,
    time::{Duration, Instant},
};

/// Long for a busy machine, and shorter than any limit after which something is ended by force.
const SOON: Duration = Duration::from_secs(4);

/// How an agent is told to end.
type End<M> = fn(&mut Desk<M>) -> std::process::ExitStatus;

#[test]
fn an_agent_ends_when_its_editor_leaves_or_a_signal_says_so() {
    for end in [Desk::leave as End<FakeModel>, Desk::terminate] {
        let mut desk = Desk::new(FakeModel::start(), &[]);
        let session = desk.open();
        desk.turn(&session, "Hello");
        let begin = Instant::now();
        let status = end(&mut desk);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        assert!(status.success(), "{status}: {}", desk.said());
        assert!(desk.home.alive(&[]).is_empty(), "nothing is left");
    }
}

#[test]
fn an_agent_ends_in_the_middle_of_an_answer() {
    for end in [Desk::leave as End<ScriptedModel>, Desk::terminate] {
        let half = Reply::stream().delta(&json!({ "content": "Half" })).hang();
        let mut desk = Desk::new(ScriptedModel::start([half]), &[]);
        let session = desk.open();
        desk.client.send_prompt(&session, "Hello");
        desk.client.until("half an answer", |it| {
            it.pointer("/params/update/content/text") == Some(&json!("Half"))
        });
        let begin = Instant::now();
        let status = end(&mut desk);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        assert!(status.success(), "{status}: {}", desk.said());
        assert!(desk.model.wait_gone(1, SOON), "the request was aborted");
    }
}

#[test]
fn an_agent_ends_with_the_command_that_it_runs() {
    for end in [Desk::leave as End<FakeModel>, Desk::terminate] {
        let mut desk = Desk::new(FakeModel::start(), &[]);
        let session = desk.open();
        desk.client.send_prompt(&session, "SLEEP");
        let ask =
            desk.client.until("a question", |it| it["method"] == "session/request_permission");
        let once = json!({ "outcome": { "outcome": "selected", "optionId": "once" } });
        desk.client.respond(&ask, &once);
        let is_tail = |pid: &u32| jackfield_e2e::procs::words(*pid).iter().any(|it| it == "tail");
        let agent = desk.child.id();
        let home = &desk.home;
        wait_for("the command", Duration::from_secs(10), || {
            home.alive(&[agent]).iter().any(is_tail).then_some(())
        });
        let begin = Instant::now();
        end(&mut desk);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        wait_for("the command's end", SOON, || desk.home.alive(&[]).is_empty().then_some(()));
    }
}

#[test]
fn sigterm_ends_the_agent_after_the_line_that_it_writes() {
    const PIPE_BYTES: u64 = 65_536;
    let text = "x".repeat(200_000);
    let model = ScriptedModel::start([Reply::say(&text)]);
    let home = Home::new();
    let mut command = home.command(&["agent"]);
    command.env("OPENAI_BASE_URL", model.url());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(&mut stdout).lines();
    let new = json!({ "cwd": home.path(), "mcpServers": [] });
    let new = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new });
    writeln!(stdin, "{new}").unwrap();
    let opened = lines.find_map(|it| {
        let line: Value = serde_json::from_str(&it.unwrap()).unwrap();
        line["result"]["sessionId"].as_str().map(str::to_owned)
    });
    let text_block = json!([{ "type": "text", "text": "Hello" }]);
    let prompt = json!({ "sessionId": opened.unwrap(), "prompt": text_block });
    let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt });
    writeln!(stdin, "{prompt}").unwrap();
    drop(lines);
    wait_for("a full pipe", Duration::from_secs(10), || {
        (PIPE_BYTES / 2 < rustix::io::ioctl_fionread(&stdout).unwrap()).then_some(())
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(&text) && rest.ends_with("}\n"), "the line is whole");
    let status = wait_for("the end", SOON, || child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[test]
fn stdout_is_the_protocol_and_nothing_else_and_stderr_the_log() {
    let home = Home::new();
    let model = ScriptedModel::start([]);
    let mut command = home.command(&["agent", "-v"]);
    command.env("OPENAI_BASE_URL", model.url()).env("OPENAI_MAX_TOKENS", "many");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "no/such/method", "params": {} });
    let new = json!({ "cwd": home.path(), "mcpServers": [] });
    let new = json!({ "jsonrpc": "2.0", "id": 3, "method": "session/new", "params": new });
    for line in
        [hello.to_string(), "this is no JSON".to_owned(), unknown.to_string(), new.to_string()]
    {
        writeln!(stdin, "{line}").unwrap();
    }
    let output = {
        // It answers what it was asked before it ends.
        let waits = std::thread::spawn(move || child.wait_with_output().unwrap());
        wait_for("the session in the store", Duration::from_secs(10), || {
            home.path().join("state/agent/agent.db").exists().then_some(())
        });
        drop(stdin);
        waits.join().unwrap()
    };
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|it| serde_json::from_str(it).unwrap_or_else(|_| panic!("no JSON: {it}")))
        .collect();
    assert!(lines.iter().all(|it| it["jsonrpc"] == "2.0"), "{lines:?}");
    assert!(lines.iter().any(|it| it["id"] == 2 && it["error"]["code"] == -32601), "{lines:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("OPENAI_MAX_TOKENS is not a valid number: ignoring `many`"), "{said}");
}
