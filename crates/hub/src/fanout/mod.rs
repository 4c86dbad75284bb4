//! From the log to the clients: who has heard how much, and what each kind of client hears.

mod deliver;
mod render;
mod subscriber;

pub use render::{Rendering, cancel_notice};
pub(crate) use render::{attach_notice, moved_notice};
pub(crate) use subscriber::{Phase, Subscriber};
