//! The durability gate of a session's log, and texts that many logs share.

mod gate;
mod texts;

pub use gate::{Effect, Gate, Released};
pub use texts::Texts;
