//! Relative times and RFC 3339.

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

/// Parses `2026-11-15T08:30:00.123Z`, the hub's format, to milliseconds since the epoch.
pub(crate) fn parse_rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (time, milli) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(str::parse::<u64>);
    let (hour, minute, second) = (time.next()?.ok()?, time.next()?.ok()?, time.next()?.ok()?);
    let is_valid = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !is_valid || !(1..=31).contains(&day) || 23 < hour || 59 < minute || 60 < second {
        return None;
    }
    // Years start in March, so that the leap day is the last day of a year.
    let (years, months) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = years * 365 + years / 4 - years / 100 + years / 400;
    let days = days + (153 * months + 2) / 5 + day - 1 - 719_468;
    let milli = milli.get(..3).unwrap_or(milli).parse::<u64>().ok()?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli)
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

    #[test]
    fn formatted_time_parses_to_the_same_time() {
        for ms in [0, 951_782_400_000, 1_794_731_400_123] {
            assert_eq!(parse_rfc3339(&rfc3339(ms)), Some(ms));
        }
    }

    #[test]
    fn times_of_the_hub_are_parsed() {
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(parse_rfc3339("2000-02-29T00:00:00.000Z"), Some(951_782_400_000));
        assert_eq!(parse_rfc3339("2026-11-15T08:30:00.123Z"), Some(1_794_731_400_123));
        for invalid in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00"] {
            assert_eq!(parse_rfc3339(invalid), None, "{invalid}");
        }
    }
}
