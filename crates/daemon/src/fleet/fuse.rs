//! A host that stands still is ended by the kernel before others have its sessions. Its agents do not stand
//! still with it, and who stands still cannot end them; their guards do when the daemon is gone.
//!
//! It stands still when it is stopped, when it hangs, when it waits for its memory to come back from a disk,
//! and when its machine sleeps.

use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};
use std::{io, sync::mpsc, thread, time::Duration};
use tokio::sync::watch;

/// What guards need to end everything when the daemon is gone.
const SWEEP: Duration = Duration::from_millis(1_600);
/// For a timer, no time at all.
const NEVER: Duration = Duration::ZERO;

/// Burns down unless it is lit again. Clones are the same; it goes out with the last.
#[derive(Clone)]
pub(super) struct Fuse {
    /// When it will have burnt down, for the thread that has the timer: it may not be handed around.
    times: mpsc::Sender<Duration>,
}

impl Fuse {
    /// It does not burn yet.
    pub(super) fn new() -> io::Result<Fuse> {
        let (times, told) = mpsc::channel();
        let (tell, made) = mpsc::sync_channel(1);
        let hold = move || match wick() {
            Ok(mut wick) => {
                let _waits = tell.send(Ok(()));
                for at in told {
                    set(&mut wick, at);
                }
            }
            Err(error) => _ = tell.send(Err(error)),
        };
        thread::Builder::new().name("fuse".to_owned()).spawn(hold)?;
        made.recv().expect("it is told whether there is a timer")?;
        Ok(Fuse { times })
    }

    /// Lights it anew each time the end of the lease is put off, until nobody can do that any more. Both
    /// count the time that goes on while the machine sleeps.
    pub(super) async fn tend(self, mut lease: watch::Receiver<Duration>) {
        loop {
            let end = *lease.borrow_and_update();
            self.tell(end.saturating_sub(SWEEP));
            if lease.changed().await.is_err() {
                return self.put_out();
            }
        }
    }

    /// There is nothing here that would have to end.
    pub(super) fn put_out(&self) {
        self.tell(NEVER);
    }

    fn tell(&self, at: Duration) {
        self.times.send(at).expect("the thread listens for as long as there is somebody to tell");
    }
}

fn wick() -> io::Result<Timer> {
    let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
    Ok(Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(kill))?)
}

fn set(wick: &mut Timer, at: Duration) {
    let at = Expiration::OneShot(TimeSpec::from_duration(at));
    wick.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).expect("it is a time");
}
