//! Everything the bus can ask for, and what it has to tell people.

use super::{WorkerCommand, WorkerId};
use bytes::Bytes;
use jackfield_hub::ConnId;
use std::{fmt, sync::Arc};

#[derive(Debug, Clone)]
pub enum BusOutput {
    /// Start a worker; answer with [`super::BusInput::WorkerStarted`] or `WorkerGone`.
    Spawn {
        worker: WorkerId,
        pool: Arc<str>,
        command: Arc<WorkerCommand>,
    },
    /// End a worker's process tree, `now` without asking it first; answer with
    /// [`super::BusInput::WorkerGone`].
    StopWorker {
        worker: WorkerId,
        now: bool,
    },
    ToWorker {
        worker: WorkerId,
        text: Bytes,
    },
    ToClient {
        conn: ConnId,
        text: Bytes,
    },
    /// Stop reading it until [`BusOutput::ResumeWorker`].
    PauseWorker {
        worker: WorkerId,
    },
    ResumeWorker {
        worker: WorkerId,
    },
    /// Stop reading it until [`BusOutput::ResumeClient`].
    PauseClient {
        conn: ConnId,
    },
    ResumeClient {
        conn: ConnId,
    },
    /// Send what is queued and hang up; answer with [`super::BusInput::ClientGone`].
    CloseClient {
        conn: ConnId,
    },
    /// Something worth a log line or a counter.
    Note(BusNote),
    /// After [`super::BusInput::Stop`]: no worker is left and nobody waits.
    Stopped,
}

/// What people want to know. `Display` is the log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusNote {
    WorkerStarted {
        pool: Arc<str>,
        worker: WorkerId,
        pid: u32,
    },
    WorkerEnded {
        pool: Arc<str>,
        worker: WorkerId,
        status: String,
        pending: usize,
    },
    /// It is started again after this pause.
    Restarting {
        pool: Arc<str>,
        pause_ms: u64,
    },
    /// It ended too often, and is tried again after this pause.
    GaveUp {
        pool: Arc<str>,
        ends: usize,
        pause_ms: u64,
    },
    /// It ended, and its pool does not start it again.
    LeftEnded {
        pool: Arc<str>,
    },
    Unhealthy {
        pool: Arc<str>,
        worker: WorkerId,
    },
    /// A message that nobody could be found for; a request was answered with the reason.
    Unrouted {
        from: MessageSender,
        method: String,
        why: String,
    },
    /// An answer nobody waits for, or waits for any more.
    Stray {
        from: MessageSender,
    },
    /// It exceeds a bound for unread bytes or for the time in which it reads nothing, and is closed.
    ClientSlow {
        conn: ConnId,
        unread: usize,
        why: String,
    },
    Reloaded {
        pools: usize,
        workers: usize,
    },
    Draining {
        pending: usize,
    },
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSender {
    Client(ConnId),
    Worker(WorkerId),
}

impl fmt::Display for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageSender::Client(conn) => write!(f, "client {conn}"),
            MessageSender::Worker(worker) => write!(f, "worker {worker}"),
        }
    }
}

impl fmt::Display for BusNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusNote::WorkerStarted { pool, worker, pid } => {
                write!(f, "worker {worker} of pool `{pool}` started as process {pid}")
            }
            BusNote::WorkerEnded { pool, worker, status, pending } => {
                write!(f, "worker {worker} of pool `{pool}` ended: {status}; ")?;
                write!(f, "{pending} requests to it were answered with that")
            }
            BusNote::Restarting { pool, pause_ms } => {
                write!(f, "a worker of pool `{pool}` is started again in {pause_ms} ms")
            }
            BusNote::GaveUp { pool, ends, pause_ms } => {
                write!(f, "a worker of pool `{pool}` ended {ends} times in its window; ")?;
                write!(f, "it is tried again in {pause_ms} ms")
            }
            BusNote::LeftEnded { pool } => {
                write!(f, "a worker of pool `{pool}` is not started again, as configured")
            }
            BusNote::Unhealthy { pool, worker } => {
                write!(f, "worker {worker} of pool `{pool}` says nothing any more and is ended")
            }
            BusNote::Unrouted { from, method, why } => {
                write!(f, "`{method}` of {from} goes nowhere: {why}")
            }
            BusNote::Stray { from } => write!(f, "{from} answers what nobody waits for"),
            BusNote::ClientSlow { conn, unread, why } => {
                write!(f, "client {conn} is closed with {unread} bytes unread: {why}")
            }
            BusNote::Reloaded { pools, workers } => {
                write!(f, "the configuration holds now: {pools} pools, {workers} workers")
            }
            BusNote::Draining { pending } => {
                write!(f, "stopping when {pending} requests are answered")
            }
        }
    }
}
