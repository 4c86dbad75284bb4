//! Terminals: commands that an agent has us run, each under a guard of its own like the agent itself.

use super::Answer;
use crate::effects::Ground;
use jackfield_agents::{
    AgentEvent, AgentExit, AgentHandle, LaunchCommand, StdoutFormat, StopUrgency,
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

/// What one agent may have and not have released: more is a leak, and each is a process.
const TERMINALS_MAX: usize = 32;
/// Who waits for one end; an agent waits once.
const WAITING_MAX: usize = 16;
/// What is kept of the output if the agent does not say, and the most if it does: an answer must fit
/// into a frame with room for escapes.
const OUTPUT_BYTES: usize = 1 << 20;
const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// One terminal, among all that this daemon has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TerminalId(u64);

/// `terminal/create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Create {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
    pub(super) cwd: Option<PathBuf>,
    output_byte_limit: Option<usize>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// Values are never shown: keys live there.
impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Create {
    /// The program and its arguments, exactly as the rules have judged them. A line without arguments is run by a
    /// shell, as editors do, whatever files there are.
    fn argv(&self) -> Vec<String> {
        if self.args.is_empty() && self.command.contains(char::is_whitespace) {
            return vec![SHELL.into(), "-c".into(), self.command.clone()];
        }
        std::iter::once(&self.command).chain(&self.args).cloned().collect()
    }
}

/// What a terminal is started with, found out beside the loop.
#[derive(Debug)]
pub(super) struct Prepared {
    argv: Vec<String>,
    cwd: PathBuf,
    env: Vec<Variable>,
    limit: usize,
}

impl Prepared {
    pub(super) fn new(create: Create, cwd: PathBuf) -> Prepared {
        let limit = create.output_byte_limit.unwrap_or(OUTPUT_BYTES).min(OUTPUT_BYTES_MAX);
        Prepared { argv: create.argv(), cwd, env: create.env, limit }
    }
}

struct Terminal {
    agent: AgentId,
    /// `None` when its whole tree is gone.
    handle: Option<AgentHandle>,
    screen: OutputTail,
    exit: Option<AgentExit>,
    /// The request that made it, until it runs.
    made_by: Option<Box<str>>,
    /// Requests that wait for its end.
    waiting: Vec<Box<str>>,
    released: bool,
    born: Instant,
}

/// What runs a terminal.
pub(super) struct Stage<'a> {
    pub(super) ground: &'a Ground,
    pub(super) events: &'a Sender<(TerminalId, AgentEvent)>,
}

#[derive(Default)]
pub(super) struct Terminals {
    all: BTreeMap<TerminalId, Terminal>,
    last: u64,
}

impl Terminals {
    /// Whether no process is left.
    pub(super) fn are_over(&self) -> bool {
        self.all.values().all(|it| it.handle.is_none())
    }

    /// Starts a command; the answer follows when it runs, or could not be started.
    pub(super) fn create(
        &mut self,
        stage: &Stage<'_>,
        agent: AgentId,
        request: &str,
        prepared: Prepared,
        env: &Arc<[(String, String)]>,
    ) -> Result<(), Fault> {
        let open = self.all.values().filter(|it| it.agent == agent && !it.released).count();
        if TERMINALS_MAX <= open {
            let what = format!("{open} terminals are open: release some with `terminal/release`");
            return Err(Fault::Overloaded { what });
        }
        self.last += 1;
        let id = TerminalId(self.last);
        let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
        env.extend(prepared.env.into_iter().map(|it| (it.name, it.value)));
        let (argv, cwd) = (prepared.argv, prepared.cwd);
        let launch = LaunchCommand {
            argv,
            cwd,
            env: env.into_iter().collect(),
            stdout_format: StdoutFormat::Bytes,
        };
        let Ground { guard, ledger, mark } = stage.ground;
        let (mark, events) = (format!("{mark}-{}-t{}", agent.0, id.0), stage.events.clone());
        let mut handle = jackfield_agents::spawn_agent(guard, &launch, &mark, ledger, events, id)
            .map_err(|error| Fault::Internal { why: chain(&error) })?;
        // Nobody can type.
        handle.close_stdin();
        let terminal = Terminal {
            agent,
            handle: Some(handle),
            screen: OutputTail::new(prepared.limit),
            exit: None,
            made_by: Some(request.into()),
            waiting: Vec::new(),
            released: false,
            born: Instant::now(),
        };
        self.all.insert(id, terminal);
        Ok(())
    }

    /// `terminal/output`: what was printed so far.
    pub(super) fn output(&self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        let terminal = &self.all[&self.find(agent, id)?];
        let (output, truncated) = match terminal.exit {
            Some(_) => terminal.screen.final_text(),
            None => terminal.screen.partial_text(),
        };
        let mut answer = json!({ "output": output, "truncated": truncated });
        if let Some(exit) = &terminal.exit {
            answer["exitStatus"] = status(exit);
        }
        Ok(answer)
    }

    /// `terminal/wait_for_exit`: the answer, if it has come already.
    pub(super) fn wait(
        &mut self,
        agent: AgentId,
        id: &str,
        request: &str,
    ) -> Result<Option<Value>, Fault> {
        let terminal = self.find_mut(agent, id)?;
        if let Some(exit) = &terminal.exit {
            return Ok(Some(status(exit)));
        }
        if WAITING_MAX <= terminal.waiting.len() {
            let what =
                format!("{WAITING_MAX} requests wait for the end of terminal `{id}` already");
            return Err(Fault::Overloaded { what });
        }
        terminal.waiting.push(request.into());
        Ok(None)
    }

    /// `terminal/kill`: the terminal stays to be looked at.
    pub(super) fn kill(&mut self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        self.find_mut(agent, id)?.stop(StopUrgency::Soon);
        Ok(json!({}))
    }

    /// `terminal/release`: nobody will look at it any more.
    pub(super) fn release(&mut self, agent: AgentId, id: &str) -> Result<Value, Fault> {
        let id = self.find(agent, id)?;
        let terminal = self.all.get_mut(&id).expect("found");
        terminal.released = true;
        terminal.stop(StopUrgency::Soon);
        self.forget_if_over(id);
        Ok(json!({}))
    }

    /// The agent is gone or will be: so are its terminals.
    pub(super) fn end_all_of(&mut self, agent: AgentId, stop: StopUrgency) {
        for terminal in self.all.values_mut().filter(|it| it.agent == agent) {
            terminal.released = true;
            terminal.stop(stop);
        }
        self.all.retain(|_, it| !it.is_over());
    }

    /// A turn that began so long ago was cancelled.
    pub(super) fn end_young_of(&mut self, agent: AgentId, age: Duration) {
        let young = |it: &&mut Terminal| it.agent == agent && it.born.elapsed() <= age;
        for terminal in self.all.values_mut().filter(young) {
            terminal.stop(StopUrgency::Soon);
        }
    }

    pub(super) fn end_now(&mut self) {
        for terminal in self.all.values_mut() {
            terminal.stop(StopUrgency::Now);
        }
    }

    pub(super) fn on_event(&mut self, id: TerminalId, event: AgentEvent) -> Vec<Answer> {
        let Some(terminal) = self.all.get_mut(&id) else { return Vec::new() };
        match event {
            AgentEvent::Started { .. } => {
                let result = json!({ "terminalId": name(id) });
                terminal.answer(terminal.made_by.as_deref(), &Ok(result)).into_iter().collect()
            }
            AgentEvent::Output(bytes) => {
                terminal.screen.push(&bytes);
                Vec::new()
            }
            AgentEvent::Gone(exit) => terminal.on_gone(exit),
            AgentEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(terminal = id.0, ?survivors, "processes could not be ended");
                }
                terminal.handle = None;
                self.forget_if_over(id);
                Vec::new()
            }
            AgentEvent::Frames(_)
            | AgentEvent::Lines(_)
            | AgentEvent::Noise(_)
            | AgentEvent::Oversized(_)
            | AgentEvent::Wrote { .. } => Vec::new(),
        }
    }

    fn forget_if_over(&mut self, id: TerminalId) {
        if self.all.get(&id).is_some_and(Terminal::is_over) {
            self.all.remove(&id);
        }
    }

    fn find(&self, agent: AgentId, id: &str) -> Result<TerminalId, Fault> {
        let number =
            id.strip_prefix(TERMINAL_PREFIX).and_then(|it| it.parse().ok()).map(TerminalId);
        let is_theirs = |it: &Terminal| it.agent == agent && !it.released;
        number.filter(|it| self.all.get(it).is_some_and(is_theirs)).ok_or_else(|| {
            let why = format!("no terminal `{id}`: it was never made here, or it is released");
            Fault::InvalidParams { why }
        })
    }

    fn find_mut(&mut self, agent: AgentId, id: &str) -> Result<&mut Terminal, Fault> {
        let id = self.find(agent, id)?;
        Ok(self.all.get_mut(&id).expect("found"))
    }
}

impl Terminal {
    fn is_over(&self) -> bool {
        self.released && self.handle.is_none()
    }

    fn stop(&mut self, stop: StopUrgency) {
        if let Some(handle) = &mut self.handle {
            handle.stop(stop);
        }
    }

    fn on_gone(&mut self, exit: AgentExit) -> Vec<Answer> {
        if let Some(why) = &exit.failed_to_start {
            self.released = true;
            let why = format!("the command could not be started: {why}");
            let fault = Fault::InvalidParams { why };
            return self.answer(self.made_by.as_deref(), &Err(fault)).into_iter().collect();
        }
        let waiting = std::mem::take(&mut self.waiting);
        let answers = waiting.iter().filter_map(|it| self.answer(Some(it), &Ok(status(&exit))));
        let answers = answers.collect();
        self.exit = Some(exit);
        answers
    }

    fn answer(&self, request: Option<&str>, answer: &Result<Value, Fault>) -> Option<Answer> {
        let frame = match answer {
            Ok(result) => Frame::result_for(request?, &result.to_string()),
            Err(fault) => Frame::error_for(request?, fault),
        };
        Some(Answer { agent: self.agent, frame })
    }
}

fn name(id: TerminalId) -> String {
    format!("{TERMINAL_PREFIX}{}", id.0)
}

fn status(exit: &AgentExit) -> Value {
    json!({ "exitCode": exit.code, "signal": exit.signal_name() })
}
