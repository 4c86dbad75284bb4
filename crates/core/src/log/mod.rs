//! What is written down about a session, and the gate that keeps anything else from being heard.

mod decode;
mod encode;
mod event;
mod fold;
mod gate;
mod json;
mod keys;
mod texts;

pub use decode::BadLine;
pub use event::{Body, Event, Outcome, Rung, ServedOutcome};
pub(crate) use fold::first_line;
pub use fold::{Origin, Queued, State, Worth};
pub use gate::{Effect, Gate, Released};
pub use json::Json;
pub(crate) use keys::{CANCELLED, key_of};
pub use keys::{Keyed, Keys};
pub use texts::Texts;
