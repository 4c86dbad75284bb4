//! Subscribers of a session, and the messages that its events become for each kind of client.

mod render;
mod subscriber;

pub use render::{Rendering, cancel_notice};
pub(crate) use render::{attach_notice, missing_notice, moved_notice};
pub(crate) use subscriber::{EventSubscriber, Phase};
