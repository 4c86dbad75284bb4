//! Whatever Codex prints, cut, mixed up or made up: nothing panics, and a prompt is answered once.

use jackfield_adapt::{Adapter, Memory, Note, Output, Program, Settings, dialect};
use jackfield_agents::Exit;
use jackfield_catalogue::Catalogue;
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Default)]
struct Forgetful;

impl Memory for Forgetful {
    fn new_id(&mut self) -> String {
        "s".to_owned()
    }

    fn remember(&mut self, _session: &str, _note: &Note) {}

    fn recall(&mut self, _session: &str) -> Option<Note> {
        None
    }
}

/// Lines that were really printed: by `exec`, and by `app-server` as far as it was recorded.
fn lines(name: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/codex/0.166.0");
    let suffix = if name == "codex" { ".stdout" } else { ".jsonl" };
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    if name == "codex" {
        return lines;
    }
    let records = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|it| it["dir"] == "agent").map(|it| it["msg"].to_string()).collect()
}

/// What is done with a line before it is heard.
#[derive(Debug, Clone)]
enum Act {
    Hear(usize),
    Cut(usize, usize),
    Junk(String),
    /// The same message with one of its members turned into nonsense.
    Bend(usize, usize),
    Cancel,
    Prompt,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = any::<prop::sample::Index>().prop_map(|it| it.index(1 << 20));
    let act = prop_oneof![
        8 => at.clone().prop_map(Act::Hear),
        2 => (at.clone(), 0..400usize).prop_map(|(line, size)| Act::Cut(line, size)),
        1 => "\\PC{0,40}".prop_map(Act::Junk),
        2 => (at, 0..4usize).prop_map(|(line, how)| Act::Bend(line, how)),
        1 => Just(Act::Cancel),
        1 => Just(Act::Prompt),
    ];
    prop::collection::vec(act, 0..120)
}

fn bend(line: &str, how: usize) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let nonsense = [json!(null), json!(7), json!([]), json!({"type": 3})];
    for key in ["item", "params", "result", "type", "thread_id", "usage"] {
        if value.get(key).is_some() {
            value[key] = nonsense[how].clone();
        }
    }
    value.to_string()
}

struct Stage {
    adapter: Adapter,
    program: Option<Program>,
    asked: u32,
    answered: u32,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let catalogue = Catalogue::builtin();
        let spec = catalogue.get("codex").unwrap();
        let mut variants = spec.launch.iter();
        let variant = variants.find(|it| it.dialect.as_deref() == Some(name)).unwrap().clone();
        let settings = Settings {
            spec: spec.clone(),
            flags: vec![true; variant.flags.len()],
            variant,
            models: Vec::new(),
            scratch: "/scratch".to_owned(),
        };
        let adapter = Adapter::new(settings, dialect(name).unwrap());
        let mut stage = Stage { adapter, program: None, asked: 0, answered: 0 };
        stage.send(&json!({"id": "new", "method": "session/new", "params": {"cwd": "/w"}}));
        stage
    }

    fn send(&mut self, frame: &Value) {
        self.adapter.on_client(frame, &mut Forgetful);
        self.settle();
    }

    fn prompt(&mut self) {
        if self.asked == self.answered {
            self.asked += 1;
            let prompt = json!([{"type": "text", "text": "hi"}]);
            let params = json!({"sessionId": "s", "prompt": prompt});
            self.send(&json!({"id": "prompt", "method": "session/prompt", "params": params}));
        }
    }

    fn hear(&mut self, line: &str) {
        if let Some(program) = self.program {
            self.adapter.on_line(program, line, &mut Forgetful);
            self.settle();
        }
    }

    fn end(&mut self) {
        if let Some(program) = self.program.take() {
            self.adapter.on_end(
                program,
                &Exit { code: Some(1), ..Exit::default() },
                &mut Forgetful,
            );
            self.settle();
        }
    }

    fn settle(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                Output::ToClient(frame) if frame["id"] == "prompt" => {
                    self.answered += 1;
                    assert!(self.answered <= self.asked, "answered twice: {frame}");
                }
                Output::Start { program, .. } => self.program = Some(program),
                _ => {}
            }
        }
    }
}

/// By then `app-server` has greeted, opened its thread and begun its first turn.
const LINES_BEFORE_A_TURN: usize = 10;

fn survive(name: &str, acts: &[Act]) {
    let lines = lines(name);
    let mut stage = Stage::new(name);
    stage.prompt();
    if acts.len().is_multiple_of(2) {
        // So that what follows is heard in the middle of a turn as well.
        lines.iter().take(LINES_BEFORE_A_TURN).for_each(|line| stage.hear(line));
    }
    for act in acts {
        match act {
            Act::Hear(at) => stage.hear(&lines[at % lines.len()]),
            Act::Cut(at, size) => {
                let line = &lines[at % lines.len()];
                stage.hear(&line.chars().take(*size).collect::<String>());
            }
            Act::Junk(text) => stage.hear(text),
            Act::Bend(at, how) => stage.hear(&bend(&lines[at % lines.len()], *how)),
            Act::Cancel => {
                stage.send(&json!({"method": "session/cancel", "params": {"sessionId": "s"}}));
            }
            Act::Prompt => stage.prompt(),
        }
    }
    // A program that waits for another one to leave is started when that one has ended.
    for _ in 0..3 {
        stage.end();
    }
    assert_eq!(stage.answered, stage.asked, "every prompt is answered in the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn exec_survives_whatever_it_hears(acts in acts()) {
        survive("codex", &acts);
    }

    #[test]
    fn app_server_survives_whatever_it_hears(acts in acts()) {
        survive("codex-app-server", &acts);
    }
}
