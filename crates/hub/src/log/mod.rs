//! The log of a session: what is appended, and when it may be delivered.

mod durability_gate;
mod session_log;
mod texts;

pub use durability_gate::{DurabilityGate, Effect, Released};
pub(crate) use session_log::{AppendedEvent, SessionLog};
pub use texts::Texts;
