//! Memory and descriptors of the bus, looked at again and again.

use super::Bus;
use jackfield_e2e::{procs, wait_for};
use std::{
    fmt, thread,
    time::{Duration, Instant},
};

const EVERY: Duration = Duration::from_millis(250);
/// What memory may differ between two halves of a run: buffers are as full as they happen to be.
const GROWTH_MAX: u64 = 6 << 20;

pub(crate) struct Gauge {
    /// Before the first client.
    descriptors: usize,
    samples: Vec<(u64, usize)>,
}

impl Gauge {
    pub(crate) fn new(bus: &Bus) -> Gauge {
        Gauge { descriptors: bus.descriptors(), samples: Vec::new() }
    }

    pub(crate) fn watch(&mut self, bus: &Bus, end: Instant) {
        while Instant::now() < end {
            self.samples.push((procs::resident(bus.pid()), bus.descriptors()));
            thread::sleep(EVERY);
        }
    }

    /// The most of a part of the run, in eighths.
    fn most(&self, from: usize, to: usize) -> (u64, usize) {
        let part = &self.samples[self.samples.len() * from / 8..self.samples.len() * to / 8];
        let most = part.iter().fold((0, 0), |most, it| (most.0.max(it.0), most.1.max(it.1)));
        assert!(0 < most.0, "there are samples");
        most
    }

    /// After the warm-up, the end of the run needs no more than its middle; and when everybody has
    /// left, everything is as it was before they came.
    pub(crate) fn check(&self, bus: &Bus) {
        let ((before, open_before), (after, open_after)) = (self.most(2, 5), self.most(5, 8));
        assert!(after < before + GROWTH_MAX, "memory grows: {self}");
        // Each sample finds a few clients more or less, and a worker that is not up again.
        assert!(open_after <= open_before + 8, "descriptors grow: {self}");
        wait_for("as many descriptors as at the start", Duration::from_secs(20), || {
            (bus.descriptors() <= self.descriptors).then_some(())
        });
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes >> 20;
        write!(
            f,
            "descriptors {} before, MB and descriptors at most by eighths:",
            self.descriptors
        )?;
        for eighth in 0..8 {
            let (resident, open) = self.most(eighth, eighth + 1);
            write!(f, " {}/{open}", mb(resident))?;
        }
        Ok(())
    }
}
