//! Ends the tools of a canceled turn: processes that the agent started in it and left running. The
//! agent itself keeps running.
//!
//! A tool differs from the agent's own helper processes in two ways: it was started during the
//! turn, and its process group is not the agent's. A process with another mark has a guard of its
//! own, which ends it.

use crate::os::{MARK_VARIABLE, ProcessIdentity, ProcessRow, ProcessTable, Signal};
use std::time::Duration;

/// The time between TERM and KILL.
const TERM_GRACE: Duration = Duration::from_secs(1);

/// The tools that are being ended.
#[derive(Debug, Default)]
pub(super) struct ToolReaper {
    terminated: Vec<ProcessIdentity>,
    kill_at: Option<Duration>,
}

impl ToolReaper {
    /// Sends TERM to the tools that the agent started since that start time.
    pub(super) fn terminate_tools(
        &mut self,
        table: &ProcessTable,
        agent: u32,
        since: u64,
        now: Duration,
    ) {
        let Some(own) = table.row(agent) else { return };
        let mark = std::env::var(MARK_VARIABLE).unwrap_or_default();
        let has_no_other_mark = |row: &ProcessRow| !table.has_other_mark(row.process.pid, &mark);
        let is_tool = |row: &ProcessRow| since <= row.process.start && row.group != own.group;
        let tools = table.descendant_rows(&[agent, std::process::id()], has_no_other_mark);
        let tools = tools.into_iter().filter(is_tool).map(|row| row.process);
        self.terminated.extend(tools.filter(|it| it.pid != agent));
        for process in &self.terminated {
            process.signal(Signal::TERM);
            // A stopped process handles no other signal until it is continued.
            process.signal(Signal::CONT);
        }
        self.kill_at = (!self.terminated.is_empty()).then_some(now + TERM_GRACE);
    }

    /// When [`ToolReaper::kill_if_due`] must be called.
    pub(super) fn kill_at(&self) -> Option<Duration> {
        self.kill_at
    }

    /// Kills the tools that are still alive after TERM, and their descendants.
    pub(super) fn kill_if_due(&mut self, table: &ProcessTable, now: Duration) {
        if self.kill_at.take_if(|due| *due <= now).is_none() {
            return;
        }
        self.terminated.retain(|process| process.is_alive());
        let roots: Vec<u32> = self.terminated.iter().map(|process| process.pid).collect();
        for process in table.descendants(&roots).iter().chain(&self.terminated) {
            process.signal(Signal::KILL);
        }
        self.terminated.clear();
    }
}
