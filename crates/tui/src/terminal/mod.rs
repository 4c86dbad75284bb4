//! The real terminal and the connection to the hub: the only part with I/O.

mod hub_link;

pub use hub_link::{DaemonAccess, DaemonStart};
