//! Serves files and terminals of agents whose client does not, inside the directories of the session.
//!
//! The crate `workspace-fs` accesses files, `terminals` runs commands. Everything that touches the disk
//! runs on a thread, for each agent in the order of its requests; the loop only dispatches.

mod terminals;

pub(crate) use terminals::TerminalId;

use crate::{sandbox::AgentSandbox, spawn_context::SpawnContext};
use jackfield_agents::{AgentProcessEvent, StopUrgency};
use jackfield_hub::AgentId;
use jackfield_protocol::{Fault, Frame, acp::Method};
use jackfield_sandbox::plan::PathAccess;
use jackfield_workspace_fs::{ConfinedPath, ReadFileRequest, WriteFileRequest, refuse_path};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound::{Excluded, Unbounded},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use terminals::{CreateParams, PreparedTerminal, TerminalSpawner, TerminalTable};
use tokio::sync::mpsc::Sender;

/// Threads that access files at once: more would not make disks faster, and responses are large.
const THREADS_MAX: usize = 4;
/// Queued requests of one agent.
const WAITING_MAX: usize = 256;

/// A response to an agent.
#[derive(Debug)]
pub(crate) struct ServedResponse {
    pub(crate) agent: AgentId,
    pub(crate) frame: Frame,
}

/// The result of a request of an agent.
#[derive(Debug)]
pub(crate) struct CompletedJob {
    agent: AgentId,
    request: Box<str>,
    outcome: Result<JobOutcome, Fault>,
}

#[derive(Debug)]
enum JobOutcome {
    Response(String),
    /// The command is resolved.
    CreateTerminal(PreparedTerminal),
}

/// A request that accesses the disk.
#[derive(Debug)]
enum DiskRequest {
    Read(ReadFileRequest),
    Write(WriteFileRequest),
    CreateTerminal(CreateParams),
}

#[derive(Debug)]
struct QueuedJob {
    request: Box<str>,
    disk_request: DiskRequest,
    dirs: Vec<PathBuf>,
}

/// The requests of one agent, executed one at a time.
#[derive(Debug)]
struct AgentQueue {
    env: Arc<[(String, String)]>,
    sandbox: Option<Arc<AgentSandbox>>,
    waiting: VecDeque<QueuedJob>,
    is_busy: bool,
}

pub(crate) struct AgentServices {
    spawn_context: SpawnContext,
    queues: BTreeMap<AgentId, AgentQueue>,
    running: usize,
    /// The agent whose request was dispatched last.
    last_agent: AgentId,
    terminals: TerminalTable,
    done: Sender<CompletedJob>,
    events: Sender<(TerminalId, AgentProcessEvent)>,
}

impl AgentServices {
    pub(crate) fn new(
        spawn_context: SpawnContext,
        done: Sender<CompletedJob>,
        events: Sender<(TerminalId, AgentProcessEvent)>,
    ) -> AgentServices {
        let (queues, terminals) = (BTreeMap::new(), TerminalTable::default());
        let (running, last_agent) = (0, AgentId(0));
        AgentServices { spawn_context, queues, running, last_agent, terminals, done, events }
    }

    /// Whether no process is left.
    pub(crate) fn is_over(&self) -> bool {
        self.terminals.have_all_ended()
    }

    /// An agent was started with this environment and in this sandbox; both apply to its files and terminals, too.
    pub(crate) fn on_spawned(
        &mut self,
        agent: AgentId,
        env: &[(String, String)],
        sandbox: Option<Arc<AgentSandbox>>,
    ) {
        let (env, waiting) = (env.into(), VecDeque::new());
        let queue = AgentQueue { env, sandbox, waiting, is_busy: false };
        self.queues.insert(agent, queue);
    }

    /// An agent has ended: its terminals are stopped.
    pub(crate) fn on_gone(&mut self, agent: AgentId) {
        self.queues.remove(&agent);
        self.terminals.stop_all_of(agent, StopUrgency::Soon);
    }

    /// An agent will be stopped.
    pub(crate) fn on_stop(&mut self, agent: AgentId, now: bool) {
        self.terminals.stop_all_of(agent, if now { StopUrgency::Now } else { StopUrgency::Soon });
    }

    /// Ends the tools of a canceled turn that began this long ago.
    pub(crate) fn end_tools(&mut self, agent: AgentId, age: Duration) {
        self.terminals.stop_recent_of(agent, age);
    }

    pub(crate) fn end_now(&mut self) {
        self.terminals.stop_all_now();
    }

    /// Returns the response if it is available at once.
    pub(crate) fn serve(
        &mut self,
        agent: AgentId,
        frame: &Frame,
        dirs: Vec<PathBuf>,
    ) -> Option<ServedResponse> {
        let request = frame.id().expect("an agent asked for it, so it has an id");
        let result = self.accept_request(agent, request, frame, dirs).transpose()?;
        Some(build_response(agent, request, result.map(|it| it.to_string())))
    }

    fn accept_request(
        &mut self,
        agent: AgentId,
        request: &str,
        frame: &Frame,
        dirs: Vec<PathBuf>,
    ) -> Result<Option<Value>, Fault> {
        let unknown = || {
            let method = frame.method().unwrap_or_default().into_owned();
            Fault::MethodNotFound { method }
        };
        let method = frame.known_method().ok_or_else(unknown)?;
        let disk_request = match method {
            Method::FsReadTextFile => DiskRequest::Read(parse_params(frame)?),
            Method::FsWriteTextFile => DiskRequest::Write(parse_params(frame)?),
            Method::TerminalCreate => DiskRequest::CreateTerminal(parse_params(frame)?),
            _ => {
                let on_terminal =
                    |it: &Frame| parse_params(it).map(|TerminalParams { terminal_id }| terminal_id);
                let terminals = &mut self.terminals;
                return match method {
                    Method::TerminalOutput => {
                        terminals.output(agent, &on_terminal(frame)?).map(Some)
                    }
                    Method::TerminalWaitForExit => {
                        terminals.wait(agent, &on_terminal(frame)?, request)
                    }
                    Method::TerminalKill => terminals.kill(agent, &on_terminal(frame)?).map(Some),
                    Method::TerminalRelease => {
                        terminals.release(agent, &on_terminal(frame)?).map(Some)
                    }
                    _ => Err(unknown()),
                };
            }
        };
        let Some(queue) = self.queues.get_mut(&agent) else { return Ok(None) };
        if WAITING_MAX <= queue.waiting.len() {
            let what =
                format!("{WAITING_MAX} file requests are already queued; wait for a response");
            return Err(Fault::Overloaded { what });
        }
        queue.waiting.push_back(QueuedJob { request: request.into(), disk_request, dirs });
        self.dispatch_jobs();
        Ok(None)
    }

    /// Dispatches requests to free threads, to each agent in turn.
    fn dispatch_jobs(&mut self) {
        while self.running < THREADS_MAX {
            let is_ready =
                |(_, it): &(&AgentId, &AgentQueue)| !it.is_busy && !it.waiting.is_empty();
            let after = self.queues.range((Excluded(self.last_agent), Unbounded)).find(is_ready);
            let next = after.or_else(|| self.queues.iter().find(is_ready)).map(|(&agent, _)| agent);
            let Some(agent) = next else { return };
            let queue = self.queues.get_mut(&agent).expect("found");
            let job = queue.waiting.pop_front().expect("not empty");
            queue.is_busy = true;
            self.last_agent = agent;
            let sandbox = queue.sandbox.clone();
            self.running += 1;
            let done = self.done.clone();
            // The thread sends its result itself.
            drop(tokio::task::spawn_blocking(move || {
                let outcome = execute(job.disk_request, &job.dirs, sandbox.as_deref());
                let _ignored =
                    done.blocking_send(CompletedJob { agent, request: job.request, outcome });
            }));
        }
    }

    /// Handles a result and dispatches the next requests.
    pub(crate) fn on_done(&mut self, done: CompletedJob) -> Option<ServedResponse> {
        let CompletedJob { agent, request, outcome } = done;
        self.running -= 1;
        let context = self.queues.get_mut(&agent).map(|it| {
            it.is_busy = false;
            (it.env.clone(), it.sandbox.clone())
        });
        self.dispatch_jobs();
        let result = match outcome {
            Ok(JobOutcome::Response(result)) => Ok(result),
            Ok(JobOutcome::CreateTerminal(prepared)) => {
                let spawner =
                    TerminalSpawner { spawn_context: &self.spawn_context, events: &self.events };
                let (env, sandbox) = context?;
                let prepared = match sandbox {
                    Some(it) => prepared.map_command(|argv| it.wrap_command(argv)),
                    None => prepared,
                };
                match self.terminals.create(&spawner, agent, &request, prepared, &env) {
                    Ok(()) => return None,
                    Err(fault) => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        };
        Some(build_response(agent, &request, result))
    }

    pub(crate) fn on_terminal(
        &mut self,
        id: TerminalId,
        event: AgentProcessEvent,
    ) -> Vec<ServedResponse> {
        self.terminals.on_event(id, event)
    }
}

/// The terminal that a request names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalParams {
    terminal_id: String,
}

fn parse_params<T: DeserializeOwned>(frame: &Frame) -> Result<T, Fault> {
    serde_json::from_str(frame.params().unwrap_or("{}"))
        .map_err(|error| Fault::InvalidParams { why: error.to_string() })
}

fn build_response(agent: AgentId, request: &str, result: Result<String, Fault>) -> ServedResponse {
    let frame = match result {
        Ok(result) => Frame::result_for(request, &result),
        Err(fault) => Frame::error_for(request, &fault),
    };
    ServedResponse { agent, frame }
}

/// Runs on a thread.
fn execute(
    disk_request: DiskRequest,
    dirs: &[PathBuf],
    sandbox: Option<&AgentSandbox>,
) -> Result<JobOutcome, Fault> {
    match disk_request {
        DiskRequest::Read(it) => {
            let target = ConfinedPath::resolve(&it.path, dirs)?;
            check_sandbox(sandbox, &target, |access| access != PathAccess::Hidden)?;
            let content = it.execute_at(&target)?;
            Ok(JobOutcome::Response(json!({ "content": content }).to_string()))
        }
        DiskRequest::Write(it) => {
            let target = ConfinedPath::resolve(&it.path, dirs)?;
            check_sandbox(sandbox, &target, |access| access == PathAccess::Writable)?;
            it.execute_at(&target).map(|()| JobOutcome::Response("{}".to_owned()))
        }
        DiskRequest::CreateTerminal(it) => {
            let cwd = it.cwd.clone().or_else(|| dirs.first().cloned()).unwrap_or_default();
            let confined = ConfinedPath::resolve(&cwd, dirs)?;
            if !confined.missing_components.is_empty() || !confined.path().is_dir() {
                return Err(refuse_path(&cwd, "is not a directory in which a command can run"));
            }
            Ok(JobOutcome::CreateTerminal(PreparedTerminal::new(it, confined.path())))
        }
    }
}

/// Refuses a file that the agent could not use from inside its sandbox. Links are resolved before, and none is
/// followed after.
fn check_sandbox(
    sandbox: Option<&AgentSandbox>,
    target: &ConfinedPath,
    permits: impl FnOnce(PathAccess) -> bool,
) -> Result<(), Fault> {
    let Some(sandbox) = sandbox else { return Ok(()) };
    // A private temporary directory exists inside the sandbox only.
    let rule = sandbox.plan().find_rule(&target.full_path());
    if rule.is_some_and(|it| it.access != PathAccess::Temporary && permits(it.access)) {
        return Ok(());
    }
    let why = format!("is not permitted by the sandbox profile `{}`", sandbox.profile);
    Err(refuse_path(&target.requested, &why))
}
