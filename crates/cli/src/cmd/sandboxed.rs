//! `jackfield sandbox-run` and `jackfield sandbox-init`, which start an agent in a sandbox, and `jackfield
//! sandbox-probe`, which tries to leave one. Only other parts of Jackfield start them.

use jackfield_sandbox::{
    os::{INIT_SUBCOMMAND, PROBE_SUBCOMMAND},
    subcommand::RUN_SUBCOMMAND,
};
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
    if subcommand == PROBE_SUBCOMMAND {
        return Some(jackfield_sandbox::probe_main(args));
    }
    (subcommand == INIT_SUBCOMMAND).then(|| jackfield_sandbox::init_main(args))
}
