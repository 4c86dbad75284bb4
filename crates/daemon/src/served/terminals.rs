//! Terminals: commands that the daemon runs for an agent, each under its own guard.

use super::ServedResponse;
use crate::spawn_context::SpawnContext;
use jackfield_agents::{
    AgentExit, AgentHandle, AgentProcessEvent, LaunchCommand, StdoutFormat, StopUrgency,
};
use jackfield_hub::{AgentId, SHELL, TERMINAL_PREFIX};
use jackfield_protocol::{Fault, Frame, chain};
use jackfield_workspace_fs::OutputTail;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::Sender;

/// Unreleased terminals of one agent. Each may be a process, so more would be a leak.
const TERMINALS_MAX: usize = 32;
/// Requests that wait for the end of one terminal.
const WAITING_MAX: usize = 16;
/// The output bytes that are kept by default, and at most: a response must fit into a frame with
/// escapes.
const OUTPUT_BYTES: usize = 1 << 20;
const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// A terminal, unique in this daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TerminalId(u64);

/// The parameters of `terminal/create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateParams {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<EnvVariable>,
    pub(super) cwd: Option<PathBuf>,
    output_byte_limit: Option<usize>,
}

#[derive(Deserialize)]
struct EnvVariable {
    name: String,
    value: String,
}

/// Values are not printed, since they may be secrets.
impl std::fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl CreateParams {
    /// The program and its arguments, exactly as the policy judged them. A command line without
    /// arguments is always run by a shell, as editors do.
    fn argv(&self) -> Vec<String> {
        if self.args.is_empty() && self.command.contains(char::is_whitespace) {
            return vec![SHELL.into(), "-c".into(), self.command.clone()];
        }
        std::iter::once(&self.command).chain(&self.args).cloned().collect()
    }
}

/// A terminal whose command is resolved.
#[derive(Debug)]
pub(super) struct PreparedTerminal {
    argv: Vec<String>,
    cwd: PathBuf,
    env: Vec<EnvVariable>,
    limit: usize,
}

impl PreparedTerminal {
    /// The terminal with another command in place of its own.
    pub(super) fn map_command(self, map: impl FnOnce(Vec<String>) -> Vec<String>) -> Self {
        PreparedTerminal { argv: map(self.argv), ..self }
    }

    pub(super) fn new(create: CreateParams, cwd: PathBuf) -> PreparedTerminal {
        let limit = create.output_byte_limit.unwrap_or(OUTPUT_BYTES).min(OUTPUT_BYTES_MAX);
        PreparedTerminal { argv: create.argv(), cwd, env: create.env, limit }
    }
}

struct TerminalProcess {
    agent: AgentId,
    /// `None` after its process tree has ended.
    handle: Option<AgentHandle>,
    output: OutputTail,
    exit: Option<AgentExit>,
    /// The request that created it, until it runs.
    created_by: Option<Box<str>>,
    /// Requests that wait for its end.
    waiting: Vec<Box<str>>,
    released: bool,
    created_at: Instant,
}

/// What terminals are started with.
pub(super) struct TerminalSpawner<'a> {
    pub(super) spawn_context: &'a SpawnContext,
    pub(super) events: &'a Sender<(TerminalId, AgentProcessEvent)>,
}

#[derive(Default)]
pub(super) struct TerminalTable {
    terminals: BTreeMap<TerminalId, TerminalProcess>,
    last_id: u64,
}

impl TerminalTable {
    /// Whether no process is left.
    pub(super) fn have_all_ended(&self) -> bool {
        self.terminals.values().all(|it| it.handle.is_none())
    }

    /// Starts a command; the response follows when it runs or could not be started.
    pub(super) fn create(
        &mut self,
        spawner: &TerminalSpawner<'_>,
        agent: AgentId,
        request: &str,
        prepared: PreparedTerminal,
        env: &Arc<[(String, String)]>,
    ) -> Result<(), Fault> {
        let open = self.terminals.values().filter(|it| it.agent == agent && !it.released).count();
        if TERMINALS_MAX <= open {
            let what = format!(
                "{open} terminals are open, which is the limit: release some with `terminal/release`"
            );
            return Err(Fault::Overloaded { what });
        }
        self.last_id += 1;
        let id = TerminalId(self.last_id);
        let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
        env.extend(prepared.env.into_iter().map(|it| (it.name, it.value)));
        let (argv, cwd) = (prepared.argv, prepared.cwd);
        let launch = LaunchCommand {
            argv,
            cwd,
            env: env.into_iter().collect(),
            stdout_format: StdoutFormat::Bytes,
        };
        let SpawnContext { guard, ledger, mark } = spawner.spawn_context;
        let (mark, events) = (format!("{mark}-{}-t{}", agent.0, id.0), spawner.events.clone());
        let mut handle = jackfield_agents::spawn_agent(guard, &launch, &mark, ledger, events, id)
            .map_err(|error| Fault::Internal { why: chain(&error) })?;
        // Terminals have no input.
        handle.close_stdin();
        let terminal = TerminalProcess {
            agent,
            handle: Some(handle),
            output: OutputTail::new(prepared.limit),
            exit: None,
            created_by: Some(request.into()),
            waiting: Vec::new(),
            released: false,
            created_at: Instant::now(),
        };
        self.terminals.insert(id, terminal);
        Ok(())
    }

    /// `terminal/output`: the output so far.
    pub(super) fn output(&self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        let terminal = &self.terminals[&self.find(agent, id)?];
        let (output, truncated) = match terminal.exit {
            Some(_) => terminal.output.final_text(),
            None => terminal.output.partial_text(),
        };
        let mut result = json!({ "output": output, "truncated": truncated });
        if let Some(exit) = &terminal.exit {
            result["exitStatus"] = exit_status(exit);
        }
        Ok(result)
    }

    /// `terminal/wait_for_exit`: the response, if it has already ended.
    pub(super) fn wait(
        &mut self,
        agent: AgentId,
        id: &str,
        request: &str,
    ) -> Result<Option<Value>, Fault> {
        let terminal = self.find_mut(agent, id)?;
        if let Some(exit) = &terminal.exit {
            return Ok(Some(exit_status(exit)));
        }
        if WAITING_MAX <= terminal.waiting.len() {
            let what =
                format!("{WAITING_MAX} requests already wait for the end of terminal `{id}`");
            return Err(Fault::Overloaded { what });
        }
        terminal.waiting.push(request.into());
        Ok(None)
    }

    /// `terminal/kill`: the terminal can still be read.
    pub(super) fn kill(&mut self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        self.find_mut(agent, id)?.stop(StopUrgency::Soon);
        Ok(json!({}))
    }

    /// `terminal/release`: the terminal is not needed any more.
    pub(super) fn release(&mut self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        let id = self.find(agent, id)?;
        let terminal = self.terminals.get_mut(&id).expect("found");
        terminal.released = true;
        terminal.stop(StopUrgency::Soon);
        self.remove_if_ended(id);
        Ok(json!({}))
    }

    /// Stops all terminals of an agent that has ended or will.
    pub(super) fn stop_all_of(&mut self, agent: AgentId, stop: StopUrgency) {
        for terminal in self.terminals.values_mut().filter(|it| it.agent == agent) {
            terminal.released = true;
            terminal.stop(stop);
        }
        self.terminals.retain(|_, it| !it.has_ended());
    }

    /// Stops the terminals of a canceled turn that began this long ago.
    pub(super) fn stop_recent_of(&mut self, agent: AgentId, age: Duration) {
        let is_recent =
            |it: &&mut TerminalProcess| it.agent == agent && it.created_at.elapsed() <= age;
        for terminal in self.terminals.values_mut().filter(is_recent) {
            terminal.stop(StopUrgency::Soon);
        }
    }

    pub(super) fn stop_all_now(&mut self) {
        for terminal in self.terminals.values_mut() {
            terminal.stop(StopUrgency::Now);
        }
    }

    pub(super) fn on_event(
        &mut self,
        id: TerminalId,
        event: AgentProcessEvent,
    ) -> Vec<ServedResponse> {
        let Some(terminal) = self.terminals.get_mut(&id) else { return Vec::new() };
        match event {
            AgentProcessEvent::Started { .. } => {
                let result = json!({ "terminalId": format_id(id) });
                terminal.respond(terminal.created_by.as_deref(), &Ok(result)).into_iter().collect()
            }
            AgentProcessEvent::Output(bytes) => {
                terminal.output.push(&bytes);
                Vec::new()
            }
            AgentProcessEvent::Gone(exit) => terminal.on_gone(exit),
            AgentProcessEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(
                        terminal = id.0,
                        ?survivors,
                        "failed to end processes of terminal"
                    );
                }
                terminal.handle = None;
                self.remove_if_ended(id);
                Vec::new()
            }
            AgentProcessEvent::Frames(_)
            | AgentProcessEvent::Lines(_)
            | AgentProcessEvent::Stderr(_)
            | AgentProcessEvent::Noise(_)
            | AgentProcessEvent::Oversized(_)
            | AgentProcessEvent::Wrote { .. } => Vec::new(),
        }
    }

    fn remove_if_ended(&mut self, id: TerminalId) {
        if self.terminals.get(&id).is_some_and(TerminalProcess::has_ended) {
            self.terminals.remove(&id);
        }
    }

    fn find(&self, agent: AgentId, id: &str) -> Result<TerminalId, Fault> {
        let number =
            id.strip_prefix(TERMINAL_PREFIX).and_then(|it| it.parse().ok()).map(TerminalId);
        let is_of_agent = |it: &TerminalProcess| it.agent == agent && !it.released;
        number.filter(|it| self.terminals.get(it).is_some_and(is_of_agent)).ok_or_else(|| {
            let why =
                format!("unknown terminal `{id}`: it was not created here, or it was released");
            Fault::InvalidParams { why }
        })
    }

    fn find_mut(&mut self, agent: AgentId, id: &str) -> Result<&mut TerminalProcess, Fault> {
        let id = self.find(agent, id)?;
        Ok(self.terminals.get_mut(&id).expect("found"))
    }
}

impl TerminalProcess {
    fn has_ended(&self) -> bool {
        self.released && self.handle.is_none()
    }

    fn stop(&mut self, stop: StopUrgency) {
        if let Some(handle) = &mut self.handle {
            handle.stop(stop);
        }
    }

    fn on_gone(&mut self, exit: AgentExit) -> Vec<ServedResponse> {
        if let Some(why) = &exit.failed_to_start {
            self.released = true;
            let why = format!("failed to start the command: {why}");
            let fault = Fault::InvalidParams { why };
            return self.respond(self.created_by.as_deref(), &Err(fault)).into_iter().collect();
        }
        let waiting = std::mem::take(&mut self.waiting);
        let responses =
            waiting.iter().filter_map(|it| self.respond(Some(it), &Ok(exit_status(&exit))));
        let responses = responses.collect();
        self.exit = Some(exit);
        responses
    }

    fn respond(
        &self,
        request: Option<&str>,
        result: &Result<Value, Fault>,
    ) -> Option<ServedResponse> {
        let frame = match result {
            Ok(result) => Frame::result_for(request?, &result.to_string()),
            Err(fault) => Frame::error_for(request?, fault),
        };
        Some(ServedResponse { agent: self.agent, frame })
    }
}

fn format_id(id: TerminalId) -> String {
    format!("{TERMINAL_PREFIX}{}", id.0)
}

fn exit_status(exit: &AgentExit) -> Value {
    json!({ "exitCode": exit.code, "signal": exit.signal_name() })
}
