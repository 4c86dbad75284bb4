//! A bus worker with very little overhead, for benchmarks and long runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    jackfield_test_support::bench_worker::run()
}
