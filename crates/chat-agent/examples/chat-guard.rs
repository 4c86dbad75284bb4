//! The guard as a program of its own, for tests; `jackfield guard` does the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    jackfield_agents::guard::main(std::env::args_os().skip(1))
}
