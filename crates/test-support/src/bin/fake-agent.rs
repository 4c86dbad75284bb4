//! An ACP agent over stdio that follows a script, including misbehavior. `--help` prints the manual.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    jackfield_test_support::fake_agent::run(env::args().skip(1))
}
