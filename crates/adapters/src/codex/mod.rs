//! The two protocols of Codex CLI: `exec --json`, with one process per turn, and `app-server`, with
//! one process per session that streams and requests approvals.
//!
//! Both report the same items, one in `snake_case` and one in `camelCase`; [`item`] parses either.

mod app_server;
mod command;
mod exec;
mod failure;
mod file_change;
mod item;
mod token_counts;

use crate::Dialect;

pub(crate) fn new_exec() -> Box<dyn Dialect> {
    Box::<exec::ExecDialect>::default()
}

pub(crate) fn new_app_server() -> Box<dyn Dialect> {
    Box::<app_server::AppServerDialect>::default()
}
