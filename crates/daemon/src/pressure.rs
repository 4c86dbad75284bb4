//! How short of memory the machine is, as the kernel tells it. Where it does not, nothing is known.

use std::time::{Duration, Instant};

/// How often is looked, while agents run: the figure is an average over ten seconds.
const EVERY: Duration = Duration::from_secs(5);

/// Percent of the last ten seconds in which something waited for memory. Below a few percent nobody
/// notices; at ten the machine feels slow.
const SOME_AVG10_MAX: f64 = 10.0;

const FILE: &str = "/proc/pressure/memory";

/// When the gauge was read last.
#[derive(Debug)]
pub(crate) struct Gauge {
    read_at: Instant,
}

impl Gauge {
    pub(crate) fn new() -> Gauge {
        Gauge { read_at: Instant::now() }
    }

    /// How long until the next look.
    pub(crate) fn pause(&self) -> Duration {
        EVERY.saturating_sub(self.read_at.elapsed())
    }

    pub(crate) fn is_high(&mut self) -> bool {
        self.read_at = Instant::now();
        // A file of the kernel: reading it waits for nothing.
        std::fs::read_to_string(FILE).is_ok_and(|it| is_high(&it))
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
    fn only_a_high_average_of_some_counts() {
        let told = |some: &str, full: &str| {
            format!(
                "some avg10={some} avg60=50.00 avg300=0.00 total=1\nfull avg10={full} avg60=0.00 avg300=0.00 total=0\n"
            )
        };
        assert!(is_high(&told("12.50", "0.00")));
        assert!(!is_high(&told("9.99", "99.00")));
        assert!(!is_high("") && !is_high("some avg10=x"));
    }
}
