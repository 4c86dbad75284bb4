//! An ACP agent over stdio that does what it is told, misbehaviour included: `--help` is its
//! manual.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    jackfield_test_support::fake_agent::run(env::args().skip(1))
}
