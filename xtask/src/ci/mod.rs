//! `cargo xtask ci` and `cargo xtask nightly`: the two tiers of checks, with the time of each step.
//!
//! `ci` is the gate for every change. `nightly` runs what takes minutes. `docs/testing.md` says which test is in
//! which tier and why. Read `steps.rs` for what runs, `report.rs` for how the test report is judged.

mod report;
mod steps;

use anyhow::{Context as _, Result, bail};
use std::{
    fs::{self, File},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use steps::{CheckStep, CheckTier};

/// Where the output of steps that run beside others is kept.
const LOGS: &str = "target/ci";

/// Runs the checks of every change.
pub(crate) fn run_gate() -> Result<()> {
    run(&steps::GATE)
}

/// Runs the checks that take too long for every change, or the last of them from the step `from` on. An interrupted
/// run is continued that way; its earlier steps have built what the later ones need.
pub(crate) fn run_nightly(from: Option<&str>) -> Result<()> {
    let Some(from) = from else { return run(&steps::NIGHTLY) };
    let after = steps::NIGHTLY.after;
    let Some(first) = after.iter().position(|it| it.name == from) else {
        let names: Vec<&str> = after.iter().map(|it| it.name).collect();
        bail!("no step `{from}` to continue from; there are {}", names.join(", "));
    };
    run(&CheckTier { downloads: &[], before: &[], after: &after[first..], ..steps::NIGHTLY })
}

/// The time of each finished step, in the order in which they ended.
type StepTimes = Vec<(&'static str, Duration)>;

/// Runs the downloads beside the steps that do not need them, then the other steps, and prints the times.
/// A tier that stops at a failure does not start the steps after it; every other tier runs all of them.
fn run(tier: &CheckTier) -> Result<()> {
    let start = Instant::now();
    fs::create_dir_all(LOGS).with_context(|| format!("failed to create {LOGS}"))?;
    let mut times = StepTimes::new();
    let outcome = thread::scope(|scope| {
        let downloads = scope.spawn(|| run_downloads(tier.downloads));
        let before = run_steps(tier.before, &mut times, tier.stops_at_failure);
        let (download_times, downloaded) = downloads.join().expect("the thread does not panic");
        times.extend(download_times);
        if let (Err(_), Err(error)) = (&before, &downloaded) {
            eprintln!("error: {error:#}");
        }
        let ready = before.and(downloaded);
        if ready.is_err() && tier.stops_at_failure {
            return ready;
        }
        ready.and(run_steps(tier.after, &mut times, tier.stops_at_failure))
    });
    println!("== times (downloads run beside the first steps)");
    for (name, time) in &times {
        println!("{:>6} s  {name}", time.as_secs());
    }
    println!("{:>6} s  {}, in all", start.elapsed().as_secs(), tier.name);
    outcome
}

/// Runs steps one after the other with their output shown.
fn run_steps(steps: &[CheckStep], times: &mut StepTimes, stops_at_failure: bool) -> Result<()> {
    let mut failed = Vec::new();
    for step in steps {
        println!("== {}", step.name);
        let start = Instant::now();
        let outcome = step.run(Stdio::inherit(), Stdio::inherit());
        times.push((step.name, start.elapsed()));
        if let Err(error) = outcome {
            eprintln!("error: {error:#}");
            failed.push(step.name);
            if stops_at_failure {
                break;
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Runs downloads up to the first failure, with their output in files; the error of a failed one has its output.
fn run_downloads(steps: &[CheckStep]) -> (StepTimes, Result<()>) {
    let mut times = StepTimes::new();
    for step in steps {
        let start = Instant::now();
        let outcome = run_with_log(step);
        times.push((step.name, start.elapsed()));
        if outcome.is_err() {
            return (times, outcome);
        }
    }
    (times, Ok(()))
}

fn run_with_log(step: &CheckStep) -> Result<()> {
    let path = format!("{LOGS}/{}.log", step.name);
    let log = File::create(&path).with_context(|| format!("failed to create {path}"))?;
    let errors = log.try_clone().with_context(|| format!("failed to write {path}"))?;
    step.run(log.into(), errors.into()).with_context(|| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        format!("output of the step:\n{text}")
    })
}

impl CheckStep {
    fn run(&self, stdout: Stdio, stderr: Stdio) -> Result<()> {
        let words: Vec<&str> = self.command.split(' ').collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).envs(self.env.iter().copied());
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        crate::cargo::remove_run_variables(&mut command);
        let start = Instant::now();
        let status = command.status().with_context(|| format!("failed to start `{}`", words[0]))?;
        let judged = self.report.map_or(Ok(()), |limits| report::check(&limits, start.elapsed()));
        if !status.success() {
            bail!("`{}` failed: {status}", self.command);
        }
        judged
    }
}
