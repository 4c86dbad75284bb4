//! `cargo xtask plant`: builds the state machines with deliberate mistakes, makes one at a time, and checks that the
//! simulator finds each.

use crate::cargo::target_folder;
use std::process::{Command, ExitCode};

pub(crate) fn run(names: &[&str]) -> ExitCode {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--package", "jackfield-sim", "--bin", "planted", "--"]);
    cargo.args(names).env("RUSTFLAGS", "--cfg planted_bugs");
    // Other flags build everything again: not over what other commands have built.
    cargo.env("CARGO_TARGET_DIR", target_folder().join("planted"));
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: failed to run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
