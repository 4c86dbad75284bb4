//! Collecting the exit statuses of all children, adopted ones included.

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

/// What `wait` had for us.
#[derive(Debug, Default)]
pub(crate) struct Reap {
    pub(crate) ended: Vec<Ended>,
    /// No child is left. As orphans come to us, nobody at all is left below us.
    pub(crate) childless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: u32,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

pub(crate) fn reap() -> Reap {
    let mut reap = Reap::default();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => reap.ended.push(Ended {
                pid: pid.as_raw_nonzero().get().unsigned_abs(),
                code: status.exit_status(),
                signal: status.terminating_signal(),
            }),
            Err(Errno::INTR) => {}
            Ok(None) => return reap,
            Err(_) => {
                reap.childless = true;
                return reap;
            }
        }
    }
}
