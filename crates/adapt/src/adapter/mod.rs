//! The agent a client talks to: sessions over programs, as a value without I/O.
//!
//! In go a client's frames, a program's lines and its end; out come [`Output`]s for the host. What a
//! program means by its lines is its dialect's affair; what must outlive the process is kept by the
//! host's [`Memory`].

mod request;
mod session;
mod settle;

use crate::{Dialect, Start};
use jackfield_agents::Exit;
use jackfield_catalogue::{Model, Spec, Variant};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use session::Session;
use std::collections::{BTreeMap, VecDeque};

/// Which of the adapter's programs.
pub type Program = u64;

/// What the host has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A frame for the client.
    ToClient(Value),
    /// Start the program. The files, paths and texts, are to be written first, for nobody else to
    /// read, and removed when the program has ended.
    Start {
        program: Program,
        argv: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    },
    /// A line for a program's stdin.
    Write {
        program: Program,
        line: String,
    },
    CloseStdin {
        program: Program,
    },
    /// The program got a prompt: what it starts from here on belongs to that turn.
    Began {
        program: Program,
    },
    /// The turn was cancelled and the program stays: end what it started in it and left running.
    EndTools {
        program: Program,
    },
    /// The program has done its work: let it end by itself, then see to it.
    Finish {
        program: Program,
    },
    /// Nobody wants its work any more: ask it to end now, then see to it.
    Stop {
        program: Program,
    },
}

/// What is known of the program before any session.
#[derive(Debug, Clone)]
pub struct Settings {
    pub spec: Spec,
    /// Which of `spec.launch` is used.
    pub variant: Variant,
    /// Which of the variant's flags the installed program has.
    pub flags: Vec<bool>,
    pub models: Vec<Model>,
    /// A folder of this adapter alone, for files that programs are given.
    pub scratch: String,
}

/// What survives the process about one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The id under which the program knows the session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub native: Option<String>,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
}

impl Note {
    /// What a program of this session is started with.
    fn start<'a>(&'a self, mcp: &'a [Value]) -> Start<'a> {
        Start {
            cwd: &self.cwd,
            native: self.native.as_deref(),
            model: self.model.as_deref(),
            reasoning: self.reasoning.as_deref(),
            mode: self.mode.as_deref(),
            mcp,
        }
    }
}

/// The host's memory, and its source of new ids.
pub trait Memory {
    fn new_id(&mut self) -> String;
    fn remember(&mut self, session: &str, note: &Note);
    fn recall(&mut self, session: &str) -> Option<Note>;
}

pub struct Adapter {
    settings: Settings,
    make: fn() -> Box<dyn Dialect>,
    sessions: BTreeMap<String, Session>,
    /// Whose program it is.
    programs: BTreeMap<Program, String>,
    programs_started: Program,
    /// Our own requests to the client: the session and its dialect's key.
    asks: BTreeMap<u64, (String, String)>,
    asks_made: u64,
    outputs: VecDeque<Output>,
}

impl Adapter {
    pub fn new(settings: Settings, make: fn() -> Box<dyn Dialect>) -> Adapter {
        Adapter {
            settings,
            make,
            sessions: BTreeMap::new(),
            programs: BTreeMap::new(),
            programs_started: 0,
            asks: BTreeMap::new(),
            asks_made: 0,
            outputs: VecDeque::new(),
        }
    }

    /// What is to be done next, in order.
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// A frame of the client.
    pub fn on_client(&mut self, frame: &Value, memory: &mut dyn Memory) {
        let (id, params) = (frame.get("id"), &frame["params"]);
        match (frame["method"].as_str(), id) {
            (Some(method), Some(id)) => match self.on_request(method, id, params, memory) {
                Ok(Some(result)) => self.answer(id, &result),
                // Answered when the turn is over.
                Ok(None) => {}
                Err(error) => self.refuse(id, &error),
            },
            (Some("session/cancel"), None) => self.on_cancel(params, memory),
            (None, Some(id)) => self.on_answer(id, frame, memory),
            // No other notification means anything to us.
            (_, None) => {}
        }
    }

    /// One line of a program's stdout.
    pub fn on_line(&mut self, program: Program, line: &str, memory: &mut dyn Memory) {
        self.with_program(program, memory, |session| session.on_line(line));
    }

    /// A program ended, after all of its lines.
    pub fn on_end(&mut self, program: Program, exit: &Exit, memory: &mut dyn Memory) {
        self.with_program(program, memory, |session| session.on_end(exit));
        let id = self.programs.remove(&program);
        if let Some(id) = id
            && self.sessions.get_mut(&id).is_some_and(|session| session.forget(program))
        {
            self.start_waiting(&id, memory);
        }
    }

    /// The client is gone: nothing runs on without it.
    pub fn on_client_gone(&mut self) {
        let programs: Vec<Program> = self.programs.keys().copied().collect();
        self.outputs.extend(programs.into_iter().map(|program| Output::Stop { program }));
    }

    /// Whether a program is still running.
    pub fn is_busy(&self) -> bool {
        !self.programs.is_empty()
    }

    fn with_program(
        &mut self,
        program: Program,
        memory: &mut dyn Memory,
        act: impl FnOnce(&mut Session),
    ) {
        let Some(id) = self.programs.get(&program).cloned() else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        // An old program that is on its way out has nothing to say in a new turn.
        if session.program == Some(program) {
            act(session);
            self.settle(&id, memory);
        }
    }

    /// The client answered one of our requests.
    fn on_answer(&mut self, id: &Value, frame: &Value, memory: &mut dyn Memory) {
        let Some((session_id, key)) = id.as_u64().and_then(|id| self.asks.remove(&id)) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        session.on_answer(&key, &frame["result"]["outcome"]);
        self.settle(&session_id, memory);
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.outputs.push_back(Output::ToClient(frame));
    }

    fn refuse(&mut self, id: &Value, error: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.outputs.push_back(Output::ToClient(frame));
    }
}
