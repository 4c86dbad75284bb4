//! A worker for the bus that costs next to nothing, for measurements and long runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    jackfield_test_support::bench_worker::run()
}
