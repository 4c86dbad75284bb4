//! The routes `/api/sessions`: all sessions of the daemon.

mod control;
mod events;
mod export;
mod log;
mod offered;
mod queue;
mod routes;
mod session;
mod settings;

pub(crate) use control::*;
pub(crate) use events::*;
pub(crate) use export::*;
pub(crate) use log::*;
pub(crate) use queue::*;
pub(crate) use routes::*;
pub(crate) use session::{SessionResource, find_session};
pub(crate) use settings::*;
