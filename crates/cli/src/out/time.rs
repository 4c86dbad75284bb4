//! Relative times, and the current time in RFC 3339.

use jackfield_protocol::rfc3339;
use std::time::{SystemTime, UNIX_EPOCH};

/// The age of a time in milliseconds since the epoch: `now`, `42s`, `4m`, `2h`, `3d`.
pub(crate) fn format_age(then_ms: u64) -> String {
    format_seconds((now_ms() / 1000).saturating_sub(then_ms / 1000))
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

fn format_seconds(seconds: u64) -> String {
    match seconds {
        0..10 => "now".to_owned(),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let cases = [(3, "now"), (42, "42s"), (240, "4m"), (7_300, "2h"), (260_000, "3d")];
        for (seconds, expected) in cases {
            assert_eq!(format_seconds(seconds), expected);
        }
    }
}
