//! Collects the exit statuses of all children, including adopted ones.

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

/// The children that have exited.
#[derive(Debug, Default)]
pub(crate) struct ReapResult {
    pub(crate) ended: Vec<ExitedChild>,
    /// Whether no child is left. Because orphans are adopted, then no descendant is left either.
    pub(crate) childless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitedChild {
    pub(crate) pid: u32,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

pub(crate) fn reap() -> ReapResult {
    let mut reap = ReapResult::default();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => reap.ended.push(ExitedChild {
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
