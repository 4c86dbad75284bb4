//! What no client serves, we serve: files and terminals of an agent, inside its session's directories.
//!
//! The crate `inside` reads and writes, `terminals` runs commands. Whatever touches the disk runs on a thread of its own, for one agent
//! in the order asked; the loop only hands out work and answers.

mod terminals;

pub(crate) use terminals::TerminalId;

use crate::effects::Ground;
use jackfield_agents::{AgentEvent, StopUrgency};
use jackfield_hub::AgentId;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame};
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
use terminals::{Create, Prepared, Stage, Terminals};
use tokio::sync::mpsc::Sender;

/// Threads that work on files at once: disks are not faster with more, and answers are large.
const AT_ONCE_MAX: usize = 4;
/// What one agent may have waiting; an agent waits for its answers.
const WAITING_MAX: usize = 256;

/// An answer to an agent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) agent: AgentId,
    pub(crate) frame: Frame,
}

/// What a thread has done for an agent.
#[derive(Debug)]
pub(crate) struct Done {
    agent: AgentId,
    request: Box<str>,
    what: Result<Outcome, Fault>,
}

#[derive(Debug)]
enum Outcome {
    Answer(String),
    /// It is clear what is to be run.
    Create(Prepared),
}

/// What has to do with the disk.
#[derive(Debug)]
enum Work {
    Read(ReadFileRequest),
    Write(WriteFileRequest),
    Create(Create),
}

#[derive(Debug)]
struct Job {
    request: Box<str>,
    work: Work,
    dirs: Vec<PathBuf>,
}

/// One agent's work: one piece at a time.
#[derive(Debug)]
struct Desk {
    env: Arc<[(String, String)]>,
    waiting: VecDeque<Job>,
    busy: bool,
}

pub(crate) struct Served {
    ground: Ground,
    desks: BTreeMap<AgentId, Desk>,
    at_work: usize,
    /// Who was given work last.
    last: AgentId,
    terminals: Terminals,
    done: Sender<Done>,
    events: Sender<(TerminalId, AgentEvent)>,
}

impl Served {
    pub(crate) fn new(
        ground: Ground,
        done: Sender<Done>,
        events: Sender<(TerminalId, AgentEvent)>,
    ) -> Served {
        let (desks, terminals) = (BTreeMap::new(), Terminals::default());
        let (at_work, last) = (0, AgentId(0));
        Served { ground, desks, at_work, last, terminals, done, events }
    }

    /// Whether no process of ours is left.
    pub(crate) fn is_over(&self) -> bool {
        self.terminals.are_over()
    }

    /// An agent is started with this environment; its terminals get the same.
    pub(crate) fn on_spawned(&mut self, agent: AgentId, env: &[(String, String)]) {
        let desk = Desk { env: env.into(), waiting: VecDeque::new(), busy: false };
        self.desks.insert(agent, desk);
    }

    /// An agent is gone: nobody hears answers, and its terminals end.
    pub(crate) fn on_gone(&mut self, agent: AgentId) {
        self.desks.remove(&agent);
        self.terminals.end_all_of(agent, StopUrgency::Soon);
    }

    /// An agent will be gone.
    pub(crate) fn on_stop(&mut self, agent: AgentId, now: bool) {
        self.terminals.end_all_of(agent, if now { StopUrgency::Now } else { StopUrgency::Soon });
    }

    /// A turn of an agent that began so long ago was cancelled.
    pub(crate) fn end_tools(&mut self, agent: AgentId, age: Duration) {
        self.terminals.end_young_of(agent, age);
    }

    pub(crate) fn end_now(&mut self) {
        self.terminals.end_now();
    }

    /// The answer, if it is there already.
    pub(crate) fn serve(
        &mut self,
        agent: AgentId,
        frame: &Frame,
        dirs: Vec<PathBuf>,
    ) -> Option<Answer> {
        let request = frame.id().expect("an agent asked for it, so it has an id");
        let result = self.take(agent, request, frame, dirs).transpose()?;
        Some(answer(agent, request, result.map(|it| it.to_string())))
    }

    fn take(
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
        let work = match method {
            Method::FsReadTextFile => Work::Read(params(frame)?),
            Method::FsWriteTextFile => Work::Write(params(frame)?),
            Method::TerminalCreate => Work::Create(params(frame)?),
            _ => {
                let on_terminal =
                    |it: &Frame| params(it).map(|OnTerminal { terminal_id }| terminal_id);
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
        let Some(desk) = self.desks.get_mut(&agent) else { return Ok(None) };
        if WAITING_MAX <= desk.waiting.len() {
            let what = format!("{WAITING_MAX} requests for files wait already: wait for an answer");
            return Err(Fault::Overloaded { what });
        }
        desk.waiting.push_back(Job { request: request.into(), work, dirs });
        self.hand_out();
        Ok(None)
    }

    /// Gives work to as many threads as there may be, to each agent in turn.
    fn hand_out(&mut self) {
        while self.at_work < AT_ONCE_MAX {
            let ready = |(_, it): &(&AgentId, &Desk)| !it.busy && !it.waiting.is_empty();
            let after = self.desks.range((Excluded(self.last), Unbounded)).find(ready);
            let next = after.or_else(|| self.desks.iter().find(ready)).map(|(&agent, _)| agent);
            let Some(agent) = next else { return };
            let desk = self.desks.get_mut(&agent).expect("found");
            let job = desk.waiting.pop_front().expect("not empty");
            desk.busy = true;
            self.last = agent;
            self.at_work += 1;
            let done = self.done.clone();
            // It is not waited for: it tells by itself.
            drop(tokio::task::spawn_blocking(move || {
                let what = run(job.work, &job.dirs);
                let _unheard = done.blocking_send(Done { agent, request: job.request, what });
            }));
        }
    }

    /// A thread has done something; there may be more to do.
    pub(crate) fn on_done(&mut self, done: Done) -> Option<Answer> {
        let Done { agent, request, what } = done;
        self.at_work -= 1;
        let env = self.desks.get_mut(&agent).map(|it| {
            it.busy = false;
            it.env.clone()
        });
        self.hand_out();
        let result = match what {
            Ok(Outcome::Answer(result)) => Ok(result),
            Ok(Outcome::Create(prepared)) => {
                let stage = Stage { ground: &self.ground, events: &self.events };
                match self.terminals.create(&stage, agent, &request, prepared, &env?) {
                    Ok(()) => return None,
                    Err(fault) => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        };
        Some(answer(agent, &request, result))
    }

    pub(crate) fn on_terminal(&mut self, id: TerminalId, event: AgentEvent) -> Vec<Answer> {
        self.terminals.on_event(id, event)
    }
}

/// The terminal that a request is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnTerminal {
    terminal_id: String,
}

fn params<T: DeserializeOwned>(frame: &Frame) -> Result<T, Fault> {
    serde_json::from_str(frame.params().unwrap_or("{}"))
        .map_err(|error| Fault::InvalidParams { why: error.to_string() })
}

fn answer(agent: AgentId, request: &str, result: Result<String, Fault>) -> Answer {
    let frame = match result {
        Ok(result) => Frame::result_for(request, &result),
        Err(fault) => Frame::error_for(request, &fault),
    };
    Answer { agent, frame }
}

/// On a thread of its own.
fn run(work: Work, dirs: &[PathBuf]) -> Result<Outcome, Fault> {
    match work {
        Work::Read(it) => {
            let content = it.execute(dirs)?;
            Ok(Outcome::Answer(json!({ "content": content }).to_string()))
        }
        Work::Write(it) => it.execute(dirs).map(|()| Outcome::Answer("{}".to_owned())),
        Work::Create(it) => {
            let cwd = it.cwd.clone().or_else(|| dirs.first().cloned()).unwrap_or_default();
            let place = ConfinedPath::resolve(&cwd, dirs)?;
            if !place.missing_components.is_empty() || !place.path().is_dir() {
                return Err(refuse_path(&cwd, "is no directory in which a command can run"));
            }
            Ok(Outcome::Create(Prepared::new(it, place.path())))
        }
    }
}
