//! Carrying out what the bus asks. Nothing here decides anything, and nothing here waits.

use crate::metrics::Meters;
use crate::observe;
use crate::routing::{BACKLOG, BusInput, BusOutput, WorkerCommand, WorkerId};
use bytes::Bytes;
use jackfield_agents::{
    AgentEvent, AgentHandle, GuardCommand, LaunchCommand, ProcessLedger, ProcessLimits, SpawnError,
    StdoutFormat, StopUrgency, spawn_agent_with_limits,
};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::chain;
use jackfield_transport::ClientHandle;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// What every worker is started with.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) guard: GuardCommand,
    pub(crate) ledger: ProcessLedger,
    /// Marks the processes of this bus among all of the machine.
    pub(crate) mark: String,
    /// Where workers start whose pool names no directory.
    pub(crate) cwd: PathBuf,
    /// What they see of our environment: all of it.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) frame_bytes_max: usize,
}

/// An edge, and whether it has something to flush at the end of the turn.
#[derive(Debug)]
pub(crate) struct Edge<H> {
    pub(crate) handle: H,
    dirty: bool,
}

/// A worker while its process tree is there.
pub(crate) struct Worker {
    pub(crate) edge: Edge<AgentHandle>,
    pub(crate) pool: Arc<str>,
    pub(crate) pid: Option<u32>,
}

/// The hands of the loop: the edges, and what is on its way to them.
pub(crate) struct Effects {
    conns: BTreeMap<ConnId, Edge<ClientHandle>>,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    pub(crate) ground: Ground,
    worker_events: Sender<(WorkerId, AgentEvent)>,
    pub(crate) meters: Meters,
    dirty_conns: Vec<ConnId>,
    dirty_workers: Vec<WorkerId>,
    /// What carrying out an output made happen at once.
    pub(crate) inputs: VecDeque<BusInput>,
    pub(crate) stopped: bool,
}

impl Effects {
    pub(crate) fn new(ground: Ground, worker_events: Sender<(WorkerId, AgentEvent)>) -> Effects {
        Effects {
            conns: BTreeMap::new(),
            workers: BTreeMap::new(),
            ground,
            worker_events,
            meters: Meters::default(),
            dirty_conns: Vec::new(),
            dirty_workers: Vec::new(),
            inputs: VecDeque::new(),
            stopped: false,
        }
    }

    pub(crate) fn add_conn(&mut self, conn: ConnId, handle: ClientHandle) {
        self.conns.insert(conn, Edge { handle, dirty: false });
    }

    pub(crate) fn remove_conn(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    pub(crate) fn has_conns(&self) -> bool {
        !self.conns.is_empty()
    }

    /// Nothing waits to be written to any client.
    pub(crate) fn is_all_said(&self) -> bool {
        self.conns.values().all(|it| it.handle.queued_bytes() == 0)
    }

    pub(crate) fn carry_out(&mut self, output: BusOutput) {
        match output {
            BusOutput::ToClient { conn, text } => self.tell_client(conn, text),
            BusOutput::ToWorker { worker, text } => self.tell_worker(worker, text),
            BusOutput::PauseWorker { worker } => self.with_worker(worker, AgentHandle::pause),
            BusOutput::ResumeWorker { worker } => self.with_worker(worker, AgentHandle::resume),
            BusOutput::PauseClient { conn } => self.with_conn(conn, ClientHandle::pause),
            BusOutput::ResumeClient { conn } => self.with_conn(conn, ClientHandle::resume),
            BusOutput::CloseClient { conn } => {
                self.with_conn(conn, ClientHandle::close_after_flush);
            }
            BusOutput::Spawn { worker, pool, command } => self.spawn(worker, pool, &command),
            BusOutput::StopWorker { worker, now } => {
                let how = if now { StopUrgency::Now } else { StopUrgency::Polite };
                self.with_worker(worker, |it| it.stop(how));
            }
            BusOutput::Note(note) => {
                self.meters.on_note(&note);
                observe::note(&note);
            }
            BusOutput::Stopped => self.stopped = true,
        }
    }

    pub(crate) fn tell_client(&mut self, conn: ConnId, text: Bytes) {
        let Some(edge) = self.conns.get_mut(&conn) else { return };
        edge.handle.send(text);
        if !edge.dirty {
            edge.dirty = true;
            self.dirty_conns.push(conn);
        }
    }

    fn tell_worker(&mut self, worker: WorkerId, text: Bytes) {
        let Some(Worker { edge, .. }) = self.workers.get_mut(&worker) else { return };
        match edge.handle.send(text) {
            Ok(()) if edge.dirty => {}
            Ok(()) => {
                edge.dirty = true;
                self.dirty_workers.push(worker);
            }
            Err(full) => {
                // The bus keeps far below this.
                tracing::error!(%worker, %full, "a worker does not read; it is stopped");
                edge.handle.stop(StopUrgency::Now);
            }
        }
    }

    pub(crate) fn with_conn(&mut self, conn: ConnId, act: impl FnOnce(&mut ClientHandle)) {
        if let Some(edge) = self.conns.get_mut(&conn) {
            act(&mut edge.handle);
        }
    }

    pub(crate) fn with_worker(&mut self, worker: WorkerId, act: impl FnOnce(&mut AgentHandle)) {
        if let Some(it) = self.workers.get_mut(&worker) {
            act(&mut it.edge.handle);
        }
    }

    fn spawn(&mut self, worker: WorkerId, pool: Arc<str>, command: &WorkerCommand) {
        let mut env: BTreeMap<String, String> = self.ground.env.iter().cloned().collect();
        env.extend(command.env.iter().cloned());
        let launch = LaunchCommand {
            argv: command.argv.clone(),
            cwd: command.cwd.as_ref().map_or_else(|| self.ground.cwd.clone(), PathBuf::from),
            env: env.into_iter().collect(),
            stdout_format: StdoutFormat::Frames,
        };
        let limits = ProcessLimits {
            frame_bytes_max: self.ground.frame_bytes_max,
            backlog_bytes_max: 2 * BACKLOG.own_max,
            ..ProcessLimits::default()
        };
        let ground = &self.ground;
        let mark = format!("{}-{worker}", ground.mark);
        let events = self.worker_events.clone();
        let (guard, ledger) = (&ground.guard, &ground.ledger);
        match spawn_agent_with_limits(limits, guard, &launch, &mark, ledger, events, worker) {
            Ok(handle) => {
                let edge = Edge { handle, dirty: false };
                self.workers.insert(worker, Worker { edge, pool, pid: None });
            }
            Err(error) => self.not_started(worker, &error),
        }
    }

    fn not_started(&mut self, worker: WorkerId, error: &SpawnError) {
        let way_out = error.shortage();
        let status = match way_out {
            Some(way_out) => format!("{}; {way_out}", chain(error)),
            None => chain(error),
        };
        let shortage = way_out.is_some();
        let exit = Exit { status, stderr: String::new(), started: false, shortage };
        self.inputs.push_back(BusInput::WorkerGone { worker, exit, clean: false });
    }

    /// Writes what is queued, one call for each edge that has something, and says what left.
    pub(crate) fn flush(&mut self) {
        for conn in std::mem::take(&mut self.dirty_conns) {
            let Some(edge) = self.conns.get_mut(&conn) else { continue };
            edge.dirty = false;
            let bytes = edge.handle.flush();
            if 0 < bytes {
                self.inputs.push_back(BusInput::ClientWrote { conn, bytes });
            }
        }
        for worker in std::mem::take(&mut self.dirty_workers) {
            let Some(it) = self.workers.get_mut(&worker) else { continue };
            it.edge.dirty = false;
            let bytes = it.edge.handle.flush();
            if 0 < bytes {
                self.inputs.push_back(BusInput::WorkerWrote { worker, bytes });
            }
        }
    }
}
