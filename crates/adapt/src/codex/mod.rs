//! Codex CLI in its two ways of speaking: `exec --json`, a program for each turn, and `app-server`, a
//! program for the session that streams and asks.
//!
//! Both tell of the same items, once in `snake_case` and once in `camelCase`; [`item`] reads either.

mod app_server;
mod command;
mod exec;
mod fault;
mod item;
mod patch;
mod tokens;

use crate::Dialect;

pub(crate) fn exec() -> Box<dyn Dialect> {
    Box::<exec::Exec>::default()
}

pub(crate) fn app_server() -> Box<dyn Dialect> {
    Box::<app_server::AppServer>::default()
}
