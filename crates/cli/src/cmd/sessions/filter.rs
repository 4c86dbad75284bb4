//! Filters of lists of sessions.

use crate::{
    complete, env,
    hub::{SessionRow, resolve_directory},
    report::CommandError,
};
use clap::Args;
use std::path::{Path, PathBuf};

const STATES: [&str; 10] = [
    "opening", "starting", "waiting", "working", "asks", "quiet", "stalled", "idle", "asleep",
    "closed",
];

#[derive(Debug, Args)]
pub(in crate::cmd) struct SessionFilterArgs {
    /// At most this many sessions, the latest ones
    #[arg(short = 'n', long, env = env::LIMIT, hide_env_values = true, value_name = "COUNT")]
    limit: Option<usize>,

    /// Only sessions in this directory or below it
    #[arg(long = "cwd", env = env::ONLY_CWD, hide_env_values = true, value_name = "DIR")]
    only_cwd: Option<PathBuf>,

    /// Only sessions of this agent
    #[arg(short = 'a', long = "agent", env = env::ONLY_AGENT, hide_env_values = true, value_name = "NAME", add = complete::agents())]
    only_agent: Option<String>,

    /// Only sessions in this state; several are separated by commas
    #[arg(long = "state", env = env::ONLY_STATE, hide_env_values = true, value_name = "STATE", value_delimiter = ',', value_parser = STATES, hide_possible_values = true)]
    only_state: Vec<String>,
}

impl SessionFilterArgs {
    /// The sessions that pass all filters. `rows` are sorted, the latest first.
    pub(in crate::cmd) fn select_rows<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a SessionRow>,
    ) -> Result<Vec<&'a SessionRow>, CommandError> {
        let dir = self.only_cwd.as_ref().map(|it| resolve_directory(it, "--cwd")).transpose()?;
        let is_wanted = |row: &&SessionRow| {
            dir.as_ref().is_none_or(|it| Path::new(&row.cwd).starts_with(it))
                && self.only_agent.as_ref().is_none_or(|it| *it == row.agent)
                && (self.only_state.is_empty() || self.only_state.contains(&row.state))
        };
        let limit = self.limit.unwrap_or(usize::MAX);
        Ok(rows.into_iter().filter(is_wanted).take(limit).collect())
    }

    /// Whether sessions may be left out.
    pub(in crate::cmd) fn is_active(&self) -> bool {
        self.limit.is_some()
            || self.only_cwd.is_some()
            || self.only_agent.is_some()
            || !self.only_state.is_empty()
    }
}
