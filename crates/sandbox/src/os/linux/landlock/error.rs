//! Why a plan cannot be enforced with Landlock, with the way out.

use crate::plan::{PathAccess, PathRule};
use std::io;
use std::path::PathBuf;

/// A plan that this layer does not start. It never starts one with less protection instead.
#[derive(Debug, thiserror::Error)]
pub enum LandlockError {
    #[error(
        "this kernel does not have version 6 of Landlock (Linux 6.12), which the sandbox needs: use a \
         newer kernel, permit user namespaces for `bwrap`, or choose the profile `open`"
    )]
    OldVersion(#[source] landlock::RulesetError),

    #[error(
        "the sandbox cannot examine connections because `kernel.yama.ptrace_scope` is {scope}: set it \
         to 1 or 0, permit user namespaces for `bwrap`, or choose the profile `open`"
    )]
    TracingForbidden { scope: String },

    #[error(
        "`{}` is writable, and Landlock cannot make `{}` {} below it: permit user namespaces for \
         `bwrap`, or set `protect_files = false` in the profile and hide nothing below writable paths",
        writable.display(), rule.path.display(), describe_access(rule.access)
    )]
    RuleBelowWritable { writable: PathBuf, rule: PathRule },

    #[error(
        "the limit of {processes} processes needs a control group with the controller `pids`, because the \
         kernel counts all processes of the user otherwise: delegate one, permit user namespaces for \
         `bwrap`, or remove the limit from the profile"
    )]
    ProcessLimit { processes: u64 },

    #[error("failed to make a private directory in `{}`", path.display())]
    PrivateDirectory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    #[error("failed to make the Landlock rules")]
    Ruleset(#[from] landlock::RulesetError),

    #[error("failed to make the system call filter")]
    Filter(#[from] crate::os::linux::seccomp::FilterError),

    #[error("failed to prepare the supervisor of the sandbox: {step}")]
    Supervisor {
        step: &'static str,
        #[source]
        source: io::Error,
    },

    #[error("failed to start `{program}` in the sandbox")]
    Launch {
        program: String,
        #[source]
        source: io::Error,
    },
}

fn describe_access(access: PathAccess) -> &'static str {
    match access {
        PathAccess::Hidden => "hidden",
        PathAccess::ReadOnly => "read-only",
        PathAccess::Writable => "writable",
        PathAccess::Temporary => "an empty temporary directory",
    }
}
