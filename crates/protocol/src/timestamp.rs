//! Timestamps in milliseconds since the epoch as RFC 3339 text, and back, and ages. The current time is an
//! argument: there is no clock here.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};

/// What [`rfc3339`] writes. An offset other than `Z` is not accepted.
const FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.fZ";

/// Formats milliseconds since the epoch as `2026-11-15T08:30:00.123Z`. Timestamps after the last
/// year of the calendar are written as its end.
pub fn rfc3339(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    time.unwrap_or(DateTime::<Utc>::MAX_UTC).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Parses what [`rfc3339`] writes. Returns `None` for a time before the epoch.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let time = NaiveDateTime::parse_from_str(text, FORMAT).ok()?.and_utc();
    u64::try_from(time.timestamp_millis()).ok()
}

/// Formats an age: `now`, `42s`, `4m`, `2h`, `3d`.
pub fn format_age(seconds: u64) -> String {
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

    const SAMPLES: [(u64, &str); 3] = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_794_731_400_123, "2026-11-15T08:30:00.123Z"),
    ];

    #[test]
    fn timestamps_are_formatted_with_milliseconds_and_z() {
        for (ms, text) in SAMPLES {
            assert_eq!(rfc3339(ms), text);
        }
        let last = rfc3339(u64::MAX);
        assert!(last.ends_with("-12-31T23:59:59.999Z"), "{last}");
    }

    #[test]
    fn formatted_time_parses_to_the_same_time() {
        for (ms, text) in SAMPLES {
            assert_eq!(parse_rfc3339(text), Some(ms), "{text}");
        }
        assert_eq!(parse_rfc3339("2026-11-15T08:30:00Z"), Some(1_794_731_400_000));
    }

    #[test]
    fn other_formats_and_dates_that_do_not_exist_are_refused() {
        for invalid in [
            "",
            "yesterday",
            "1969-12-31T23:59:59.000Z",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+01:00",
        ] {
            assert_eq!(parse_rfc3339(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn ages_have_one_unit() {
        let cases = [(3, "now"), (42, "42s"), (240, "4m"), (7_300, "2h"), (260_000, "3d")];
        for (seconds, expected) in cases {
            assert_eq!(format_age(seconds), expected);
        }
    }
}
