//! Chores of the house, as one command: `cargo xtask <chore>`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod cargo;
mod chaos;
mod fuzz;
mod load;
mod plant;
mod sim;
mod soak;
mod tidy;
mod tools;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "usage: cargo xtask <chore>
  tidy            check the rules that the compiler cannot check
  tools           install what `just ci` needs and this machine lacks
  fuzz [SECONDS]  run every fuzz target for so long (15)
  sim [--world hub|bus|gateway] [--seed N] [--steps N] [--trace]
                  run the simulated worlds: one seed, or SIM_SEEDS of them (2000)
  plant [NAME]... put known bugs into a copy of the hub and see the simulator find them
  chaos [--seed N] [--minutes N | --seconds N] [--sessions N]
                  kill agents, clients and the daemon of many sessions (10 minutes, 200)
  chaos --fleet [--seed N] [--rounds N]
                  kill, stop and cut off the hosts and servers of a fleet, one after the other (30)
  load [--sessions N] [--readers N] [--seconds N] [--requests N] [--p99-ms N]
                  many readers of many sessions over HTTP and WebSocket (100, 1000 each, 20 s)
  soak [--seconds N]
                  a day of the bus in minutes: nothing lost, nothing said twice, nothing grows (600)
  bench [--bus] [--hub] [--adapter] [--agent] [--peer PATH]
                  measure a direct pipe and the same through Jackfield: all, or these parts; another
                  program that takes the flags of `jackfield bus` is measured beside it
  bench --fleet [--quick] [--only TABLE]... [--before PATH]
                  measure a fleet on three NATS servers: throughput, latency, memory, sleepers, and
                  alone, the program without a fleet beside an older one (30 minutes)";

fn main() -> ExitCode {
    // Chores name files from the root of the checkout, wherever they were called.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::set_current_dir(root).expect("the checkout this was built from is gone");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::run(),
        ["tools"] => tools::run(),
        ["sim", rest @ ..] => sim::run(rest),
        ["plant", names @ ..] => plant::run(names),
        ["chaos", rest @ ..] => chaos::run(rest).map_or_else(usage, report),
        ["load", rest @ ..] => load::run(rest).map_or_else(usage, report),
        ["soak", rest @ ..] => soak::run(rest).map_or_else(usage, report),
        ["bench", rest @ ..] => bench::run(rest).map_or_else(usage, report),
        // What the bench has the release build of this program do.
        ["fleet-bench", rest @ ..] => bench::measure_fleet(rest).map_or_else(usage, report),
        // What the bench adapts.
        ["foreign", ..] => report(bench::foreign::speak()),
        ["fuzz"] => fuzz::run(15),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => usage(),
        },
        _ => usage(),
    }
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
