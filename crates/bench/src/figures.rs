//! What is read off a process and off a list of times.

use anyhow::{Context as _, Result};
use std::{fs, path::Path, time::Duration};

pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

pub(crate) fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Processor time a process has used so far, all threads, in microseconds.
pub(crate) fn cpu_us(pid: u32) -> Result<f64> {
    // schedstat counts nanoseconds per thread; `stat` only ticks of 10 ms.
    let mut sum = 0.0;
    for task in fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().context("schedstat has fields")?;
        sum += first.parse::<f64>()? / 1_000.0;
    }
    Ok(sum)
}

/// Resident memory of a process in megabytes.
pub(crate) fn resident_mb(pid: u32) -> Result<f64> {
    memory_mb(pid, "VmRSS:")
}

/// The most it had since [`forget_peak`].
pub(crate) fn peak_mb(pid: u32) -> Result<f64> {
    memory_mb(pid, "VmHWM:")
}

pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// One of the kernel's figures about a process, in megabytes.
pub(crate) fn memory_mb(pid: u32, field: &'static str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|it| it.strip_prefix(field)).context(field)?;
    let kb: f64 = line.split_whitespace().next().context(field)?.parse()?;
    Ok(kb / 1024.0)
}

/// Counts are far below what a float is exact for.
#[expect(clippy::cast_precision_loss, reason = "below 2^52")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
