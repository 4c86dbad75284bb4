//! What a fleet costs: hosts and gateways on three NATS servers, measured beside what stands without them.
//!
//! Read in this order: `world.rs` (servers, a host and a gateway), `ears.rs` (clients and their sessions),
//! `usage.rs` (whose processor time it was), `bare.rs` (the servers without us); then what is measured.

mod alone;
mod bare;
mod ears;
mod latency;
mod memory;
mod seed;
mod sleepers;
mod throughput;
mod usage;
mod world;

use anyhow::{Context as _, Result, ensure};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// What can be measured, in the order of the tables.
const TABLES: [&str; 5] = ["throughput", "latency", "memory", "sleepers", "alone"];

/// What is measured, and with what.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    jackfield: PathBuf,
    agent: PathBuf,
    /// The same program as it was before there were fleets.
    before: Option<PathBuf>,
    /// A tenth of everything: to see that it runs, not for figures.
    quick: bool,
    tables: Vec<String>,
}

impl Wanted {
    /// So many, or a tenth of it.
    fn size(&self, full: u64) -> u64 {
        if self.quick { (full / 10).max(1) } else { full }
    }
}

/// Has the release build of this program measure the others in `target`: who measures may not be slower
/// than what is measured.
pub(crate) fn run(target: &Path, flags: &[&str]) -> Result<()> {
    let mut command = Command::new(target.join("xtask"));
    command.arg("fleet-bench").arg(target).args(flags);
    let status = command.status().context("the bench does not start")?;
    ensure!(status.success(), "the bench of the fleet failed: {status}");
    Ok(())
}

/// What that build does. `None` for words that mean nothing.
pub(crate) fn measure(words: &[&str]) -> Option<Result<()>> {
    let (target, words) = words.split_first()?;
    let target = Path::new(target);
    let (jackfield, agent) = (target.join("jackfield"), target.join("fake-agent"));
    let mut wanted = Wanted { jackfield, agent, ..Wanted::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => wanted.quick = true,
            "--before" => wanted.before = Some(words.next()?.into()),
            "--only" => wanted.tables.push((*words.next()?).to_owned()),
            _ => return None,
        }
    }
    if wanted.tables.is_empty() {
        wanted.tables.extend(TABLES.map(str::to_owned));
    }
    wanted.tables.iter().all(|it| TABLES.contains(&&**it)).then(|| tables(&wanted))
}

fn tables(wanted: &Wanted) -> Result<()> {
    for table in &wanted.tables {
        match &**table {
            "throughput" => throughput::run(wanted)?,
            "latency" => latency::run(wanted)?,
            "memory" => memory::run(wanted)?,
            "sleepers" => sleepers::run(wanted)?,
            _ => alone::run(wanted)?,
        }
    }
    Ok(())
}
