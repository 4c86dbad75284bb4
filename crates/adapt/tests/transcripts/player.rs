//! Plays a recording: the adapter gets a client that behaves and a program that says what it said.

use super::fixture::Fixture;
use jackfield_adapt::{Adapter, Memory, Note, Output, Program, Settings, dialect};
use jackfield_catalogue::Catalogue;
use jackfield_wire::LineSplitter;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What was heard, in order: `client` frames (answers and updates), `stdin` lines, `start` argv.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Played {
    pub(crate) told: Vec<(&'static str, Value)>,
    pub(crate) prompts: u64,
}

#[derive(Default)]
struct Notes {
    notes: BTreeMap<String, Note>,
    made: u32,
}

impl Memory for Notes {
    fn new_id(&mut self) -> String {
        self.made += 1;
        format!("session-{}", self.made)
    }

    fn remember(&mut self, session: &str, note: &Note) {
        self.notes.insert(session.to_owned(), note.clone());
    }

    fn recall(&mut self, session: &str) -> Option<Note> {
        self.notes.get(session).cloned()
    }
}

struct Player<'a> {
    adapter: Adapter,
    notes: Notes,
    fixture: &'a Fixture,
    played: Played,
    program: Option<Program>,
    turn_runs: bool,
}

/// The recording in one piece.
pub(crate) fn play(name: &str, fixture: &Fixture) -> Played {
    play_in_chunks(name, fixture, &[])
}

/// The recording in chunks of these sizes, the rest as it is.
pub(crate) fn play_in_chunks(name: &str, fixture: &Fixture, sizes: &[usize]) -> Played {
    let mut player = Player::new(name, fixture);
    player.send("initialize", &json!({"protocolVersion": 1}));
    player.send("session/new", &json!({"cwd": "/user/project", "mcpServers": []}));
    player.prompt();
    let mut splitter = LineSplitter::new(16 << 20).with_blank_lines();
    let mut rest = fixture.stdout.as_slice();
    let mut sizes = sizes.iter().copied();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(rest.len()).clamp(1, rest.len());
        let (chunk, behind) = rest.split_at(size);
        rest = behind;
        let mut lines = Vec::new();
        let chunk = bytes::Bytes::copy_from_slice(chunk);
        splitter.push(chunk, &mut |line| lines.push(line.unwrap()));
        player.hear(&lines);
    }
    let mut lines = Vec::new();
    splitter.finish(&mut |line| lines.push(line.unwrap()));
    player.hear(&lines);
    player.end();
    player.played
}

impl<'a> Player<'a> {
    fn new(name: &str, fixture: &'a Fixture) -> Player<'a> {
        let catalogue = Catalogue::builtin();
        let speaks =
            |variant: &&jackfield_catalogue::Variant| variant.dialect.as_deref() == Some(name);
        let spec = catalogue
            .get(&fixture.cli)
            .filter(|spec| spec.launch.iter().any(|variant| speaks(&variant)))
            .or_else(|| catalogue.iter().find(|spec| spec.launch.iter().any(|it| speaks(&it))))
            .unwrap_or_else(|| panic!("no agent of the catalogue speaks {name}"));
        let variant = spec.launch.iter().find(speaks).unwrap().clone();
        let settings = Settings {
            spec: spec.clone(),
            flags: vec![true; variant.flags.len()],
            variant,
            models: Vec::new(),
            scratch: "/scratch".to_owned(),
        };
        let make = dialect(name).unwrap_or_else(|| panic!("no dialect {name}"));
        Player {
            adapter: Adapter::new(settings, make),
            notes: Notes::default(),
            fixture,
            played: Played::default(),
            program: None,
            turn_runs: false,
        }
    }

    fn send(&mut self, method: &str, params: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.adapter.on_client(&frame, &mut self.notes);
        self.settle();
    }

    fn prompt(&mut self) {
        self.played.prompts += 1;
        self.turn_runs = true;
        let prompt = json!([{"type": "text", "text": self.fixture.prompt}]);
        self.send("session/prompt", &json!({"sessionId": "session-1", "prompt": prompt}));
        if self.fixture.is_cancelled() {
            // The recording was interrupted by hand; here the client did it.
            let params = json!({"sessionId": "session-1"});
            let frame = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
            self.adapter.on_client(&frame, &mut self.notes);
            self.settle();
        }
    }

    fn hear(&mut self, lines: &[bytes::Bytes]) {
        for line in lines {
            // A program that serves the whole session was prompted again at this point.
            if !self.turn_runs && self.begins_a_turn(line) {
                self.prompt();
            }
            let line = String::from_utf8_lossy(line);
            if let Some(program) = self.program {
                self.adapter.on_line(program, &line, &mut self.notes);
                self.settle();
            }
        }
    }

    fn begins_a_turn(&self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        self.program.is_some() && line.contains(r#""type":"system","subtype":"init""#)
    }

    fn end(&mut self) {
        if let Some(program) = self.program {
            self.adapter.on_end(program, &self.fixture.exit, &mut self.notes);
            self.settle();
        }
    }

    /// Does what a host and a client would do.
    fn settle(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                Output::ToClient(frame) => self.on_frame(frame),
                Output::Start { program, argv, .. } => {
                    self.program = Some(program);
                    self.told("start", json!(argv));
                }
                Output::Write { line, .. } => {
                    let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    self.told("stdin", line);
                }
                Output::CloseStdin { .. } => self.told("stdin", Value::Null),
                // The recording ends by itself.
                Output::Began { .. }
                | Output::EndTools { .. }
                | Output::Finish { .. }
                | Output::Stop { .. } => {}
            }
        }
    }

    fn on_frame(&mut self, frame: Value) {
        if frame["id"] == "session/prompt" {
            self.turn_runs = false;
        }
        let asked = (frame["method"] == "session/request_permission").then(|| frame.clone());
        self.told("client", frame);
        if let Some(ask) = asked {
            let deny = self.fixture.case.contains("den");
            let wanted = if deny { "reject_once" } else { "allow_once" };
            let options = ask["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|it| it["kind"] == wanted).unwrap();
            let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
            let frame = json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"outcome": outcome}});
            self.adapter.on_client(&frame, &mut self.notes);
        }
    }

    fn told(&mut self, who: &'static str, what: Value) {
        self.played.told.push((who, what));
    }
}
