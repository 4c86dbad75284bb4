//! Everything that can happen to the bus. A closed list.

use super::{BusConfig, WorkerId};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::{Fault, Frame};

#[derive(Debug, Clone)]
pub enum BusInput {
    ClientOpened {
        conn: ConnId,
    },
    ClientSpoke {
        conn: ConnId,
        frame: Frame,
    },
    /// A client said something that is no message.
    ClientSentInvalidFrame {
        conn: ConnId,
        fault: Fault,
    },
    /// So many bytes of the texts for this client are on their way.
    ClientWrote {
        conn: ConnId,
        bytes: usize,
    },
    /// A client will say nothing more but still listens.
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
    WorkerSpoke {
        worker: WorkerId,
        frame: Frame,
    },
    /// So many bytes for this worker, newlines included, are on their way.
    WorkerWrote {
        worker: WorkerId,
        bytes: usize,
    },
    /// A worker ended, or could not be started. `clean`: it ended well, by itself.
    WorkerGone {
        worker: WorkerId,
        exit: Exit,
        clean: bool,
    },
    /// The configuration was read again. What runs and still fits goes on.
    Reload {
        config: BusConfig,
    },
    /// The time asked for by [`super::Bus::poll_timeout`] has come.
    Tick,
    /// End: the first time when what is asked is answered, the second time now.
    Stop,
}
