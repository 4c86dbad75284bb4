//! The process at the other end of a connection, as the driver found it when the client connected.

use crate::AgentId;
use jackfield_events::RawJson;
use serde_json::json;
use std::{fmt, sync::Arc};

/// What the operating system says about a client, beside the name that it gives itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerProcess {
    /// `None` if it has no number in the pid namespace of the daemon.
    pub pid: Option<u32>,
    pub uid: u32,
    /// The file that it runs, where that can be read.
    pub exe: Option<Arc<str>>,
    pub place: PeerPlace,
}

/// Where a client's process is among the process trees of the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPlace {
    Outside,
    /// In the tree of this agent, or of a terminal that the daemon runs for it.
    BelowAgent(AgentId),
    /// The process had ended, or could not be followed to its ancestors.
    Unknown,
}

impl PeerProcess {
    /// As it is written down beside what the client did.
    pub(crate) fn to_json(&self) -> RawJson {
        let mut peer = json!({ "uid": self.uid });
        if let Some(pid) = self.pid {
            peer["pid"] = pid.into();
        }
        if let Some(exe) = &self.exe {
            peer["exe"] = (&**exe).into();
        }
        RawJson::trusted(peer.to_string())
    }
}

impl fmt::Display for PeerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("a process")?,
        }
        match &self.exe {
            Some(exe) => write!(f, " (`{exe}`)"),
            None => Ok(()),
        }
    }
}
