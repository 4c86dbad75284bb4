//! From the log to the clients: who has heard how much, and what each kind of client hears.

mod render;
mod subscriber;

pub use render::{Rendering, cancel_notice};
pub(crate) use render::{attach_notice, missing_notice, moved_notice};
pub(crate) use subscriber::{EventSubscriber, Phase};
