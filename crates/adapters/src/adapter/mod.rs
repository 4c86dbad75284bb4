//! The ACP agent that a client connects to: sessions on top of programs, as a value without I/O.
//!
//! The inputs are frames of the client, and lines and exits of programs; the outputs are
//! [`AdapterOutput`]s for the host. The dialect interprets the lines of a program. The host's
//! [`SessionStore`] keeps what must outlive the process.

mod effects;
mod request;
mod session;

use crate::{DialectFactory, StartContext};
use jackfield_agents::AgentExit;
use jackfield_catalog::{AgentSpec, LaunchVariant, ModelEntry};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use session::AdapterSession;
use std::collections::{BTreeMap, VecDeque};

/// Identifies a process that the adapter has started.
pub type ProgramId = u64;

/// An action for the host.
#[derive(Debug, Clone, PartialEq)]
pub enum AdapterOutput {
    /// Send a frame to the client.
    SendToClient(Value),
    /// Start the program. `files` are pairs of a path and a text. The host writes them first,
    /// readable only by the user, and removes them after the process has exited.
    StartProgram {
        program: ProgramId,
        argv: Vec<String>,
        cwd: String,
        files: Vec<(String, String)>,
    },
    /// Write a line to the program's stdin.
    WriteStdin {
        program: ProgramId,
        line: String,
    },
    CloseStdin {
        program: ProgramId,
    },
    /// The program received a prompt: processes that it starts from now on belong to that turn.
    MarkTurnStart {
        program: ProgramId,
    },
    /// The turn was cancelled and the program keeps running: stop the processes that it started in
    /// the turn.
    StopTools {
        program: ProgramId,
    },
    /// The program is no longer needed: wait until it exits by itself, then stop it.
    FinishProgram {
        program: ProgramId,
    },
    /// The program's work is no longer wanted: ask it to exit now, then stop it.
    StopProgram {
        program: ProgramId,
    },
}

/// The program and its launch variant, as known before any session.
#[derive(Debug, Clone)]
pub struct AdapterSettings {
    pub spec: AgentSpec,
    /// The variant of `spec.launch` that is used.
    pub variant: LaunchVariant,
    /// For each of the variant's optional flags: whether the installed program supports it.
    pub flags: Vec<bool>,
    pub models: Vec<ModelEntry>,
    /// The version of the installed program, if it is known.
    pub program_version: Option<String>,
    /// A directory that only this adapter uses, for files that are passed to programs.
    pub scratch: String,
    /// The adapter and its programs run in a sandbox of Jackfield.
    pub is_sandboxed: bool,
}

/// The part of a session that outlives the adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The program's own session id.
    #[serde(rename = "native", skip_serializing_if = "Option::is_none", default)]
    pub agent_session_id: Option<String>,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
    /// Directories beside `cwd` that the program may use.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub additional_directories: Vec<String>,
}

impl SessionRecord {
    fn start_context<'a>(
        &'a self,
        mcp_servers: &'a [Value],
        is_sandboxed: bool,
    ) -> StartContext<'a> {
        StartContext {
            cwd: &self.cwd,
            agent_session_id: self.agent_session_id.as_deref(),
            model: self.model.as_deref(),
            reasoning: self.reasoning.as_deref(),
            mode: self.mode.as_deref(),
            is_sandboxed,
            mcp_servers,
        }
    }
}

/// The host's store of session records, and its source of new ids.
pub trait SessionStore {
    fn create_session_id(&mut self) -> String;
    fn save_record(&mut self, session: &str, record: &SessionRecord);
    fn load_record(&mut self, session: &str) -> Option<SessionRecord>;
}

pub struct Adapter {
    settings: AdapterSettings,
    new_dialect: DialectFactory,
    sessions: BTreeMap<String, AdapterSession>,
    /// The session that each program serves.
    programs: BTreeMap<ProgramId, String>,
    programs_started: ProgramId,
    /// Permission requests that were sent to the client: the session and its dialect's key.
    pending_requests: BTreeMap<u64, (String, String)>,
    requests_sent: u64,
    outputs: VecDeque<AdapterOutput>,
}

impl Adapter {
    pub fn new(settings: AdapterSettings, new_dialect: DialectFactory) -> Adapter {
        Adapter {
            settings,
            new_dialect,
            sessions: BTreeMap::new(),
            programs: BTreeMap::new(),
            programs_started: 0,
            pending_requests: BTreeMap::new(),
            requests_sent: 0,
            outputs: VecDeque::new(),
        }
    }

    /// The next action for the host.
    pub fn take_output(&mut self) -> Option<AdapterOutput> {
        self.outputs.pop_front()
    }

    pub fn on_client_frame(&mut self, frame: &Value, store: &mut dyn SessionStore) {
        let (id, params) = (frame.get("id"), &frame["params"]);
        match (frame["method"].as_str(), id) {
            (Some(method), Some(id)) => match self.on_request(method, id, params, store) {
                Ok(Some(result)) => self.send_result(id, &result),
                // The response follows when the turn ends.
                Ok(None) => {}
                Err(error) => self.send_error(id, &error),
            },
            (Some(method), None) if method == Method::SessionCancel.name() => {
                self.on_cancel(params, store);
            }
            (None, Some(id)) => self.on_answer(id, frame, store),
            // Other notifications are ignored.
            (_, None) => {}
        }
    }

    /// One line of a program's stdout.
    pub fn on_line(&mut self, program: ProgramId, line: &str, store: &mut dyn SessionStore) {
        self.with_program(program, store, |session| session.on_line(line));
    }

    /// Output of a program that prints text, as it comes.
    pub fn on_output(&mut self, program: ProgramId, text: &str, store: &mut dyn SessionStore) {
        self.with_program(program, store, |session| session.on_output(text));
    }

    /// Lines of stderr of a program that prints text.
    pub fn on_stderr(&mut self, program: ProgramId, text: &str, store: &mut dyn SessionStore) {
        self.with_program(program, store, |session| session.turn.send_stderr(text));
    }

    /// Whether the programs print text, and not lines that a dialect parses.
    pub fn prints_text(&self) -> bool {
        (self.new_dialect)().prints_text()
    }

    /// A program exited; all its lines were delivered before.
    pub fn on_exit(&mut self, program: ProgramId, exit: &AgentExit, store: &mut dyn SessionStore) {
        self.with_program(program, store, |session| session.on_exit(exit));
        let id = self.programs.remove(&program);
        if let Some(id) = id
            && self.sessions.get_mut(&id).is_some_and(|session| session.on_program_gone(program))
        {
            self.start_pending_prompt(&id, store);
        }
    }

    /// The client has disconnected: all programs are stopped.
    pub fn on_client_disconnected(&mut self) {
        let programs: Vec<ProgramId> = self.programs.keys().copied().collect();
        self.outputs
            .extend(programs.into_iter().map(|program| AdapterOutput::StopProgram { program }));
    }

    fn with_program(
        &mut self,
        program: ProgramId,
        store: &mut dyn SessionStore,
        handle: impl FnOnce(&mut AdapterSession),
    ) {
        let Some(id) = self.programs.get(&program).cloned() else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        // Output of a program that is stopping does not belong to the new turn.
        if session.program == Some(program) {
            handle(session);
            self.apply_effects(&id, store);
        }
    }

    /// The client responded to a permission request.
    fn on_answer(&mut self, id: &Value, frame: &Value, store: &mut dyn SessionStore) {
        let Some((session_id, key)) = id.as_u64().and_then(|id| self.pending_requests.remove(&id))
        else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        session.on_answer(&key, &frame["result"]["outcome"]);
        self.apply_effects(&session_id, store);
    }

    fn send_result(&mut self, id: &Value, result: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.outputs.push_back(AdapterOutput::SendToClient(frame));
    }

    fn send_error(&mut self, id: &Value, error: &Value) {
        let frame = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.outputs.push_back(AdapterOutput::SendToClient(frame));
    }
}
