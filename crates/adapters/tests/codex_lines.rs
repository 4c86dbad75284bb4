//! Truncated, reordered and invalid output of Codex: the adapter does not panic, and every prompt
//! has one response.

use crate::support::{EmptyStore, new_adapter};
use jackfield_adapters::{Adapter, AdapterOutput, ProgramId};
use jackfield_agents::AgentExit;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The recorded lines of `exec` or of `app-server`.
fn recorded_lines(name: &str) -> Vec<String> {
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

/// One step of a test.
#[derive(Debug, Clone)]
enum TestStep {
    /// Sends a recorded line.
    Line(usize),
    /// Sends the beginning of a recorded line.
    Truncated(usize, usize),
    Text(String),
    /// Sends a recorded line with invalid members.
    Invalid(usize, usize),
    Cancel,
    Prompt,
}

fn test_steps() -> impl Strategy<Value = Vec<TestStep>> {
    let at = any::<prop::sample::Index>().prop_map(|it| it.index(1 << 20));
    let step = prop_oneof![
        8 => at.clone().prop_map(TestStep::Line),
        2 => (at.clone(), 0..400usize).prop_map(|(line, size)| TestStep::Truncated(line, size)),
        1 => "\\PC{0,40}".prop_map(TestStep::Text),
        2 => (at, 0..4usize).prop_map(|(line, variant)| TestStep::Invalid(line, variant)),
        1 => Just(TestStep::Cancel),
        1 => Just(TestStep::Prompt),
    ];
    prop::collection::vec(step, 0..120)
}

fn with_invalid_members(line: &str, variant: usize) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let invalid = [json!(null), json!(7), json!([]), json!({"type": 3})];
    for key in ["item", "params", "result", "type", "thread_id", "usage"] {
        if value.get(key).is_some() {
            value[key] = invalid[variant].clone();
        }
    }
    value.to_string()
}

struct AdapterTest {
    adapter: Adapter,
    program: Option<ProgramId>,
    prompted: u32,
    answered: u32,
}

impl AdapterTest {
    fn new(name: &str) -> AdapterTest {
        let adapter = new_adapter("codex", name);
        let mut test = AdapterTest { adapter, program: None, prompted: 0, answered: 0 };
        test.send(&json!({"id": "new", "method": "session/new", "params": {"cwd": "/w"}}));
        test
    }

    fn send(&mut self, frame: &Value) {
        self.adapter.on_client_frame(frame, &mut EmptyStore);
        self.apply_outputs();
    }

    fn prompt(&mut self) {
        if self.prompted == self.answered {
            self.prompted += 1;
            let prompt = json!([{"type": "text", "text": "hi"}]);
            let params = json!({"sessionId": "s", "prompt": prompt});
            self.send(&json!({"id": "prompt", "method": "session/prompt", "params": params}));
        }
    }

    fn receive(&mut self, line: &str) {
        if let Some(program) = self.program {
            self.adapter.on_line(program, line, &mut EmptyStore);
            self.apply_outputs();
        }
    }

    fn end(&mut self) {
        if let Some(program) = self.program.take() {
            self.adapter.on_exit(
                program,
                &AgentExit { code: Some(1), ..AgentExit::default() },
                &mut EmptyStore,
            );
            self.apply_outputs();
        }
    }

    fn apply_outputs(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                AdapterOutput::SendToClient(frame) if frame["id"] == "prompt" => {
                    self.answered += 1;
                    assert!(self.answered <= self.prompted, "answered twice: {frame}");
                }
                AdapterOutput::StartProgram { program, .. } => self.program = Some(program),
                _ => {}
            }
        }
    }
}

/// After these lines, `app-server` is initialized, has opened its thread and started its first
/// turn.
const SETUP_LINES: usize = 10;

fn run_steps(name: &str, steps: &[TestStep]) {
    let lines = recorded_lines(name);
    let mut test = AdapterTest::new(name);
    test.prompt();
    if steps.len().is_multiple_of(2) {
        // The steps then run in the middle of a turn.
        lines.iter().take(SETUP_LINES).for_each(|line| test.receive(line));
    }
    for step in steps {
        match step {
            TestStep::Line(at) => test.receive(&lines[at % lines.len()]),
            TestStep::Truncated(at, size) => {
                let line = &lines[at % lines.len()];
                test.receive(&line.chars().take(*size).collect::<String>());
            }
            TestStep::Text(text) => test.receive(text),
            TestStep::Invalid(at, variant) => {
                test.receive(&with_invalid_members(&lines[at % lines.len()], *variant));
            }
            TestStep::Cancel => {
                test.send(&json!({"method": "session/cancel", "params": {"sessionId": "s"}}));
            }
            TestStep::Prompt => test.prompt(),
        }
    }
    // A program that waits for another one to exit is started then.
    for _ in 0..3 {
        test.end();
    }
    assert_eq!(test.answered, test.prompted, "every prompt has a response");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn exec_dialect_survives_arbitrary_steps(steps in test_steps()) {
        run_steps("codex", &steps);
    }

    #[test]
    fn app_server_dialect_survives_arbitrary_steps(steps in test_steps()) {
        run_steps("codex-app-server", &steps);
    }
}
