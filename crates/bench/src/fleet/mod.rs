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

use anyhow::Result;
use std::{path::PathBuf, slice::Iter};

/// Everything that can be measured, in the order of the tables.
const TABLES: [&str; 5] = ["throughput", "latency", "memory", "sleepers", "alone"];

/// The measured programs and the requested tables.
#[derive(Debug, Default)]
pub(crate) struct FleetOptions {
    pub(crate) jackfield: PathBuf,
    pub(crate) agent: PathBuf,
    /// A release of the same program from before the fleet existed.
    before: Option<PathBuf>,
    /// Measures a tenth of everything: shows that the benchmark runs, not figures.
    quick: bool,
    /// All of [`TABLES`] if empty.
    tables: Vec<String>,
}

impl FleetOptions {
    /// Applies one flag and its value; `None` if the flag is unknown or the value is missing.
    pub(crate) fn set(&mut self, flag: &str, values: &mut Iter<'_, &str>) -> Option<()> {
        match flag {
            "--quick" => self.quick = true,
            "--before" => self.before = Some(values.next()?.into()),
            "--only" => {
                let table = values.next().filter(|it| TABLES.contains(it))?;
                self.tables.push((*table).to_owned());
            }
            _ => return None,
        }
        Some(())
    }

    /// The full size, or a tenth of it for a quick run.
    fn size(&self, full: u64) -> u64 {
        if self.quick { (full / 10).max(1) } else { full }
    }

    fn has_table(&self, name: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|it| it == name)
    }
}

/// Prints the requested tables.
pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    for table in TABLES.into_iter().filter(|it| options.has_table(it)) {
        match table {
            "throughput" => throughput::run(options)?,
            "latency" => latency::run(options)?,
            "memory" => memory::run(options)?,
            "sleepers" => sleepers::run(options)?,
            _ => alone::run(options)?,
        }
    }
    Ok(())
}
