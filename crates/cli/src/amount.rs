//! Durations and sizes with units: `30d`, `12h`, `500GB`.

use std::{str::FromStr, time::Duration};

/// A span of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan(pub(crate) u64);

impl TimeSpan {
    pub(crate) fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        const UNITS: [(&str, u64); 6] = [
            ("ms", 1),
            ("s", 1_000),
            ("m", 60_000),
            ("h", 3_600_000),
            ("d", 86_400_000),
            ("w", 604_800_000),
        ];
        let hint = "write a number and a unit, as in `30d` or `12h`";
        parse_with_unit(text, &UNITS, hint).map(TimeSpan)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        const UNITS: [(&str, u64); 8] = [
            ("B", 1),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ];
        let hint = "write a number and a unit, as in `500GB` or `2TB`";
        parse_with_unit(text, &UNITS, hint).map(ByteSize)
    }
}

fn parse_with_unit(text: &str, units: &[(&str, u64)], hint: &str) -> Result<u64, String> {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit).ok_or(hint)?.1;
    let number = number.parse::<u64>().map_err(|error| error.to_string())?;
    Ok(number.saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_have_a_number_and_a_unit() {
        assert_eq!("30d".parse(), Ok(TimeSpan(30 * 86_400_000)));
        assert_eq!("0s".parse(), Ok(TimeSpan(0)));
        assert_eq!("200ms".parse(), Ok(TimeSpan(200)));
        for invalid in ["", "d", "30", "3 d", "-1d", "1y"] {
            assert!(invalid.parse::<TimeSpan>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn sizes_have_a_number_and_a_unit() {
        assert_eq!("500GB".parse(), Ok(ByteSize(500_000_000_000)));
        assert_eq!("1MiB".parse(), Ok(ByteSize(1_048_576)));
        assert_eq!("0B".parse(), Ok(ByteSize(0)));
        for invalid in ["", "GB", "30", "3 GB", "-1GB", "1XB", "1gb"] {
            assert!(invalid.parse::<ByteSize>().is_err(), "{invalid}");
        }
    }
}
