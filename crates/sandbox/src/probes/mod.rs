//! Attempts to leave a sandbox, as data: what is tried, which profiles permit it, and which part of a layer
//! refuses it.
//!
//! [`PROBES`] is the list. A program inside the sandbox makes the attempts (`os`), and [`JudgedProbe`] compares
//! their outcomes with those without a sandbox and with what the profile promises.

mod expectation;
mod judged_probe;
mod probe_list;
mod refusing_part;

pub use expectation::{ExpectedResult, expected_result};
pub use judged_probe::{JudgedProbe, ProbeVerdict};
pub use probe_list::PROBES;
pub use refusing_part::RefusingPart;

use crate::plan::EnforcementLayer;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// One attempt to leave a sandbox, or to do what an agent needs to do.
#[derive(Debug, PartialEq, Eq)]
pub struct SandboxProbe {
    /// Stable: scripts select probes by it.
    pub name: &'static str,
    pub group: ProbeGroup,
    /// What is tried, in words that complete "an agent can …".
    pub attempt: &'static str,
    pub need: ProbeNeed,
    /// The part of each layer that refuses it; `None` if the layer does not stop it.
    pub bubblewrap: Option<RefusingPart>,
    pub landlock: Option<RefusingPart>,
    /// Whether `jackfield doctor` makes the attempt, too.
    pub is_short: bool,
}

impl SandboxProbe {
    pub fn find(name: &str) -> Option<&'static SandboxProbe> {
        PROBES.iter().find(|it| it.name == name)
    }

    /// What refuses the attempt on a layer.
    pub fn refusing_part(&self, layer: EnforcementLayer) -> Option<RefusingPart> {
        match layer {
            EnforcementLayer::Bubblewrap => self.bubblewrap,
            EnforcementLayer::Landlock => self.landlock,
            // No probe has been run there.
            EnforcementLayer::Seatbelt => None,
        }
    }
}

/// What an attempt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeGroup {
    /// What an agent needs: it is a failure if the profile permits it and it does not work.
    Work,
    Secrets,
    Changes,
    ProtectedFiles,
    Processes,
    Network,
    Kernel,
}

impl fmt::Display for ProbeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProbeGroup::Work => "work of the agent",
            ProbeGroup::Secrets => "secrets",
            ProbeGroup::Changes => "changes outside",
            ProbeGroup::ProtectedFiles => "protected files",
            ProbeGroup::Processes => "other processes",
            ProbeGroup::Network => "network and sockets",
            ProbeGroup::Kernel => "kernel",
        })
    }
}

/// What a profile has to permit for an attempt to work. Paths begin with `~/` (the home directory) or `./` (the
/// project), as in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeNeed {
    Read(&'static str),
    Write(&'static str),
    /// A file in the project that stays read-only if the profile protects files, unless it names this path.
    WriteProtected {
        file: &'static str,
        protected: &'static str,
    },
    /// A file in Jackfield's own folders, which no profile with a sandbox permits.
    ReadOwn(&'static str),
    Variable(&'static str),
    /// The network of the machine.
    Network,
    /// A connection to an address that is not on this machine. The proxy is asked for it; it is not tried if the
    /// profile permits it, because the attempt would leave the machine.
    Address(&'static str),
    /// No sandbox.
    NoSandbox,
}

impl ProbeNeed {
    /// The file that is read or written.
    pub fn path(self, targets: &ProbeTargets) -> Option<PathBuf> {
        match self {
            ProbeNeed::Read(path)
            | ProbeNeed::Write(path)
            | ProbeNeed::WriteProtected { file: path, .. } => Some(targets.resolve(path)),
            ProbeNeed::ReadOwn(name) => Some(targets.own_folder.join(name)),
            ProbeNeed::Variable(_)
            | ProbeNeed::Network
            | ProbeNeed::Address(_)
            | ProbeNeed::NoSandbox => None,
        }
    }
}

/// What the attempts are made on. All of it belongs to the check, and nothing of it to the user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeTargets {
    pub home: PathBuf,
    pub project: PathBuf,
    /// The folder that stands for Jackfield's state and runtime directories.
    pub own_folder: PathBuf,
    pub outside: OutsideTargets,
    /// The text in every file, variable and memory that must not be read.
    pub secret: String,
}

impl ProbeTargets {
    /// The absolute form of a path with `~` or `.` at its start.
    pub fn resolve(&self, path: &str) -> PathBuf {
        let join = |base: &Path, rest: &str| match rest.trim_matches('/') {
            "" => base.to_owned(),
            rest => base.join(rest),
        };
        match (path.strip_prefix('~'), path.strip_prefix('.')) {
            (Some(rest), _) => join(&self.home, rest),
            (None, Some(rest)) => join(&self.project, rest),
            (None, None) => PathBuf::from(path),
        }
    }
}

/// Processes and servers outside of the sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutsideTargets {
    pub process: i32,
    /// An address in the memory of the process.
    pub process_memory: u64,
    /// A segment of shared memory.
    pub shared_memory: i32,
    pub unix_socket: PathBuf,
    pub datagram_socket: PathBuf,
    /// The name of an abstract Unix socket.
    pub abstract_socket: String,
    pub tcp_server: SocketAddr,
    /// It answers each datagram.
    pub udp_server: SocketAddr,
}

/// The attempts that a program has to make, and where it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeRequest {
    pub names: Vec<String>,
    pub targets: ProbeTargets,
    pub is_sandboxed: bool,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeOutcome {
    Worked,
    /// With the name of the error, such as `EACCES`, or another sign of the refusal.
    Refused(String),
    /// The attempt could not be made, which proves nothing.
    Failed(String),
}

/// A line that the program prints for each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeLine {
    pub name: String,
    pub outcome: ProbeOutcome,
}

/// The variable with the secret in the environment of the program. No profile passes it.
pub const SECRET_VARIABLE: &str = "SANDBOX_CHECK_SECRET";

/// Links in the project that an agent may have left there: to a private key, to a file that may not be changed, and
/// to a socket.
pub const KEY_LINK: &str = "key-link";
pub const SETTINGS_LINK: &str = "settings-link";
pub const SOCKET_LINK: &str = "socket-link";

/// Signs of a refusal that are not errors of a system call.
pub const NOTHING_FOUND: &str = "nothing found";
pub const NO_PROXY: &str = "no proxy";
