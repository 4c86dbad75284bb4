//! What a load test found, in words.

use super::{RATE, Size};
use std::{fs, time::Duration};

pub(super) struct Figures {
    pub(super) lost: u64,
    pub(super) delays: Vec<Duration>,
    pub(super) failed_requests: u64,
    pub(super) requests: Vec<Duration>,
    pub(super) connection_bytes: u64,
    pub(super) resident_peak: u64,
    /// Of one core.
    pub(super) cpu: f64,
    pub(super) seconds: f64,
}

impl Figures {
    pub(super) fn p99(&self) -> Duration {
        percentile(&self.delays, 99.0)
    }

    #[expect(clippy::print_stderr, reason = "figures for whoever runs it by hand")]
    pub(super) fn print(&self, size: Size) {
        let rate =
            |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / self.seconds;
        let ms = |delays: &[Duration], at: f64| percentile(delays, at).as_secs_f64() * 1_000.0;
        eprintln!("{size:?}, {RATE} words/s of each agent, {:.1} s", self.seconds);
        eprintln!("deliveries   {:>9}  {:>7.0}/s", self.delays.len(), rate(self.delays.len()));
        eprintln!("lost         {:>9}", self.lost);
        for (name, delays) in [("delivery", &self.delays), ("request", &self.requests)] {
            let (p50, p99, max) = (ms(delays, 50.0), ms(delays, 99.0), ms(delays, 100.0));
            eprintln!("{name:<12} p50 {p50:.2} ms  p99 {p99:.2} ms  max {max:.2} ms");
        }
        eprintln!("requests     {:>9}  {:>7.0}/s", self.requests.len(), rate(self.requests.len()));
        eprintln!("connection   {:>9} KiB each", self.connection_bytes / 1024);
        eprintln!("resident     {:>9} MiB at most", self.resident_peak >> 20);
        eprintln!("processor    {:>9.2} cores, the daemon alone", self.cpu);
    }
}

fn percentile(delays: &[Duration], percent: f64) -> Duration {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    #[expect(clippy::cast_precision_loss, reason = "an index")]
    let at = (sorted.len() as f64 * percent / 100.0) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Processor seconds that a process has used, all its threads.
pub(super) fn cpu(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|it| {
        let text = fs::read_to_string(it.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}
