//! Relative times, and the current time in RFC 3339.

use jackfield_protocol::rfc3339;
use std::time::{SystemTime, UNIX_EPOCH};

/// The age of a time in milliseconds since the epoch: `now`, `42s`, `4m`, `2h`, `3d`.
pub(crate) fn format_age(then_ms: u64) -> String {
    jackfield_protocol::format_age((now_ms() / 1000).saturating_sub(then_ms / 1000))
}

/// The current time in milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
}

/// The current time in the hub's format.
pub(crate) fn rfc3339_now() -> String {
    rfc3339(now_ms())
}
