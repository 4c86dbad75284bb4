//! Any lines in any dialect: the adapter neither panics nor breaks its promises.
//!
//! Input: lines of stdout. A line that begins with `!` is not said but done: `!c` the client cancels,
//! `!a` it answers what it was asked, `!d` it answers no, `!p` it prompts, `!e` the program ends.

use jackfield_adapters::{
    Adapter, AdapterOutput, AdapterSettings, ProgramId, SessionRecord, SessionStore, find_dialect,
};
use jackfield_agents::AgentExit;
use jackfield_catalog::Catalog;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

/// Parsed once: it is larger than most inputs.
static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

#[derive(Default)]
struct MemoryStore(BTreeMap<String, SessionRecord>);

impl SessionStore for MemoryStore {
    fn create_session_id(&mut self) -> String {
        "s".to_owned()
    }

    fn save_record(&mut self, session: &str, record: &SessionRecord) {
        self.0.insert(session.to_owned(), record.clone());
    }

    fn load_record(&mut self, session: &str) -> Option<SessionRecord> {
        self.0.get(session).cloned()
    }
}

struct World {
    adapter: Adapter,
    store: MemoryStore,
    program: Option<ProgramId>,
    prompts: u64,
    answers: u64,
    asks: Vec<Value>,
    /// Tool calls, and whether they are closed.
    tools: BTreeMap<String, bool>,
}

/// Panics if a promise of the adapter is broken.
pub fn check(name: &str, data: &[u8]) {
    let mut world = World::new(name);
    world.client(&json!({"id": "i", "method": "initialize", "params": {"protocolVersion": 1}}));
    let params = json!({"cwd": "/w", "mcpServers": []});
    world.client(&json!({"id": "n", "method": "session/new", "params": params}));
    world.prompt();
    for line in String::from_utf8_lossy(data).split('\n') {
        match line {
            "!c" => {
                world.client(&json!({"method": "session/cancel", "params": {"sessionId": "s"}}));
            }
            "!a" => world.answer("allow_once"),
            "!d" => world.answer("reject_once"),
            "!p" => world.prompt(),
            "!e" => world.end(),
            line => world.line(line),
        }
    }
    world.end();
    // A prompt that waited for the end of the program before it has one of its own.
    world.end();
    assert_eq!(world.prompts, world.answers, "every prompt has one answer");
    let open: Vec<&String> = world.tools.iter().filter(|it| !*it.1).map(|it| it.0).collect();
    assert!(open.is_empty(), "still open: {open:?}");
}

impl World {
    fn new(name: &str) -> World {
        let speaks = |it: &&jackfield_catalog::LaunchVariant| it.dialect.as_deref() == Some(name);
        let spec = CATALOG.iter().find(|it| it.launch.iter().any(|it| speaks(&it)));
        let spec = spec.expect("an agent speaks it").clone();
        let variant = spec.launch.iter().find(speaks).expect("a variant speaks it").clone();
        let (flags, models) = (vec![true; variant.flags.len()], Vec::new());
        let (program_version, scratch) = (None, "/t".to_owned());
        let settings = AdapterSettings {
            spec,
            variant,
            flags,
            models,
            program_version,
            scratch,
            is_sandboxed: false,
        };
        World {
            adapter: Adapter::new(settings, find_dialect(name).expect("a dialect")),
            store: MemoryStore::default(),
            program: None,
            prompts: 0,
            answers: 0,
            asks: Vec::new(),
            tools: BTreeMap::new(),
        }
    }

    fn client(&mut self, frame: &Value) {
        self.adapter.on_client_frame(frame, &mut self.store);
        self.settle();
    }

    fn prompt(&mut self) {
        self.prompts += 1;
        let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hello"}]});
        self.client(&json!({"id": "p", "method": "session/prompt", "params": params}));
    }

    fn answer(&mut self, kind: &str) {
        if let Some(ask) = self.asks.pop() {
            let options = ask["params"]["options"].as_array().expect("options");
            let option = options.iter().find(|it| it["kind"] == kind).unwrap_or(&Value::Null);
            let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
            self.client(&json!({"id": ask["id"], "result": {"outcome": outcome}}));
        }
    }

    fn line(&mut self, line: &str) {
        if let Some(program) = self.program {
            self.adapter.on_line(program, line, &mut self.store);
            self.settle();
        }
    }

    fn end(&mut self) {
        if let Some(program) = self.program.take() {
            let exit = AgentExit { code: Some(0), ..AgentExit::default() };
            self.adapter.on_exit(program, &exit, &mut self.store);
            self.settle();
        }
    }

    fn settle(&mut self) {
        while let Some(output) = self.adapter.take_output() {
            match output {
                AdapterOutput::StartProgram { program, .. } => self.program = Some(program),
                AdapterOutput::SendToClient(frame) => self.hear(frame),
                AdapterOutput::WriteStdin { .. }
                | AdapterOutput::CloseStdin { .. }
                | AdapterOutput::MarkTurnStart { .. }
                | AdapterOutput::StopTools { .. }
                | AdapterOutput::FinishProgram { .. }
                | AdapterOutput::StopProgram { .. } => {}
            }
        }
    }

    fn hear(&mut self, frame: Value) {
        if frame["id"] == "p" {
            self.answers += 1;
        }
        if frame["method"] == "session/request_permission" {
            self.asks.push(frame);
            return;
        }
        let update = &frame["params"]["update"];
        let Some(id) = update["toolCallId"].as_str() else { return };
        let ends = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if let Some(closed) = self.tools.get_mut(id) {
            *closed |= ends;
        } else {
            assert_eq!(update["sessionUpdate"], "tool_call", "created before it is updated");
            self.tools.insert(id.to_owned(), ends);
        }
    }
}
