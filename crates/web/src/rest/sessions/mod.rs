//! The routes `/api/sessions`: all sessions of the daemon.

mod changes;
mod control;
mod events;
mod export;
mod find;
mod git;
mod list;
mod log;
mod offered;
mod queue;
mod routes;
mod session;
mod settings;
mod timeline;

pub(crate) use changes::*;
pub(crate) use control::*;
pub(crate) use events::*;
pub(crate) use export::*;
pub(crate) use find::*;
pub(crate) use list::*;
pub(crate) use log::*;
pub(crate) use queue::*;
pub(crate) use routes::*;
pub(crate) use session::{SessionResource, find_session, list_all};
pub(crate) use settings::*;
pub(crate) use timeline::*;
