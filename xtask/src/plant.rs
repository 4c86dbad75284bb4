//! `cargo xtask plant`: builds the code with deliberate mistakes, makes one at a time, and checks that the simulator or
//! the property tests of the terminal interface find each.

use crate::cargo::target_folder;
use std::process::{Command, ExitCode};

/// Names select mistakes that the simulator finds.
pub(crate) fn run(names: &[&str]) -> ExitCode {
    let mut simulator =
        cargo(&["run", "--quiet", "--package", "jackfield-sim", "--bin", "planted", "--"]);
    simulator.args(names);
    let mut is_found = run_cargo(&mut simulator);
    if names.is_empty() {
        let test =
            ["test", "--quiet", "--package", "jackfield-tui", "--lib", "planted_bugs_are_found"];
        // The failures are wanted: their cases are not kept.
        is_found &= run_cargo(cargo(&test).env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"));
    }
    if is_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(args).env("RUSTFLAGS", "--cfg planted_bugs");
    // Other flags build everything again: not over what other commands have built.
    cargo.env("CARGO_TARGET_DIR", target_folder().join("planted"));
    cargo
}

fn run_cargo(cargo: &mut Command) -> bool {
    match cargo.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("error: failed to run cargo: {error}");
            false
        }
    }
}
