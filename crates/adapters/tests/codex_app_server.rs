//! Plays recordings of `codex app-server`: whenever the adapter writes the next message of the
//! recorded client, it receives the response of the recorded program.

use crate::support::{MemoryStore, new_adapter};
use crate::transcripts::{player::PlaybackResult, properties, recording::Recording};
use jackfield_adapters::{Adapter, AdapterOutput, ProgramId, SessionRecord};
use jackfield_agents::AgentExit;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// One line of the recording.
struct RecordedLine {
    is_client: bool,
    message: Value,
}

fn read_recording(case: &str) -> Vec<RecordedLine> {
    let text = read_file(&format!("{case}.jsonl"));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages = lines.filter(|line| line["msg"].is_object());
    messages
        .map(|line| RecordedLine {
            is_client: line["dir"] == "client",
            message: line["msg"].clone(),
        })
        // The adapter does not send the later requests about models and threads.
        .take_while(|it| it.message["method"] != "thread/list")
        .collect()
}

fn read_file(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/codex/0.166.0/");
    std::fs::read_to_string(format!("{folder}{file}")).unwrap()
}

struct AppServerPlayer {
    adapter: Adapter,
    store: MemoryStore,
    recording: VecDeque<RecordedLine>,
    /// The adapter's request id for each request id of the recorded client.
    ids: BTreeMap<u64, Value>,
    /// Messages of the program that the adapter has not received yet.
    incoming: VecDeque<Value>,
    program: Option<ProgramId>,
    played: PlaybackResult,
}

impl AppServerPlayer {
    fn new(case: &str, store: MemoryStore) -> AppServerPlayer {
        AppServerPlayer {
            adapter: new_adapter("codex", "codex-app-server"),
            store,
            recording: read_recording(case).into(),
            ids: BTreeMap::new(),
            incoming: VecDeque::new(),
            program: None,
            played: PlaybackResult::default(),
        }
    }

    fn send(&mut self, method: &str, params: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.adapter.on_client_frame(&frame, &mut self.store);
        self.apply_outputs();
    }

    /// Prompts and cancels as the recorded client did, until the end of the recording.
    fn play(&mut self) {
        while let Some(next) = self.next_client_message() {
            let before = self.recording.len();
            match next["method"].as_str().unwrap() {
                "turn/interrupt" => {
                    let params = json!({"sessionId": "session-1"});
                    let frame =
                        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
                    self.adapter.on_client_frame(&frame, &mut self.store);
                    self.apply_outputs();
                }
                // The first prompt also starts the program and opens the thread.
                _ => self.prompt(),
            }
            assert!(self.recording.len() < before, "the adapter never wrote {next}");
        }
        let stderr_tail = read_file("app-server-main.stderr");
        let exit = AgentExit { code: Some(0), stderr_tail, ..AgentExit::default() };
        self.adapter.on_exit(self.program.unwrap(), &exit, &mut self.store);
        self.apply_outputs();
    }

    fn next_client_message(&self) -> Option<Value> {
        self.recording.iter().find(|it| it.is_client).map(|it| it.message.clone())
    }

    fn prompt(&mut self) {
        self.played.prompts += 1;
        let next = self.recording.iter().find(|it| it.message["method"] == "turn/start").unwrap();
        let text = next.message["params"]["input"][0]["text"].clone();
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": "session-1", "prompt": prompt}));
    }

    fn apply_outputs(&mut self) {
        loop {
            if let Some(output) = self.adapter.take_output() {
                self.on_output(output);
            } else if let Some(message) = self.incoming.pop_front() {
                let program = self.program.unwrap();
                self.adapter.on_line(program, &message.to_string(), &mut self.store);
            } else {
                return;
            }
        }
    }

    fn on_output(&mut self, output: AdapterOutput) {
        match output {
            AdapterOutput::SendToClient(frame) => {
                self.played.frames.push(("client", frame.clone()));
                if frame["method"] == "session/request_permission" {
                    self.allow(&frame);
                }
            }
            AdapterOutput::StartProgram { program, argv, .. } => {
                self.program = Some(program);
                self.played.frames.push(("start", json!(argv)));
            }
            AdapterOutput::WriteStdin { line, .. } => {
                self.on_write(serde_json::from_str(&line).unwrap());
            }
            AdapterOutput::CloseStdin { .. }
            | AdapterOutput::MarkTurnStart { .. }
            | AdapterOutput::StopTools { .. }
            | AdapterOutput::FinishProgram { .. }
            | AdapterOutput::StopProgram { .. } => {}
        }
    }

    fn allow(&mut self, request: &Value) {
        let options = request["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|it| it["kind"] == "allow_once").unwrap();
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        let frame = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}});
        self.adapter.on_client_frame(&frame, &mut self.store);
    }

    /// Checks that the adapter writes the message of the recorded client, and continues the
    /// program.
    fn on_write(&mut self, written: Value) {
        while self.recording.front().is_some_and(|it| !it.is_client) {
            // Messages of the program that are not responses.
            self.receive_next();
        }
        let recorded = self.recording.pop_front().unwrap().message;
        assert_eq!(written["method"], recorded["method"], "{written}");
        assert_eq!(written["result"], recorded["result"], "{written}");
        for key in ["threadId", "turnId", "input", "cwd"] {
            if !recorded["params"][key].is_null() {
                assert_eq!(written["params"][key], recorded["params"][key], "{written}");
            }
        }
        if recorded["method"].is_string()
            && let Some(id) = recorded["id"].as_u64()
        {
            self.ids.insert(id, written["id"].clone());
        }
        self.played.frames.push(("stdin", written));
        while self.recording.front().is_some_and(|it| !it.is_client) {
            self.receive_next();
        }
    }

    fn receive_next(&mut self) {
        let mut message = self.recording.pop_front().unwrap().message;
        if message["method"].is_null() {
            message["id"] = self.ids[&message["id"].as_u64().unwrap()].clone();
        }
        self.incoming.push_back(message);
    }
}

fn check_playback(case: &str, player: &AppServerPlayer) {
    // Only the notifications of these turns: the response to `thread/resume` may repeat older
    // turns.
    let notifications = read_recording(case).into_iter().map(|it| it.message);
    let notifications =
        notifications.filter(|it| it["method"].is_string()).map(|it| it.to_string());
    let stdout = notifications.collect::<Vec<_>>().join("\n").into_bytes();
    let (cli, case) = ("codex".to_owned(), case.to_owned());
    let recording =
        Recording { cli, case, stdout, exit: AgentExit::default(), prompt: String::new() };
    properties::check_properties(&recording, &player.played);
    let mut report = String::new();
    // The catalog determines argv and the list of modes, which this test does not cover.
    let is_relevant =
        |frame: &Value| frame["id"] != "session/new" && frame["id"] != "session/resume";
    for (channel, frame) in
        player.played.frames.iter().filter(|(channel, it)| *channel != "start" && is_relevant(it))
    {
        writeln!(report, "{channel} {frame}").unwrap();
    }
    insta::assert_snapshot!(format!("codex-{}", recording.case), report);
}

fn prompt_responses(player: &AppServerPlayer) -> Vec<&Value> {
    let frames = player.played.frames.iter().map(|(_, frame)| frame);
    frames.filter(|frame| frame["id"] == "session/prompt").collect()
}

#[test]
fn session_with_tools_approvals_an_error_and_an_interrupt_is_replayed() {
    let mut player = AppServerPlayer::new("app-server-main", MemoryStore::default());
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.send("session/set_mode", &json!({"sessionId": "session-1", "modeId": "ask"}));
    player.play();
    check_playback("app-server-main", &player);
    let responses = prompt_responses(&player);
    let ends: Vec<&Value> = responses.iter().map(|it| &it["result"]["stopReason"]).collect();
    let (end, none) = (json!("end_turn"), Value::Null);
    assert_eq!(ends, [&end, &end, &end, &end, &none, &end, &json!("cancelled")]);
    assert_eq!(responses[1]["result"]["usage"]["totalTokens"], 248, "two requests of the turn");
    assert_eq!(responses[4]["error"]["data"]["status"], 401);
    let thread = player.store.records["session-1"].agent_session_id.as_deref();
    assert_eq!(thread, Some("01a1dc8f-f939-7252-b252-d0715381d7d5"));
}

#[test]
fn session_that_creates_and_moves_files_is_replayed() {
    let mut player = AppServerPlayer::new("app-server-patch", MemoryStore::default());
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.send("session/set_mode", &json!({"sessionId": "session-1", "modeId": "ask"}));
    player.play();
    check_playback("app-server-patch", &player);
    let requests = player.played.frames.iter().map(|(_, frame)| &frame["params"]["toolCall"]);
    let requests: Vec<&Value> = requests.filter(|it| it.is_object()).collect();
    let titles: Vec<&Value> = requests.iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["Create new.txt", "Move new.txt to moved.txt"]);
    assert_eq!(requests[1]["content"][0]["newText"], "one\nTWO\nthree\n");
}

#[test]
fn resumed_session_is_replayed() {
    let agent_session_id = Some("01a1dc8f-f939-7252-b252-d0715381d7d5".to_owned());
    let record = SessionRecord {
        agent_session_id,
        cwd: "/user/project".to_owned(),
        ..SessionRecord::default()
    };
    let store = MemoryStore { records: BTreeMap::from([("session-1".to_owned(), record)]) };
    let mut player = AppServerPlayer::new("app-server-resume", store);
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/resume", &json!({"sessionId": "session-1", "cwd": "/user/project"}));
    player.play();
    check_playback("app-server-resume", &player);
    let responses = prompt_responses(&player);
    assert_eq!(responses[0]["result"]["usage"]["totalTokens"], 125, "only this turn");
}
