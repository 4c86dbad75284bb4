//! Development tasks, as one command: `cargo xtask <task>`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod cargo;
mod chaos;
mod ci;
mod deny;
mod dist;
mod fuzz;
mod load;
mod plant;
mod soak;
mod tidy;
mod tools;

use std::{path::Path, process::ExitCode};
use tidy::ReportFormat;

const USAGE: &str = "usage: cargo xtask <task>
  ci              run every check of a change, print the times, and hold the time limits
  nightly [--from STEP]
                  run the checks that take too long for every change, or the rest of an interrupted run
  tidy            check the rules that the compiler cannot check
  tidy --report [--format json]
                  print figures about the production code, with the goals
  tidy --write-baseline
                  remove fixed violations from xtask/src/tidy/baseline.toml
  typos           check the spelling
  workflows       check the workflows of the hosted CI
  deny [--changed]
                  check bans, licenses and sources of dependencies, or only if a manifest changed
  deny --advisories
                  check dependencies for known defects, where the advisory database can be reached
  tools [NAME]... install the tools that the checks need, or these, where this machine lacks them
  fuzz [SECONDS] [TARGET]...
                  run every fuzz target, or these, for this long each (15)
  sim [--world hub|bus|gateway] [--seed N | --first N | --fresh] [--steps N] [--trace]
                  run the simulated worlds: one seed, or SIM_SEEDS of them (2000)
  plant [NAME]... make deliberate mistakes in hub, bus and gateway, and check that the simulator finds each;
                  then those of the terminal interface, which its property tests find
  chaos [--seed N] [--minutes N | --seconds N] [--sessions N]
                  kill agents, clients and the daemon of many sessions (10 minutes, 200)
  chaos --fleet [--seed N] [--rounds N]
                  kill, stop and cut off the hosts and servers of a fleet, one after the other (30)
  load [--sessions N] [--readers N] [--seconds N] [--requests N] [--p99-ms N]
                  many readers of many sessions over HTTP and WebSocket (100, 1000 each, 20 s)
  soak [--seconds N]
                  clients and workers of the bus come and go; messages and memory are counted (600)
  bench [--bus] [--hub] [--adapter] [--agent] [--peer PATH]
                  measure a direct pipe and the same through Jackfield: all, or these parts; another
                  program that takes the flags of `jackfield bus` is measured beside it
  dist [--binary PATH] [--only KIND]... [--out DIR] [--releases URL] [--fast]
                  make the packages of this platform from a release build, or from this program, in
                  target/dist; kinds: archive, deb, rpm, npm, sbom, index
  bench --fleet [--quick] [--only TABLE]... [--before PATH]
                  measure a fleet on three NATS servers: throughput, latency, memory, sleepers, and
                  alone, the program without a fleet beside an older one (30 minutes)";

fn main() -> ExitCode {
    // Tasks name files from the root of the checkout, wherever they are started.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::set_current_dir(root).expect("the checkout this was built from is gone");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => report(ci::run_gate()),
        ["nightly"] => report(ci::run_nightly(None)),
        ["nightly", "--from", step] => report(ci::run_nightly(Some(step))),
        ["tidy"] => report(tidy::check()),
        ["tidy", "--report"] => report(tidy::print_report(ReportFormat::Table)),
        ["tidy", "--report", "--format", "json"] => report(tidy::print_report(ReportFormat::Json)),
        ["tidy", "--write-baseline"] => report(tidy::write_baseline()),
        ["typos"] => report(tools::check_spelling()),
        ["workflows"] => report(tools::check_workflows()),
        ["deny"] => report(deny::run(false)),
        ["deny", "--changed"] => report(deny::run(true)),
        ["deny", "--advisories"] => report(deny::check_advisories()),
        ["tools", names @ ..] => report(tools::ensure(names)),
        ["sim", rest @ ..] => report(run_simulator(rest)),
        ["plant", names @ ..] => plant::run(names),
        ["chaos", rest @ ..] => chaos::run(rest).map_or_else(usage, report),
        ["load", rest @ ..] => load::run(rest).map_or_else(usage, report),
        ["soak", rest @ ..] => soak::run(rest).map_or_else(usage, report),
        ["dist", rest @ ..] => dist::run(rest).map_or_else(usage, report),
        ["bench", rest @ ..] => report(bench::run(rest)),
        ["fuzz"] => report(fuzz::run(15, &[])),
        ["fuzz", seconds, targets @ ..] => match seconds.parse() {
            Ok(seconds) => report(fuzz::run(seconds, targets)),
            Err(_) => usage(),
        },
        _ => usage(),
    }
}

/// The simulator is a program of its own, so that this one builds in seconds.
fn run_simulator(words: &[&str]) -> anyhow::Result<()> {
    let program = ["run", "--quiet", "--package", "jackfield-sim", "--bin", "sim", "--"];
    cargo::cargo(&[&program[..], words].concat(), &[])
}

fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
