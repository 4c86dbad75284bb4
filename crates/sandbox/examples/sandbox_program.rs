//! A program with nothing but the subcommands of the sandbox. The tests of this crate run it.

use jackfield_sandbox::{
    os::{INIT_SUBCOMMAND, PROBE_SUBCOMMAND},
    subcommand::RUN_SUBCOMMAND,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(it) if it == RUN_SUBCOMMAND => jackfield_sandbox::run_main(args),
        Some(it) if it == INIT_SUBCOMMAND => jackfield_sandbox::init_main(args),
        Some(it) if it == PROBE_SUBCOMMAND => jackfield_sandbox::probe_main(args),
        _ => ExitCode::FAILURE,
    }
}
