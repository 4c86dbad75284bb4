//! Measures a direct pipe to a program and the same program through Jackfield, in one run.
//!
//! Machines are noisy: the measured paths alternate in short rounds, and only the difference between two
//! figures of the same run counts. `cargo xtask bench` builds the release binaries and starts this program.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod adapter;
mod bus;
mod figures;
mod fleet;
mod foreign;
mod hub;
mod own_agent;
mod talk;
mod way;

use anyhow::{Context as _, Result};
use fleet::FleetOptions;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};
use way::Bench;

/// Measured by default, in the order of the tables.
const PARTS: [&str; 4] = ["--bus", "--hub", "--adapter", "--agent"];
/// Measured on request only: it takes 30 minutes and starts NATS servers.
const FLEET: &str = "--fleet";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = if let ["foreign", ..] = words[..] {
        // The adapter benchmark starts this program again as the CLI that is adapted.
        foreign::speak()
    } else if let Some(options) = parse(&words) {
        measure(options)
    } else {
        eprintln!("error: unknown arguments; `cargo xtask` shows the usage");
        return ExitCode::from(2);
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Parsed command-line arguments.
#[derive(Default)]
struct BenchOptions<'a> {
    parts: Vec<&'a str>,
    /// Another program with the flags of `jackfield bus`, measured beside it.
    peer: Option<&'a Path>,
    fleet: FleetOptions,
}

/// Returns `None` if an argument is unknown or has no value.
fn parse<'a>(words: &[&'a str]) -> Option<BenchOptions<'a>> {
    let mut options = BenchOptions::default();
    let mut has_fleet_options = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--peer" => options.peer = Some(Path::new(*words.next()?)),
            "--quick" | "--before" | "--only" => {
                has_fleet_options = true;
                options.fleet.set(word, &mut words)?;
            }
            part if part == FLEET || PARTS.contains(&part) => options.parts.push(part),
            _ => return None,
        }
    }
    if options.parts.is_empty() {
        options.parts.extend(PARTS);
    }
    (options.parts.contains(&FLEET) || !has_fleet_options).then_some(options)
}

fn measure(mut options: BenchOptions<'_>) -> Result<()> {
    let folder = program_folder()?;
    let [jackfield, agent] = ["jackfield", "fake-agent"].map(|it| folder.join(it));
    let has = |part| options.parts.contains(&part);
    if has("--bus") {
        bus::run(&jackfield, &folder.join("bench-worker"), options.peer)?;
    }
    let mut bench = Bench::new(jackfield.clone(), agent.clone())?;
    if has("--hub") {
        hub::run(&mut bench)?;
    }
    if has("--adapter") {
        adapter::run(&bench)?;
    }
    if has("--agent") {
        own_agent::run(&bench)?;
    }
    if has(FLEET) {
        (options.fleet.jackfield, options.fleet.agent) = (jackfield, agent);
        fleet::run(&options.fleet)?;
    }
    Ok(())
}

/// The measured programs are beside this one: cargo builds them into the same folder.
fn program_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("failed to find this program's own path")?;
    Ok(program.parent().context("this program has no folder")?.to_owned())
}
