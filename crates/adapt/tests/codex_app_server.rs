//! What `codex app-server` said, played back: whenever the adapter writes what the recorded client
//! wrote, it hears what the recorded program answered.

use crate::transcripts::{fixture::Fixture, player::Played, promises};
use jackfield_adapt::{Adapter, Memory, Note, Output, Program, Settings, dialect};
use jackfield_agents::Exit;
use jackfield_catalogue::Catalogue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// One line of the recording.
struct Entry {
    is_client: bool,
    message: Value,
}

fn recording(case: &str) -> Vec<Entry> {
    let text = read(&format!("{case}.jsonl"));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages = lines.filter(|line| line["msg"].is_object());
    messages
        .map(|line| Entry { is_client: line["dir"] == "client", message: line["msg"].clone() })
        // What the recorded client asked about models and threads is not the adapter's business.
        .take_while(|entry| entry.message["method"] != "thread/list")
        .collect()
}

fn read(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/codex/0.166.0/");
    std::fs::read_to_string(format!("{folder}{file}")).unwrap()
}

#[derive(Default)]
struct Notes {
    notes: BTreeMap<String, Note>,
}

impl Memory for Notes {
    fn new_id(&mut self) -> String {
        "session-1".to_owned()
    }

    fn remember(&mut self, session: &str, note: &Note) {
        self.notes.insert(session.to_owned(), note.clone());
    }

    fn recall(&mut self, session: &str) -> Option<Note> {
        self.notes.get(session).cloned()
    }
}

struct Player {
    adapter: Adapter,
    notes: Notes,
    recording: VecDeque<Entry>,
    /// The adapter's id for each of the recorded client's.
    ids: BTreeMap<u64, Value>,
    inbox: VecDeque<Value>,
    program: Option<Program>,
    played: Played,
}

impl Player {
    fn new(case: &str, notes: Notes) -> Player {
        let catalogue = Catalogue::builtin();
        let spec = catalogue.get("codex").unwrap();
        let speaks =
            |it: &&jackfield_catalogue::Variant| it.dialect.as_deref() == Some("codex-app-server");
        let variant = spec.launch.iter().find(speaks).unwrap().clone();
        let settings = Settings {
            spec: spec.clone(),
            flags: vec![true; variant.flags.len()],
            variant,
            models: Vec::new(),
            scratch: "/scratch".to_owned(),
        };
        Player {
            adapter: Adapter::new(settings, dialect("codex-app-server").unwrap()),
            notes,
            recording: recording(case).into(),
            ids: BTreeMap::new(),
            inbox: VecDeque::new(),
            program: None,
            played: Played::default(),
        }
    }

    fn send(&mut self, method: &str, params: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.adapter.on_client(&frame, &mut self.notes);
        self.settle();
    }

    /// Prompts and cancels as the recorded client did, until the recording is over.
    fn play(&mut self) {
        while let Some(next) = self.next_of_client() {
            let before = self.recording.len();
            match next["method"].as_str().unwrap() {
                "turn/interrupt" => {
                    let params = json!({"sessionId": "session-1"});
                    let frame =
                        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
                    self.adapter.on_client(&frame, &mut self.notes);
                    self.settle();
                }
                // The first prompt also starts the program and opens the thread.
                _ => self.prompt(),
            }
            assert!(self.recording.len() < before, "the adapter never wrote {next}");
        }
        let stderr_tail = read("app-server-main.stderr");
        let exit = Exit { code: Some(0), stderr_tail, ..Exit::default() };
        self.adapter.on_end(self.program.unwrap(), &exit, &mut self.notes);
        self.settle();
    }

    fn next_of_client(&self) -> Option<Value> {
        self.recording.iter().find(|it| it.is_client).map(|it| it.message.clone())
    }

    fn prompt(&mut self) {
        self.played.prompts += 1;
        let next = self.recording.iter().find(|it| it.message["method"] == "turn/start").unwrap();
        let text = next.message["params"]["input"][0]["text"].clone();
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": "session-1", "prompt": prompt}));
    }

    fn settle(&mut self) {
        loop {
            if let Some(output) = self.adapter.take_output() {
                self.on_output(output);
            } else if let Some(message) = self.inbox.pop_front() {
                let program = self.program.unwrap();
                self.adapter.on_line(program, &message.to_string(), &mut self.notes);
            } else {
                return;
            }
        }
    }

    fn on_output(&mut self, output: Output) {
        match output {
            Output::ToClient(frame) => {
                self.played.told.push(("client", frame.clone()));
                if frame["method"] == "session/request_permission" {
                    self.allow(&frame);
                }
            }
            Output::Start { program, argv, .. } => {
                self.program = Some(program);
                self.played.told.push(("start", json!(argv)));
            }
            Output::Write { line, .. } => self.on_write(serde_json::from_str(&line).unwrap()),
            Output::CloseStdin { .. }
            | Output::Began { .. }
            | Output::EndTools { .. }
            | Output::Finish { .. }
            | Output::Stop { .. } => {}
        }
    }

    fn allow(&mut self, ask: &Value) {
        let options = ask["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|it| it["kind"] == "allow_once").unwrap();
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        let frame = json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"outcome": outcome}});
        self.adapter.on_client(&frame, &mut self.notes);
    }

    /// The adapter must write what the recorded client wrote; then the program goes on.
    fn on_write(&mut self, written: Value) {
        while self.recording.front().is_some_and(|it| !it.is_client) {
            // Messages of the program that nothing had to be written for.
            self.feed();
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
        self.played.told.push(("stdin", written));
        while self.recording.front().is_some_and(|it| !it.is_client) {
            self.feed();
        }
    }

    fn feed(&mut self) {
        let mut message = self.recording.pop_front().unwrap().message;
        if message["method"].is_null() {
            message["id"] = self.ids[&message["id"].as_u64().unwrap()].clone();
        }
        self.inbox.push_back(message);
    }
}

fn check(case: &str, player: &Player) {
    // Only what was said in these turns: the answer to `thread/resume` may repeat older ones.
    let said = recording(case).into_iter().map(|it| it.message);
    let said = said.filter(|it| it["method"].is_string()).map(|it| it.to_string());
    let stdout = said.collect::<Vec<_>>().join("\n").into_bytes();
    let (cli, case) = ("codex".to_owned(), case.to_owned());
    let fixture = Fixture { cli, case, stdout, exit: Exit::default(), prompt: String::new() };
    promises::check(&fixture, &player.played);
    let mut shown = String::new();
    // What the catalogue decides, such as argv and the list of modes, is no affair of this test.
    let is_ours = |what: &Value| what["id"] != "session/new" && what["id"] != "session/resume";
    for (who, what) in player.played.told.iter().filter(|(who, it)| *who != "start" && is_ours(it))
    {
        writeln!(shown, "{who} {what}").unwrap();
    }
    insta::assert_snapshot!(format!("codex-{}", fixture.case), shown);
}

fn prompts_answered(player: &Player) -> Vec<&Value> {
    let told = player.played.told.iter().map(|(_, what)| what);
    told.filter(|frame| frame["id"] == "session/prompt").collect()
}

#[test]
fn a_conversation_with_tools_approvals_an_error_and_an_interrupt() {
    let mut player = Player::new("app-server-main", Notes::default());
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.send("session/set_mode", &json!({"sessionId": "session-1", "modeId": "ask"}));
    player.play();
    check("app-server-main", &player);
    let answers = prompts_answered(&player);
    let ends: Vec<&Value> = answers.iter().map(|it| &it["result"]["stopReason"]).collect();
    let (end, none) = (json!("end_turn"), Value::Null);
    assert_eq!(ends, [&end, &end, &end, &end, &none, &end, &json!("cancelled")]);
    assert_eq!(answers[1]["result"]["usage"]["totalTokens"], 248, "two requests of the turn");
    assert_eq!(answers[4]["error"]["data"]["status"], 401);
    let native = player.notes.notes["session-1"].native.as_deref();
    assert_eq!(native, Some("01a1dc8f-f939-7252-b252-d0715381d7d5"));
}

#[test]
fn a_conversation_in_which_files_are_made_and_moved() {
    let mut player = Player::new("app-server-patch", Notes::default());
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.send("session/set_mode", &json!({"sessionId": "session-1", "modeId": "ask"}));
    player.play();
    check("app-server-patch", &player);
    let asked = player.played.told.iter().map(|(_, what)| &what["params"]["toolCall"]);
    let asked: Vec<&Value> = asked.filter(|it| it.is_object()).collect();
    let titles: Vec<&Value> = asked.iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["Create new.txt", "Move new.txt to moved.txt"]);
    assert_eq!(asked[1]["content"][0]["newText"], "one\nTWO\nthree\n");
}

#[test]
fn a_conversation_that_goes_on_in_another_program() {
    let native = Some("01a1dc8f-f939-7252-b252-d0715381d7d5".to_owned());
    let note = Note { native, cwd: "/user/project".to_owned(), ..Note::default() };
    let notes = Notes { notes: BTreeMap::from([("session-1".to_owned(), note)]) };
    let mut player = Player::new("app-server-resume", notes);
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/resume", &json!({"sessionId": "session-1", "cwd": "/user/project"}));
    player.play();
    check("app-server-resume", &player);
    let answers = prompts_answered(&player);
    assert_eq!(answers[0]["result"]["usage"]["totalTokens"], 125, "only this turn");
}
