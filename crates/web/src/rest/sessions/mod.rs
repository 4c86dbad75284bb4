//! `/api/sessions`: every session of the daemon, whoever opened it.

mod events;
mod export;
mod routes;
mod row;

pub(crate) use events::*;
pub(crate) use export::*;
pub(crate) use routes::*;
pub(crate) use row::{Row, one};
