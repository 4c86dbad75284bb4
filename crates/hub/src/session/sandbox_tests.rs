//! The sandbox profile of a session: chosen by a client, stored in the log, kept when the agent is started again.

use crate::{ConnId, Exit, Input, Launch, Output, PolicySet, SandboxRequest, test_hub::TestHub};
use jackfield_events::{
    ConnectionRefused, EventBody, EventKind, RawJson, SandboxApplied, SessionSummary,
};
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::{collections::VecDeque, path::PathBuf, sync::Arc};

const CLIENT: ConnId = ConnId(1);

fn applied(profile: Arc<str>) -> Arc<SandboxApplied> {
    Arc::new(SandboxApplied { profile, hosts: Vec::new(), plan: RawJson::null() })
}

/// A hub whose client has sent these parameters of `_jackfield/connect`, besides the agent.
fn connect(options: &Value) -> TestHub {
    let mut hub = TestHub::with_sessions(&[], 0);
    connect_to(&mut hub, "/w", options);
    send(&mut hub, "initialize", &json!({ "protocolVersion": 1 }));
    hub
}

fn connect_to(hub: &mut TestHub, cwd: &str, options: &Value) {
    hub.feed_input(Input::ClientOpened { conn: CLIENT, peer: None });
    let mut params = json!({ "agent": { "name": "fake", "argv": ["fake"] }, "cwd": cwd });
    params.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    hub.answer(CLIENT, "_jackfield/connect", &params);
}

/// Sends a request. Each process reports the profile that it was started with, and answers. Returns the starts and the
/// stored events.
fn send(hub: &mut TestHub, method: &str, params: &Value) -> (Vec<Launch>, Vec<EventBody>) {
    let (mut starts, mut events) = (Vec::new(), Vec::new());
    let mut outputs = VecDeque::from(hub.send_request(CLIENT, method, params));
    while let Some(output) = outputs.pop_front() {
        let input = match output {
            Output::Spawn { agent, launch } => {
                let profile = launch.sandbox.profile.clone().unwrap_or_else(|| "workspace".into());
                starts.push(launch);
                Input::AgentSandboxed { agent, sandbox: applied(profile) }
            }
            Output::ToAgent { agent, text } => {
                let request: Value = serde_json::from_slice(&text).unwrap();
                let result = json!({ "protocolVersion": 1, "sessionId": "a1" });
                let answer = json!({ "id": request["id"], "result": result });
                Input::AgentSpoke { agent, frame: Frame::parse_str(&answer.to_string()).unwrap() }
            }
            Output::StopAgent { agent, .. } => {
                Input::AgentGone { agent, exit: Exit::with_status("stopped".to_owned()) }
            }
            Output::Append { event, .. } => {
                events.push(event.body);
                continue;
            }
            _ => continue,
        };
        outputs.extend(hub.feed_input(input));
    }
    (starts, events)
}

fn open(hub: &mut TestHub, directories: &Value, meta: &Value) -> (Launch, Option<Arc<str>>) {
    let params = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": directories,
        "_meta": { "jackfield": meta } });
    let (starts, events) = send(hub, "session/new", &params);
    let opened = events.into_iter().find_map(|it| match it {
        EventBody::Opened(opened) => Some(opened),
        _ => None,
    });
    let launch = starts.into_iter().next_back().expect("a process was started for the session");
    (launch, opened.expect("the session was opened").sandbox)
}

#[test]
fn profile_of_the_connection_and_all_directories_reach_the_start_and_the_log() {
    let mut hub = connect(&json!({ "sandbox": "workspace" }));
    let (launch, logged) = open(&mut hub, &json!(["/more"]), &json!({}));
    let directories = vec![PathBuf::from("/more")];
    assert_eq!(launch.sandbox, SandboxRequest { profile: Some("workspace".into()), directories });
    assert_eq!(logged.as_deref(), Some("workspace"));
}

#[test]
fn profile_of_the_project_applies_unless_a_client_chooses_one() {
    let text = "sandbox = \"read-only\"\n";
    let policy = jackfield_policy::parse_project_policy(text, ".jackfield.toml").unwrap();
    for (cwd, options, expected) in [
        ("/w", json!({}), Some("read-only")),
        ("/w", json!({ "sandbox": "workspace" }), Some("workspace")),
        ("/elsewhere", json!({}), None),
    ] {
        let mut hub = TestHub::with_sessions(&[], 0);
        let projects = [(PathBuf::from("/w"), policy.clone())].into();
        let policies = PolicySet { projects, ..PolicySet::default() };
        hub.feed_input(Input::PolicyChanged { policies: Arc::new(policies) });
        connect_to(&mut hub, cwd, &options);
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        let (starts, _) = send(&mut hub, "initialize", &json!({ "protocolVersion": 1 }));
        let (later, _) = send(&mut hub, "session/new", &params);
        let launch = starts.into_iter().chain(later).next_back().expect("a process was started");
        assert_eq!(launch.sandbox.profile.as_deref(), expected, "{cwd} {options}");
    }
}

#[test]
fn sandbox_and_refused_connections_are_in_the_log_of_the_session() {
    let mut hub = connect(&json!({ "sandbox": "workspace" }));
    let params = json!({ "cwd": "/w", "mcpServers": [] });
    let (_, events) = send(&mut hub, "session/new", &params);
    let kinds = events.iter().map(EventBody::kind).collect::<Vec<_>>();
    assert_eq!(kinds, [EventKind::Opened, EventKind::Sandboxed]);
    let refused = ConnectionRefused {
        host: "pypi.org".into(),
        port: Some(443),
        why: "the user refused it".into(),
        way_out: "work without it".into(),
    };
    let agent = crate::AgentId(1);
    let outputs = hub.feed_input(Input::ConnectionRefused { agent, refused: refused.clone() });
    let appended = outputs.into_iter().find_map(|it| match it {
        Output::Append { event, .. } => Some(event.body),
        _ => None,
    });
    assert_eq!(appended, Some(EventBody::HostRefused(refused)));
}

#[test]
fn profile_of_the_request_wins_over_that_of_the_connection() {
    let mut hub = connect(&json!({ "sandbox": "workspace" }));
    let (launch, logged) = open(&mut hub, &json!([]), &json!({ "sandbox": "read-only" }));
    assert_eq!(launch.sandbox.profile.as_deref(), Some("read-only"));
    assert_eq!(logged.as_deref(), Some("read-only"));
}

#[test]
fn process_that_is_already_there_serves_a_session_with_the_same_sandbox_only() {
    for (directories, is_started) in [(json!([]), false), (json!(["/more"]), true)] {
        let mut hub = connect(&json!({}));
        let params = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": directories });
        let (starts, _) = send(&mut hub, "session/new", &params);
        assert_eq!(!starts.is_empty(), is_started, "{directories}");
    }
}

#[test]
fn restored_session_keeps_its_profile_until_a_client_chooses_another() {
    let prompt = json!({ "sessionId": "s-1", "prompt": [] });
    for (options, expected) in
        [(json!({}), "workspace"), (json!({ "sandbox": "read-only" }), "read-only")]
    {
        let mut hub = connect(&options);
        let summary = SessionSummary {
            seq: 3,
            agent: "fake".into(),
            cwd: "/other".into(),
            sandbox: Some("workspace".into()),
            ..SessionSummary::default()
        };
        hub.feed_input(Input::Adopted {
            session: "s-1".into(),
            state: Box::new(summary),
            from: None,
        });
        let resume = json!({ "sessionId": "s-1", "cwd": "/w", "mcpServers": [] });
        send(&mut hub, "session/resume", &resume);
        let (starts, _) = send(&mut hub, "session/prompt", &prompt);
        let launch = starts.last().expect("a process was started");
        assert_eq!(launch.sandbox.profile.as_deref(), Some(expected));
    }
}

#[test]
fn client_does_not_serve_files_and_terminals_of_a_sandboxed_agent() {
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true });
    for (options, is_sandboxed) in [(json!({}), false), (json!({ "sandbox": "workspace" }), true)] {
        let mut hub = TestHub::with_sessions(&[], 0);
        hub.feed_input(Input::ClientOpened { conn: CLIENT, peer: None });
        let agent = json!({ "name": "fake", "argv": ["fake"] });
        let mut params = json!({ "agent": agent, "cwd": "/w" });
        params.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        hub.answer(CLIENT, "_jackfield/connect", &params);
        let initialize = json!({ "protocolVersion": 1, "clientCapabilities": offers });
        let outputs = hub.send_request(CLIENT, "initialize", &initialize);
        let agent = outputs.iter().find_map(|it| match it {
            Output::Spawn { agent, .. } => Some(*agent),
            _ => None,
        });
        let agent = agent.expect("a process was started");
        if is_sandboxed {
            hub.feed_input(Input::AgentSandboxed { agent, sandbox: applied("workspace".into()) });
        }
        let answer = |hub: &mut TestHub, text: &str| {
            let frame = Frame::parse_str(text).unwrap();
            hub.feed_input(Input::AgentSpoke { agent, frame })
        };
        answer(&mut hub, r#"{"id":1,"result":{"protocolVersion":1}}"#);
        hub.send_request(CLIENT, "session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
        answer(&mut hub, r#"{"id":2,"result":{"sessionId":"a1"}}"#);
        let requests = [
            r#"{"id":7,"method":"fs/read_text_file","params":{"sessionId":"a1","path":"/w/x"}}"#,
            r#"{"id":8,"method":"terminal/create","params":{"sessionId":"a1","command":"ls"}}"#,
        ];
        for request in requests {
            let outputs = answer(&mut hub, request);
            let is_served = outputs.iter().any(|it| matches!(it, Output::Serve { .. }));
            assert_eq!(is_served, is_sandboxed, "{request}: {outputs:?}");
        }
    }
}

#[test]
fn permanent_answer_about_a_host_reaches_the_proxy_and_adds_no_rule() {
    let mut hub = connect(&json!({ "sandbox": "workspace" }));
    send(&mut hub, "session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
    let option = |kind: &str| json!({ "optionId": kind, "name": kind, "kind": kind });
    let params = json!({
        "sessionId": "a1",
        "toolCall": { "toolCallId": "host", "title": "Connect", "kind": "fetch" },
        "options": [option("allow_once"), option("allow_always"), option("reject_once")],
    });
    let request = Frame::request("\"host\"", "session/request_permission", &params.to_string());
    let mut outputs =
        VecDeque::from(hub.feed_input(Input::HostAsked { agent: crate::AgentId(1), request }));
    let (mut answer, mut events) = (None, Vec::new());
    while let Some(output) = outputs.pop_front() {
        match output {
            Output::ToClient { conn, text } => {
                let message: Value = serde_json::from_slice(&text).unwrap();
                if message["method"] == "session/request_permission" {
                    let outcome = json!({ "outcome": "selected", "optionId": "allow_always" });
                    let reply = json!({ "id": message["id"], "result": { "outcome": outcome } });
                    let frame = Frame::parse_str(&reply.to_string()).unwrap();
                    outputs.extend(hub.feed_input(Input::ClientSpoke { conn, frame }));
                }
            }
            Output::ToAgent { text, .. } => answer = Frame::parse(text).ok(),
            Output::Append { event, .. } => {
                if let EventBody::Asked(asked) = &event.body {
                    let facts = asked.call.as_ref().unwrap().as_str();
                    assert!(facts.contains("jackfield sandbox forget"), "{facts}");
                }
                events.push(event.body.kind());
            }
            _ => {}
        }
    }
    let answer = answer.expect("the proxy got an answer");
    assert_eq!(answer.id(), Some("\"host\""));
    assert!(answer.result().unwrap().contains("allow_always"), "{answer:?}");
    assert_eq!(events, [EventKind::Asked, EventKind::Answered]);
}
