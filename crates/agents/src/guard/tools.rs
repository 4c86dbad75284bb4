//! The tools of a turn that was cancelled: what the agent started in it and left running is ended,
//! while the agent itself goes on.
//!
//! A tool is told from the agent's own helpers by two signs: it was started while the turn ran, and
//! it has another process group than the agent. What carries another mark than we do has a guard of
//! its own, which sees to it.

use crate::os::{MARK_VARIABLE, Process, Row, Signal, Table};
use std::time::Duration;

/// Between asking and killing.
const GRACE: Duration = Duration::from_secs(1);

/// What is being ended.
#[derive(Debug, Default)]
pub(super) struct Tools {
    asked: Vec<Process>,
    due: Option<Duration>,
}

impl Tools {
    /// Asks what the agent started since that tick to end.
    pub(super) fn end(&mut self, table: &Table, agent: u32, since: u64, now: Duration) {
        let Some(own) = table.row(agent) else { return };
        let mark = std::env::var(MARK_VARIABLE).unwrap_or_default();
        let ours = |row: &Row| !table.carries_another(row.process.pid, &mark);
        let is_tool = |row: &Row| since <= row.process.start && row.group != own.group;
        let tools = table.below(&[agent, std::process::id()], ours);
        let tools = tools.into_iter().filter(is_tool).map(|row| row.process);
        self.asked.extend(tools.filter(|it| it.pid != agent));
        for process in &self.asked {
            process.signal(Signal::TERM);
            // A stopped process hears of nothing else until it is continued.
            process.signal(Signal::CONT);
        }
        self.due = (!self.asked.is_empty()).then_some(now + GRACE);
    }

    /// When [`Tools::kill_if_due`] has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Kills those that were asked and are still there, with everything below them.
    pub(super) fn kill_if_due(&mut self, table: &Table, now: Duration) {
        if self.due.take_if(|due| *due <= now).is_none() {
            return;
        }
        self.asked.retain(|process| process.lives());
        let roots: Vec<u32> = self.asked.iter().map(|process| process.pid).collect();
        for process in table.descendants(&roots).iter().chain(&self.asked) {
            process.signal(Signal::KILL);
        }
        self.asked.clear();
    }
}
