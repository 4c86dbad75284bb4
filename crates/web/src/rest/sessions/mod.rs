//! The routes `/api/sessions`: all sessions of the daemon.

mod events;
mod export;
mod routes;
mod session;

pub(crate) use events::*;
pub(crate) use export::*;
pub(crate) use routes::*;
pub(crate) use session::{SessionResource, find_session};
