//! What a client may ask of an adapter, whatever the program behind it.

use jackfield_adapt::{Adapter, Memory, Note, Output, Settings, dialect};
use jackfield_agents::Exit;
use jackfield_catalogue::Catalogue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
struct Notes(BTreeMap<String, Note>);

impl Memory for Notes {
    fn new_id(&mut self) -> String {
        format!("s{}", self.0.len() + 1)
    }

    fn remember(&mut self, session: &str, note: &Note) {
        self.0.insert(session.to_owned(), note.clone());
    }

    fn recall(&mut self, session: &str) -> Option<Note> {
        self.0.get(session).cloned()
    }
}

struct World {
    adapter: Adapter,
    notes: Notes,
}

impl World {
    fn new(agent: &str, name: &str) -> World {
        let catalogue = Catalogue::builtin();
        let spec = catalogue.get(agent).unwrap().clone();
        let speaks = |it: &&jackfield_catalogue::Variant| it.dialect.as_deref() == Some(name);
        let variant = spec.launch.iter().find(speaks).unwrap().clone();
        let (flags, models) = (vec![false; variant.flags.len()], Vec::new());
        let settings = Settings { spec, variant, flags, models, scratch: "/run/a".to_owned() };
        let adapter = Adapter::new(settings, dialect(name).unwrap());
        let mut world = World { adapter, notes: Notes::default() };
        world.ask("session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
        world
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.adapter.take_output()).collect()
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) -> Vec<Output> {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.adapter.on_client(&frame, &mut self.notes);
        self.outputs()
    }

    /// What is answered at once.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let outputs = self.send(0, method, params);
        answers(&outputs, 0).pop().unwrap_or_default()
    }

    fn prompt(&mut self, id: u64) -> Vec<Output> {
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        self.send(id, "session/prompt", &json!({ "sessionId": "s1", "prompt": prompt }))
    }

    fn line(&mut self, program: u64, line: &str) -> Vec<Output> {
        self.adapter.on_line(program, line, &mut self.notes);
        self.outputs()
    }

    fn end(&mut self, program: u64) -> Vec<Output> {
        let exit = Exit { code: Some(0), ..Exit::default() };
        self.adapter.on_end(program, &exit, &mut self.notes);
        self.outputs()
    }
}

fn answers(outputs: &[Output], id: u64) -> Vec<Value> {
    let frames = outputs.iter().filter_map(|it| match it {
        Output::ToClient(frame) if frame["id"] == id && frame.get("method").is_none() => {
            Some(frame)
        }
        _ => None,
    });
    frames.cloned().collect()
}

/// A program, its arguments and its files.
type Started = (u64, Vec<String>, Vec<(String, String)>);

fn started(outputs: &[Output]) -> Option<Started> {
    outputs.iter().find_map(|it| match it {
        Output::Start { program, argv, files, .. } => Some((*program, argv.clone(), files.clone())),
        _ => None,
    })
}

const DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
fn a_turn_waits_until_the_program_before_it_has_ended() {
    let mut world = World::new("codex", "codex");
    let (first, argv, _) = started(&world.prompt(1)).unwrap();
    assert_eq!(argv[0], "exec");
    world.line(first, r#"{"type":"thread.started","thread_id":"t-7"}"#);
    let over = world.line(first, DONE);
    assert_eq!(answers(&over, 1)[0]["result"]["stopReason"], "end_turn");
    assert!(over.contains(&Output::Finish { program: first }));
    assert_eq!(started(&world.prompt(2)), None, "two of them would write the same session");
    let (second, argv, _) = started(&world.end(first)).unwrap();
    assert!(second != first && argv.contains(&"t-7".to_owned()), "{argv:?}");
}

#[test]
fn a_prompt_that_still_waits_is_cancelled_without_a_program() {
    let mut world = World::new("codex", "codex");
    let (first, _, _) = started(&world.prompt(1)).unwrap();
    world.line(first, DONE);
    world.prompt(2);
    let cancel = json!({ "method": "session/cancel", "params": { "sessionId": "s1" } });
    world.adapter.on_client(&cancel, &mut world.notes);
    let outputs = world.outputs();
    assert_eq!(answers(&outputs, 2)[0]["result"]["stopReason"], "cancelled");
    assert_eq!(started(&world.end(first)), None);
}

#[test]
fn a_session_that_is_closed_in_mid_turn_answers_and_ends_its_program() {
    let mut world = World::new("codex", "codex");
    let (program, _, _) = started(&world.prompt(1)).unwrap();
    let outputs = world.send(2, "session/close", &json!({ "sessionId": "s1" }));
    assert_eq!(answers(&outputs, 1)[0]["result"]["stopReason"], "cancelled");
    assert!(outputs.contains(&Output::Stop { program }));
    assert!(world.line(program, DONE).is_empty(), "nobody listens any more");
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason() {
    let mut world = World::new("codex", "codex");
    let prompt = |session: &str, block: Value| json!({ "sessionId": session, "prompt": [block] });
    let text = json!({ "type": "text", "text": "x" });
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "AA==" });
    let server = json!({ "name": "a", "command": "/a", "args": [], "env": [] });
    let refused = [
        ("session/prompt", prompt("s9", text), -32002, "no session `s9`"),
        ("session/prompt", prompt("s1", image), -32602, "no `image`"),
        ("session/resume", json!({ "sessionId": "s9", "cwd": "/w" }), -32002, "no session `s9`"),
        ("session/set_mode", json!({ "sessionId": "s1", "modeId": "x" }), -32602, "no mode `x`"),
        ("session/new", json!({ "cwd": "/w", "mcpServers": [server] }), -32602, "no MCP servers"),
        ("session/fork", json!({}), -32601, "`session/fork`"),
        (
            "session/set_config_option",
            json!({ "sessionId": "s1", "configId": "reasoning", "value": "--x" }),
            -32602,
            "--x",
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": "s1", "configId": "model", "value": "-rf" }),
            -32602,
            "-rf",
        ),
    ];
    for (method, params, code, why) in refused {
        let error = world.ask(method, &params)["error"].clone();
        assert_eq!(error["code"], code, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{method}: {error}");
    }
    world.prompt(1);
    let second = world.prompt(2);
    assert_eq!(answers(&second, 2)[0]["error"]["code"], -32600, "one turn at a time");
}

#[test]
fn a_later_adapter_resumes_with_the_settings_of_the_session() {
    let mut world = World::new("codex", "codex");
    let (program, _, _) = started(&world.prompt(1)).unwrap();
    world.line(program, r#"{"type":"thread.started","thread_id":"t-7"}"#);
    world.ask("session/set_mode", &json!({ "sessionId": "s1", "modeId": "read-only" }));
    let notes = std::mem::take(&mut world.notes);

    let mut later = World::new("codex", "codex");
    later.notes = notes;
    let resumed = later.ask("session/resume", &json!({ "sessionId": "s1", "cwd": "/w" }));
    assert_eq!(resumed["result"]["modes"]["currentModeId"], "read-only");
    let (_, argv, _) = started(&later.prompt(1)).unwrap();
    assert!(argv.contains(&"t-7".to_owned()), "{argv:?}");
    assert!(argv.contains(&"sandbox_mode=\"read-only\"".to_owned()), "{argv:?}");
}

#[test]
fn the_keys_of_mcp_servers_are_in_a_file_and_not_among_the_arguments() {
    let mut world = World::new("claude", "claude");
    let env = json!([{ "name": "KEY", "value": "hunter2" }]);
    let server = json!({ "name": "a", "command": "/a", "args": [], "env": env });
    world.ask("session/new", &json!({ "cwd": "/w", "mcpServers": [server] }));
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    let outputs = world.send(1, "session/prompt", &json!({ "sessionId": "s2", "prompt": prompt }));
    let (_, argv, files) = started(&outputs).unwrap();
    assert!(files[0].1.contains("hunter2") && files[0].0.starts_with("/run/a/"), "{files:?}");
    assert!(argv.contains(&files[0].0) && !argv.iter().any(|it| it.contains("hunter2")));
}
