//! Outputs and log notes of the bus.

use super::{config::WorkerCommand, ids::WorkerId};
use bytes::Bytes;
use jackfield_hub::ConnId;
use std::{fmt, sync::Arc};

#[derive(Debug, Clone)]
pub enum BusOutput {
    /// Start a worker; respond with [`super::BusInput::WorkerStarted`] or `WorkerGone`.
    SpawnWorker {
        worker: WorkerId,
        pool: Arc<str>,
        command: Arc<WorkerCommand>,
    },
    /// Stop the process tree of a worker, `now` without a grace period; respond with
    /// [`super::BusInput::WorkerGone`].
    StopWorker {
        worker: WorkerId,
        now: bool,
    },
    SendToWorker {
        worker: WorkerId,
        text: Bytes,
    },
    SendToClient {
        conn: ConnId,
        text: Bytes,
    },
    /// Stop reading the worker until [`BusOutput::ResumeWorker`].
    PauseWorker {
        worker: WorkerId,
    },
    ResumeWorker {
        worker: WorkerId,
    },
    /// Stop reading the client until [`BusOutput::ResumeClient`].
    PauseClient {
        conn: ConnId,
    },
    ResumeClient {
        conn: ConnId,
    },
    /// Send what is queued and close; respond with [`super::BusInput::ClientGone`].
    CloseClient {
        conn: ConnId,
    },
    /// Write a log line.
    Note(BusNote),
    /// After [`super::BusInput::Stop`]: no worker is left and all requests are answered.
    Stopped,
}

/// Events for the log. `Display` is the log line.
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
    /// The worker is restarted after this delay.
    Restarting {
        pool: Arc<str>,
        pause_ms: u64,
    },
    /// The worker ended too often, and is restarted after this delay.
    GaveUp {
        pool: Arc<str>,
        ends: usize,
        pause_ms: u64,
    },
    /// The worker ended, and its pool does not restart it.
    NotRestarted {
        pool: Arc<str>,
    },
    Unhealthy {
        pool: Arc<str>,
        worker: WorkerId,
    },
    /// A message could not be routed; a request was answered with the reason.
    Unrouted {
        from: MessageSender,
        method: String,
        reason: String,
    },
    /// A response without a pending request.
    Stray {
        from: MessageSender,
    },
    /// The client exceeds a limit for unread bytes or for the time in which it reads nothing, and
    /// is closed.
    ClientSlow {
        conn: ConnId,
        unread: usize,
        reason: String,
    },
    Reloaded {
        pools: usize,
        workers: usize,
    },
    Draining {
        pending: usize,
    },
}

/// The sender of a message.
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
                write!(f, "{pending} requests to it were answered with an error")
            }
            BusNote::Restarting { pool, pause_ms } => {
                write!(f, "restarting a worker of pool `{pool}` in {pause_ms} ms")
            }
            BusNote::GaveUp { pool, ends, pause_ms } => {
                write!(
                    f,
                    "a worker of pool `{pool}` ended {ends} times within the restart window; "
                )?;
                write!(f, "restarting it in {pause_ms} ms")
            }
            BusNote::NotRestarted { pool } => {
                write!(f, "not restarting a worker of pool `{pool}`, as configured")
            }
            BusNote::Unhealthy { pool, worker } => {
                write!(f, "worker {worker} of pool `{pool}` failed its health check; stopping it")
            }
            BusNote::Unrouted { from, method, reason } => {
                write!(f, "failed to route `{method}` of {from}: {reason}")
            }
            BusNote::Stray { from } => {
                write!(f, "{from} sent a response without a pending request")
            }
            BusNote::ClientSlow { conn, unread, reason } => {
                write!(f, "closing client {conn} with {unread} unread bytes: {reason}")
            }
            BusNote::Reloaded { pools, workers } => {
                write!(f, "reloaded the configuration: {pools} pools, {workers} workers")
            }
            BusNote::Draining { pending } => {
                write!(f, "stopping after {pending} pending requests")
            }
        }
    }
}
