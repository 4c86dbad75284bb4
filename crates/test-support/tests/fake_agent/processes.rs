//! How the process starts, exits and is killed.

use std::{fs, os::unix::process::ExitStatusExt as _, path::Path};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{Client, wait_until};

fn pid_of(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// Processes with this word in their arguments.
fn marked(marker: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let has_marker = |pid: &u32| {
        let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        argv.split(|it| *it == 0).any(|it| it == marker.as_bytes())
    };
    pids.filter(has_marker).collect()
}

/// Kills an orphan of this test, whether or not the test passes.
struct Orphan(u32);

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = kill_process(pid_of(self.0), Signal::KILL);
    }
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn agent_exits_when_stdin_ends_even_in_a_turn() {
    let mut client = Client::ready(&[]);
    client.start_prompt("hang");
    client.close_stdin();
    assert!(client.exit().success());
    assert!(client.stderr().is_empty());
}

#[test]
fn agent_can_die_before_initialize() {
    let flags =
        ["--exit-before-initialize", "127", "--stderr", "no such thing", "--stderr", "sorry"];
    let mut client = Client::start(&flags);
    assert_eq!(client.exit().code(), Some(127));
    assert_eq!(client.stderr(), "no such thing\nsorry\n");
    assert!(client.rest().is_empty());
    let mut client = Client::start(&["--exit-before-initialize", "SIGSEGV"]);
    assert_eq!(client.exit().signal(), Some(11));
}

#[test]
fn turn_can_end_the_process_by_code_or_by_signal() {
    for (how, code, signal) in
        [("", Some(1), None), (" 42", Some(42), None), (" KILL", None, Some(9))]
    {
        let mut client = Client::ready(&[]);
        client.start_prompt(&format!("stderr last words\nburst 3 then die{how}"));
        let status = client.exit();
        assert_eq!((status.code(), status.signal()), (code, signal));
        assert_eq!(client.rest().len(), 3, "earlier output is not lost");
        assert_eq!(client.stderr(), "last words\n");
    }
}

#[test]
fn agent_can_die_at_every_step() {
    let cases = [
        ("initialize", 0),
        ("new", 1),
        ("prompt", 2),
        ("prompt-start", 2),
        ("after-update", 3),
        ("before-answer", 5),
        ("cancel", 5),
        ("load", 6),
    ];
    for (step, lines) in cases {
        let mut read = 0;
        let mut client = Client::start(&["--die-at", step, "--die-with", "9", "--same-session-id"]);
        client.send_request("initialize", &json!({"protocolVersion": 1}));
        client.send_request("session/new", &json!({"cwd": "/", "mcpServers": []}));
        "same".clone_into(&mut client.session);
        client.start_prompt(if step == "cancel" { "burst 3 then hang" } else { "burst 3" });
        if step == "cancel" || step == "load" {
            // Output that is still buffered may be lost.
            read = (0..lines).map(|_| client.line()).count();
            client.cancel();
            client.send_request(
                "session/load",
                &json!({"sessionId": "same", "cwd": "/", "mcpServers": []}),
            );
        }
        assert_eq!(client.exit().code(), Some(9), "{step}");
        assert_eq!(read + client.rest().len(), lines, "{step}");
    }
}

#[test]
fn it_can_die_only_once() {
    let state = tempfile::tempdir().unwrap();
    let flags = ["--die-at", "prompt-start", "--die-once"];
    let mut client = Client::with_state(state.path(), &flags);
    client.open("/");
    client.start_prompt("first");
    assert_eq!(client.exit().code(), Some(1));
    let session = client.session.clone();
    let mut client = Client::with_state(state.path(), &flags);
    client.call("session/resume", &json!({"sessionId": session, "cwd": "/"}));
    client.session = session;
    assert_eq!(client.prompt("history").texts(), ["history: first"]);
}

#[test]
fn cancel_has_six_outcomes() {
    let outcome = |how: &str| {
        let mut client = Client::ready(&["--cancel", how]);
        let id = client.start_prompt("count then wait 50 then count then hang");
        client.frame();
        client.cancel();
        (client, id)
    };
    let (mut client, id) = outcome("honour");
    let turn = client.rest_of_turn(id, |_| None);
    assert_eq!((turn.stop_reason(), turn.frames.len()), ("cancelled", 0));
    assert_eq!(client.prompt("count").texts(), ["count 2"]);

    let (mut client, id) = outcome("error");
    assert_eq!(client.rest_of_turn(id, |_| None).answer["error"]["code"], -32603);

    let (mut client, _) = outcome("die");
    assert_eq!(client.exit().code(), Some(1));

    let (mut client, id) = outcome("drain");
    let turn = client.rest_of_turn(id, |_| None);
    assert_eq!((turn.stop_reason(), turn.frames.len()), ("cancelled", 10));

    let (mut client, id) = outcome("keep-streaming");
    assert_eq!(client.rest_of_turn(id, |_| None).stop_reason(), "cancelled");
    assert_eq!(client.frame()["params"]["update"]["content"]["text"], "count 1");

    let (mut client, id) = outcome("ignore");
    assert_eq!(client.frame()["params"]["update"]["content"]["text"], "count 1");
    client.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(client.rest_of_turn(id, |_| None).answer["error"]["code"], -32800);
}

#[test]
fn cancel_request_can_be_ignored() {
    let mut client = Client::ready(&["--cancel", "ignore", "--cancel-request-ignored"]);
    let id = client.start_prompt("hang");
    client.cancel();
    client.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(client.call("_fake/echo", &json!(1))["result"], 1);
}

#[test]
fn agent_can_ignore_eof_and_sigterm_but_not_sigkill() {
    let mut client = Client::ready(&["--ignore-term", "--ignore-eof"]);
    let pid = client.child.id();
    assert_eq!(client.prompt("pid").texts(), [format!("pid {pid}")]);
    kill_process(pid_of(pid), Signal::TERM).unwrap();
    kill_process(pid_of(pid), Signal::INT).unwrap();
    assert_eq!(client.prompt("count").texts(), ["count 2"]);
    let id = client.start_prompt("slow 3 10");
    client.close_stdin();
    assert_eq!(client.rest_of_turn(id, |_| None).texts().len(), 3, "it works on without stdin");
    assert!(is_alive(pid));
    kill_process(pid_of(pid), Signal::KILL).unwrap();
    assert_eq!(client.exit().signal(), Some(9));
}

#[test]
fn agent_can_execute_itself_again_or_run_as_its_own_child() {
    let mut client = Client::ready(&["--reexec"]);
    let pid = client.child.id();
    let turn = client.prompt("pid then env FAKE_AGENT_REEXECED");
    assert_eq!(turn.texts(), [format!("pid {pid}"), "FAKE_AGENT_REEXECED=1".to_owned()]);

    let mut client = Client::ready(&["--relaunch"]);
    let turn = client.prompt("pid");
    assert_ne!(turn.texts(), [format!("pid {}", client.child.id())]);
    client.start_prompt("die 7");
    assert_eq!(client.exit().code(), Some(7));
}

#[test]
fn spawned_orphan_survives_the_agent_and_sigterm() {
    let mut client = Client::ready(&["--marker", "spawn-test"]);
    let turn = client.prompt("spawn");
    let orphan = turn.texts()[0].strip_prefix("spawned ").unwrap().parse().unwrap();
    let orphan = Orphan(orphan);
    let stat = fs::read_to_string(format!("/proc/{}/stat", orphan.0)).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!(fields[3], orphan.0.to_string(), "it leads a session of its own");
    let environment = fs::read_to_string(format!("/proc/{}/environ", orphan.0)).unwrap();
    assert!(environment.contains(&format!("FAKE_AGENT_ORPHAN={}", client.child.id())));
    client.close_stdin();
    assert!(client.exit().success());
    assert!(client.rest().is_empty(), "stdout ends although the orphan lives");
    kill_process(pid_of(orphan.0), Signal::TERM).unwrap();
    assert_eq!(marked("spawn-test"), [orphan.0]);
    let pid = orphan.0;
    drop(orphan);
    wait_until("the orphan is gone", || !is_alive(pid));
}

#[test]
fn orphan_can_keep_stdout_or_stderr_open() {
    for (flag, holds_stdout) in
        [("--grandchild-holds-stdout", true), ("--grandchild-holds-stderr", false)]
    {
        // A unique marker, because other tests start agents with this flag, too.
        let mark = format!("orphan-{}-{holds_stdout}", std::process::id());
        let mut client = Client::initialized(&[flag, "--grandchild-clean-env", "--marker", &mark]);
        let agent = client.child.id();
        let orphan = marked(&mark).into_iter().find(|it| *it != agent).expect("an orphan");
        let orphan = Orphan(orphan);
        let environment = fs::read_to_string(format!("/proc/{}/environ", orphan.0)).unwrap();
        assert!(!environment.contains("FAKE"), "{environment:?}");
        client.close_stdin();
        assert!(client.exit().success());
        if holds_stdout {
            assert_eq!(client.stderr(), "");
            assert!(!client.stdout_ended());
        } else {
            assert!(client.rest().is_empty());
        }
        drop(orphan);
        wait_until("stdout ends", || client.stdout_ended());
        if !holds_stdout {
            assert_eq!(client.stderr(), "");
        }
    }
}

#[test]
fn stderr_can_be_flooded() {
    let mut client = Client::ready(&["--stderr-flood", "1000000"]);
    client.prompt("stderr-flood 1000001");
    client.close_stdin();
    assert_eq!(client.stderr().len(), 2_000_001);
}

#[test]
fn invalid_flags_are_refused_and_help_prints_the_manual() {
    for flags in [&["--nonsense"][..], &["--load", "nonsense"], &["--delay", "new"]] {
        let mut client = Client::start(flags);
        assert_eq!(client.exit().code(), Some(2));
        assert!(client.stderr().contains("fake-agent: "));
    }
    let mut client = Client::start(&["--help"]);
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fake_agent/manual.md");
    assert_eq!(client.rest().concat(), fs::read(manual).unwrap());
}
