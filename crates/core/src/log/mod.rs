//! What is written down about a session, and the gate that keeps anything else from being heard.

mod codec;
mod event;
mod fold;
mod gate;
mod json;

pub use event::{Body, Event, Outcome, Rung};
pub use fold::State;
pub use gate::{Effect, Gate, Released};
pub use json::Json;
