//! The process of a client, as it was found when the client connected.

use crate::AgentId;
use jackfield_events::RawJson;
use serde_json::json;
use std::{fmt, sync::Arc};

/// What the operating system reports about the process of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerProcess {
    /// `None` if it has no pid in the pid namespace of the daemon.
    pub pid: Option<u32>,
    pub uid: u32,
    /// The executable, if it can be read.
    pub exe: Option<Arc<str>>,
    pub place: PeerPlace,
}

/// Where the process of a client is relative to the process trees of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPlace {
    Outside,
    /// In the process tree of this agent, or of a terminal that the daemon runs for it.
    BelowAgent(AgentId),
    /// The process had ended, or its ancestors could not be determined.
    Unknown,
}

impl PeerProcess {
    /// As the log stores it.
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
