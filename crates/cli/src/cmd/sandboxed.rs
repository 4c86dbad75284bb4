//! `jackfield sandbox-run` and `jackfield sandbox-init`: start an agent in a sandbox. Only other parts of Jackfield
//! start them.

use jackfield_sandbox::{os::INIT_SUBCOMMAND, subcommand::RUN_SUBCOMMAND};
use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
};

/// Runs the subcommand, if it is one of these.
pub(crate) fn run(
    subcommand: &OsStr,
    args: impl IntoIterator<Item = OsString>,
) -> Option<ExitCode> {
    if subcommand == RUN_SUBCOMMAND {
        return Some(jackfield_sandbox::run_main(args));
    }
    (subcommand == INIT_SUBCOMMAND).then(|| jackfield_sandbox::init_main(args))
}
