//! The parts of a sandbox that refuse something, and the signs by which they are recognized.

use super::{NO_PROXY, NOTHING_FOUND};
use serde::{Serialize, Serializer};
use std::fmt;

/// What refuses an attempt first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusingPart {
    MountNamespace,
    PidNamespace,
    IpcNamespace,
    NetworkNamespace,
    CallFilter,
    Landlock,
    /// The process outside that makes the connections and changes of a process with Landlock.
    CallSupervisor,
    NetworkProxy,
    EnvironmentFilter,
    /// Descriptors are closed when the program is started.
    ClosedDescriptors,
    /// The process cannot gain rights by executing a program.
    NoNewPrivileges,
    NoCapabilities,
}

impl RefusingPart {
    /// Whether this part refuses with such a sign. A refusal with another one has another cause.
    pub fn explains(self, sign: &str) -> bool {
        let signs: &[&str] = match self {
            RefusingPart::MountNamespace => &["ENOENT", "EROFS", "EACCES", "EXDEV", "EBUSY"],
            RefusingPart::PidNamespace => &["ENOENT", "ESRCH"],
            RefusingPart::IpcNamespace => &["EINVAL", "ENOENT"],
            RefusingPart::NetworkNamespace => &["ECONNREFUSED", "ENETUNREACH"],
            RefusingPart::CallFilter => {
                &["EPERM", "ENOSYS", "EACCES", "EAFNOSUPPORT", "EOPNOTSUPP"]
            }
            RefusingPart::Landlock => &["EACCES", "EPERM", "EXDEV"],
            RefusingPart::CallSupervisor => &["EACCES", "ECONNREFUSED"],
            RefusingPart::NetworkProxy => &["403", NO_PROXY],
            RefusingPart::EnvironmentFilter
            | RefusingPart::ClosedDescriptors
            | RefusingPart::NoNewPrivileges => &[NOTHING_FOUND],
            RefusingPart::NoCapabilities => &["EPERM"],
        };
        signs.contains(&sign)
    }
}

impl fmt::Display for RefusingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusingPart::MountNamespace => "mount namespace",
            RefusingPart::PidNamespace => "process namespace",
            RefusingPart::IpcNamespace => "IPC namespace",
            RefusingPart::NetworkNamespace => "network namespace",
            RefusingPart::CallFilter => "seccomp filter",
            RefusingPart::Landlock => "Landlock",
            RefusingPart::CallSupervisor => "supervisor",
            RefusingPart::NetworkProxy => "network proxy",
            RefusingPart::EnvironmentFilter => "environment filter",
            RefusingPart::ClosedDescriptors => "closed descriptors",
            RefusingPart::NoNewPrivileges => "no_new_privs",
            RefusingPart::NoCapabilities => "no capabilities",
        })
    }
}

impl Serialize for RefusingPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
