//! Chores of the house, as one command: `cargo xtask <chore>`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
