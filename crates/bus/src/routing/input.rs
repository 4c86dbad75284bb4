//! Inputs of the bus.

use super::{config::BusConfig, ids::WorkerId};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::{Fault, Frame};

#[derive(Debug, Clone)]
pub enum BusInput {
    ClientOpened {
        conn: ConnId,
    },
    ClientSentFrame {
        conn: ConnId,
        frame: Frame,
    },
    /// A client sent a line that is not a JSON-RPC message.
    ClientSentInvalidFrame {
        conn: ConnId,
        fault: Fault,
    },
    /// This many bytes for the client were written to its socket.
    ClientWrote {
        conn: ConnId,
        bytes: usize,
    },
    /// The client has closed its sending side but still reads.
    ClientFinished {
        conn: ConnId,
    },
    ClientGone {
        conn: ConnId,
    },
    WorkerStarted {
        worker: WorkerId,
        pid: u32,
    },
    WorkerSentFrame {
        worker: WorkerId,
        frame: Frame,
    },
    /// This many bytes for the worker, including newlines, were written to its pipe.
    WorkerWrote {
        worker: WorkerId,
        bytes: usize,
    },
    /// A worker ended, or could not be started. `clean`: it exited by itself with status 0.
    WorkerGone {
        worker: WorkerId,
        exit: Exit,
        clean: bool,
    },
    /// The configuration was reloaded. Workers and pools that did not change continue.
    Reload {
        config: BusConfig,
    },
    /// The time of [`super::Bus::poll_timeout`] has come.
    Tick,
    /// Stop: the first time after pending requests are answered, the second time immediately.
    Stop,
}
