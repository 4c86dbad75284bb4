//! `jackfield guard`: the parent of an agent's process tree. The daemon starts it; nobody else does.

use std::{ffi::OsString, process::ExitCode};

/// The word that comes before everything else on the command line.
pub(crate) const NAME: &str = "guard";

pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    jackfield_agents::guard::main(args)
}
