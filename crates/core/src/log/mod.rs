//! What is written down about a session, and the gate that keeps anything else from being heard.

mod decode;
mod encode;
mod event;
mod fold;
mod gate;
mod json;
mod keys;
mod request_key;
mod texts;

pub use decode::BadLine;
pub(crate) use event::first_line;
pub use event::{Body, Event, Outcome, Rung, ServedOutcome};
pub use fold::{Origin, Queued, State, Worth};
pub use gate::{Effect, Gate, Released};
pub use json::Json;
pub(crate) use keys::{CANCELLED, is_key_expired};
pub use keys::{Keyed, Keys};
pub use request_key::RequestKey;
pub use texts::Texts;
