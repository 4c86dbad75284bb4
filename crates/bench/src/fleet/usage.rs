//! Whose processor time it was.

use crate::figures::cpu_us;
use anyhow::{Context as _, Result};
use std::{fs, ops::Sub, time::Duration};

/// Microseconds of processor time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// All three of them.
    pub(crate) servers: f64,
    pub(crate) host: f64,
    pub(crate) gateway: f64,
    /// The client, or whoever publishes.
    pub(crate) ours: f64,
    /// Everybody, the agents and the kernel for itself among them. Counted in ticks.
    pub(crate) machine: f64,
}

impl Usage {
    pub(crate) fn now(
        servers: impl Iterator<Item = u32>,
        host: u32,
        gateway: u32,
    ) -> Result<Usage> {
        let servers = servers.map(cpu_us).sum::<Result<f64>>()?;
        let (host, gateway) = (cpu_us(host)?, cpu_us(gateway)?);
        Ok(Usage { servers, host, gateway, ours: ours(), machine: machine()? })
    }

    /// For each of so many.
    pub(crate) fn per(self, count: f64) -> Usage {
        Usage {
            servers: self.servers / count,
            host: self.host / count,
            gateway: self.gateway / count,
            ours: self.ours / count,
            machine: self.machine / count,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, before: Usage) -> Usage {
        Usage {
            servers: self.servers - before.servers,
            host: self.host - before.host,
            gateway: self.gateway - before.gateway,
            ours: self.ours - before.ours,
            machine: self.machine - before.machine,
        }
    }
}

/// With the threads that have ended.
fn ours() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default().as_secs_f64() * 1e6
}

/// What all processors together were busy for.
fn machine() -> Result<f64> {
    /// Waiting for work, or for a disk.
    const IDLE: [usize; 2] = [3, 4];
    /// What others on the same hardware took, and what guests use, which is counted as a user's, is not ours.
    const KINDS: usize = 7;
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().and_then(|it| it.strip_prefix("cpu ")).context("/proc/stat")?;
    let mut ticks = 0.0;
    for (kind, text) in line.split_whitespace().take(KINDS).enumerate() {
        if !IDLE.contains(&kind) {
            ticks += text.parse::<f64>()?;
        }
    }
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(ticks * 1e6 / f64::from(per_second))
}
