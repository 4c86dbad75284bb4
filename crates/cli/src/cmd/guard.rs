//! `jackfield guard`: the parent of an agent's process tree. Only other parts of Jackfield start it.

use std::{ffi::OsString, process::ExitCode};

pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    jackfield_agents::guard::main(args)
}
