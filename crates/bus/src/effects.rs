//! Carries out the outputs of the bus. Nothing here decides anything or waits.

use crate::metrics::{BusMetricsSnapshot, NoteCounters, WorkerSample};
use crate::observe;
use crate::routing::{BACKLOG_LIMITS, BusGauges, BusInput, BusOutput, WorkerCommand, WorkerId};
use bytes::Bytes;
use jackfield_agents::{
    AgentHandle, AgentProcessEvent, GuardCommand, LaunchCommand, ProcessLedger, ProcessLimits,
    SpawnError, StdoutFormat, StopUrgency, spawn_agent_with_limits,
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
pub(crate) struct WorkerSpawnContext {
    pub(crate) guard: GuardCommand,
    pub(crate) ledger: ProcessLedger,
    /// Marks the processes of this bus among all processes of the machine.
    pub(crate) mark: String,
    /// The working directory of workers whose pool does not set one.
    pub(crate) cwd: PathBuf,
    /// The environment of the bus, which workers inherit.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) frame_bytes_max: usize,
}

/// A handle, and whether it must be flushed at the end of this iteration of the loop.
#[derive(Debug)]
struct TrackedHandle<H> {
    handle: H,
    dirty: bool,
}

/// A worker whose process tree exists.
struct RunningWorker {
    tracked: TrackedHandle<AgentHandle>,
    pool: Arc<str>,
    pid: Option<u32>,
}

/// Connections and workers of the loop.
pub(crate) struct BusEffects {
    conns: BTreeMap<ConnId, TrackedHandle<ClientHandle>>,
    workers: BTreeMap<WorkerId, RunningWorker>,
    spawn_context: WorkerSpawnContext,
    worker_events: Sender<(WorkerId, AgentProcessEvent)>,
    note_counters: NoteCounters,
    dirty_conns: Vec<ConnId>,
    dirty_workers: Vec<WorkerId>,
    /// Inputs that result from an output at once.
    inputs: VecDeque<BusInput>,
    /// The bus has stopped.
    stopped: bool,
}

impl BusEffects {
    pub(crate) fn new(
        spawn_context: WorkerSpawnContext,
        worker_events: Sender<(WorkerId, AgentProcessEvent)>,
    ) -> BusEffects {
        BusEffects {
            conns: BTreeMap::new(),
            workers: BTreeMap::new(),
            spawn_context,
            worker_events,
            note_counters: NoteCounters::default(),
            dirty_conns: Vec::new(),
            dirty_workers: Vec::new(),
            inputs: VecDeque::new(),
            stopped: false,
        }
    }

    pub(crate) fn add_conn(&mut self, conn: ConnId, handle: ClientHandle) {
        self.conns.insert(conn, TrackedHandle { handle, dirty: false });
    }

    pub(crate) fn remove_conn(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    pub(crate) fn has_conns(&self) -> bool {
        !self.conns.is_empty()
    }

    /// Whether everything is written to all clients.
    pub(crate) fn is_all_written(&self) -> bool {
        self.conns.values().all(|it| it.handle.queued_bytes() == 0)
    }

    /// The bus has stopped, and no process is left.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped && self.workers.is_empty()
    }

    pub(crate) fn frame_bytes_max(&self) -> usize {
        self.spawn_context.frame_bytes_max
    }

    /// Applies to new connections and new workers.
    pub(crate) fn set_frame_bytes_max(&mut self, bytes: usize) {
        self.spawn_context.frame_bytes_max = bytes;
    }

    pub(crate) fn set_worker_pid(&mut self, worker: WorkerId, pid: u32) {
        if let Some(it) = self.workers.get_mut(&worker) {
            it.pid = Some(pid);
        }
    }

    /// Removes a worker whose process tree has ended.
    pub(crate) fn remove_worker(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
    }

    /// The next input that results from an output.
    pub(crate) fn pop_input(&mut self) -> Option<BusInput> {
        self.inputs.pop_front()
    }

    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    pub(crate) fn create_snapshot(&self, gauges: BusGauges) -> BusMetricsSnapshot {
        let workers = self.workers.iter().map(|(id, it)| WorkerSample {
            id: *id,
            pool: Arc::clone(&it.pool),
            pid: it.pid,
            backlog: it.tracked.handle.backlog(),
        });
        let note_counters = self.note_counters.clone();
        BusMetricsSnapshot { gauges, note_counters, workers: workers.collect() }
    }

    pub(crate) fn carry_out(&mut self, output: BusOutput) {
        match output {
            BusOutput::SendToClient { conn, text } => self.send_to_client(conn, text),
            BusOutput::SendToWorker { worker, text } => self.send_to_worker(worker, text),
            BusOutput::PauseWorker { worker } => self.with_worker(worker, AgentHandle::pause),
            BusOutput::ResumeWorker { worker } => self.with_worker(worker, AgentHandle::resume),
            BusOutput::PauseClient { conn } => self.with_conn(conn, ClientHandle::pause),
            BusOutput::ResumeClient { conn } => self.with_conn(conn, ClientHandle::resume),
            BusOutput::CloseClient { conn } => {
                self.with_conn(conn, ClientHandle::close_after_flush);
            }
            BusOutput::SpawnWorker { worker, pool, command } => {
                self.spawn_worker(worker, pool, &command);
            }
            BusOutput::StopWorker { worker, now } => {
                let urgency = if now { StopUrgency::Now } else { StopUrgency::Polite };
                self.with_worker(worker, |it| it.stop(urgency));
            }
            BusOutput::Note(note) => {
                self.note_counters.on_note(&note);
                observe::log_note(&note);
            }
            BusOutput::Stopped => self.stopped = true,
        }
    }

    pub(crate) fn send_to_client(&mut self, conn: ConnId, text: Bytes) {
        let Some(tracked) = self.conns.get_mut(&conn) else { return };
        tracked.handle.send(text);
        if !tracked.dirty {
            tracked.dirty = true;
            self.dirty_conns.push(conn);
        }
    }

    fn send_to_worker(&mut self, worker: WorkerId, text: Bytes) {
        let Some(RunningWorker { tracked, .. }) = self.workers.get_mut(&worker) else { return };
        match tracked.handle.send(text) {
            Ok(()) if tracked.dirty => {}
            Ok(()) => {
                tracked.dirty = true;
                self.dirty_workers.push(worker);
            }
            Err(full) => {
                // The bus refuses messages long before this limit.
                tracing::error!(%worker, %full, "worker does not read its input; stopping it");
                tracked.handle.stop(StopUrgency::Now);
            }
        }
    }

    pub(crate) fn with_conn(&mut self, conn: ConnId, apply: impl FnOnce(&mut ClientHandle)) {
        if let Some(tracked) = self.conns.get_mut(&conn) {
            apply(&mut tracked.handle);
        }
    }

    pub(crate) fn with_worker(&mut self, worker: WorkerId, apply: impl FnOnce(&mut AgentHandle)) {
        if let Some(it) = self.workers.get_mut(&worker) {
            apply(&mut it.tracked.handle);
        }
    }

    fn spawn_worker(&mut self, worker: WorkerId, pool: Arc<str>, command: &WorkerCommand) {
        let mut env: BTreeMap<String, String> = self.spawn_context.env.iter().cloned().collect();
        env.extend(command.env.iter().cloned());
        let launch = LaunchCommand {
            argv: command.argv.clone(),
            cwd: command.cwd.as_ref().map_or_else(|| self.spawn_context.cwd.clone(), PathBuf::from),
            env: env.into_iter().collect(),
            stdout_format: StdoutFormat::Frames,
        };
        let limits = ProcessLimits {
            frame_bytes_max: self.spawn_context.frame_bytes_max,
            backlog_bytes_max: 2 * BACKLOG_LIMITS.own_max,
            ..ProcessLimits::default()
        };
        let spawn_context = &self.spawn_context;
        let mark = format!("{}-{worker}", spawn_context.mark);
        let events = self.worker_events.clone();
        let (guard, ledger) = (&spawn_context.guard, &spawn_context.ledger);
        match spawn_agent_with_limits(limits, guard, &launch, &mark, ledger, events, worker) {
            Ok(handle) => {
                let tracked = TrackedHandle { handle, dirty: false };
                self.workers.insert(worker, RunningWorker { tracked, pool, pid: None });
            }
            Err(error) => self.on_spawn_failed(worker, &error),
        }
    }

    fn on_spawn_failed(&mut self, worker: WorkerId, error: &SpawnError) {
        let hint = error.shortage();
        let status = match hint {
            Some(hint) => format!("{}; {hint}", chain(error)),
            None => chain(error),
        };
        let shortage = hint.is_some();
        let exit = Exit { status, stderr: String::new(), started: false, shortage };
        self.inputs.push_back(BusInput::WorkerGone { worker, exit, clean: false });
    }

    /// Flushes every handle with queued bytes, and reports what was written.
    pub(crate) fn flush(&mut self) {
        for conn in std::mem::take(&mut self.dirty_conns) {
            let Some(tracked) = self.conns.get_mut(&conn) else { continue };
            tracked.dirty = false;
            let bytes = tracked.handle.flush();
            if 0 < bytes {
                self.inputs.push_back(BusInput::ClientWrote { conn, bytes });
            }
        }
        for worker in std::mem::take(&mut self.dirty_workers) {
            let Some(it) = self.workers.get_mut(&worker) else { continue };
            it.tracked.dirty = false;
            let bytes = it.tracked.handle.flush();
            if 0 < bytes {
                self.inputs.push_back(BusInput::WorkerWrote { worker, bytes });
            }
        }
    }
}
