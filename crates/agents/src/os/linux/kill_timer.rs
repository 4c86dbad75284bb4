//! A kernel timer that kills this process, even if it is stopped or deadlocked.

use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};
use std::{io, time::Duration};

/// Kills this process at a deadline. Belongs to one thread.
pub struct KillTimer {
    timer: Timer,
}

impl KillTimer {
    /// Creates a disarmed timer.
    pub fn new() -> io::Result<KillTimer> {
        let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        let timer = Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(kill))?;
        Ok(KillTimer { timer })
    }

    /// Sets the deadline, in the clock of [`crate::time_since_boot`]; zero disarms the timer.
    pub fn set_deadline(&mut self, deadline: Duration) {
        let deadline = Expiration::OneShot(TimeSpec::from_duration(deadline));
        self.timer
            .set(deadline, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .expect("the deadline is a valid time");
    }
}
