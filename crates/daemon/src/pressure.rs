//! Memory pressure of the machine, as the kernel reports it. Unknown where it does not.

use std::time::{Duration, Instant};

/// How often it is read while agents run. The value is an average over ten seconds.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// Percentage of the last ten seconds in which a process waited for memory. A few percent are not
/// noticeable; at ten the machine feels slow.
const SOME_AVG10_MAX: f64 = 10.0;

const PRESSURE_FILE: &str = "/proc/pressure/memory";

/// Reads the pressure at intervals.
#[derive(Debug)]
pub(crate) struct PressureMonitor {
    read_at: Instant,
}

impl PressureMonitor {
    pub(crate) fn new() -> PressureMonitor {
        PressureMonitor { read_at: Instant::now() }
    }

    /// How long until the next read.
    pub(crate) fn until_next_read(&self) -> Duration {
        READ_INTERVAL.saturating_sub(self.read_at.elapsed())
    }

    pub(crate) fn is_high(&mut self) -> bool {
        self.read_at = Instant::now();
        // A kernel file: reading it does not block.
        std::fs::read_to_string(PRESSURE_FILE).is_ok_and(|it| is_high(&it))
    }
}

fn is_high(text: &str) -> bool {
    let some = text.lines().find_map(|it| it.strip_prefix("some "));
    let figure = some.and_then(|it| it.split(' ').find_map(|it| it.strip_prefix("avg10=")));
    figure.and_then(|it| it.parse::<f64>().ok()).is_some_and(|it| SOME_AVG10_MAX < it)
}

#[cfg(test)]
mod tests {
    use super::is_high;

    #[test]
    fn only_a_high_some_average_counts() {
        let pressure_text = |some: &str, full: &str| {
            format!(
                "some avg10={some} avg60=50.00 avg300=0.00 total=1\nfull avg10={full} avg60=0.00 avg300=0.00 total=0\n"
            )
        };
        assert!(is_high(&pressure_text("12.50", "0.00")));
        assert!(!is_high(&pressure_text("9.99", "99.00")));
        assert!(!is_high("") && !is_high("some avg10=x"));
    }
}
