//! Durations such as `90s`, `2m`, `1h`, `500ms`, or `never`.

use serde::{Deserialize, Deserializer, de::Error};

/// A duration in milliseconds; `None` is `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationSetting(pub Option<u64>);

impl<'de> Deserialize<'de> for DurationSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DurationSetting, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is not a duration: write a number and its unit, as in `500ms`, `90s`, `2m` \
                 or `1h`, or `never`"
            ))
        })
    }
}

fn parse(text: &str) -> Option<DurationSetting> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    if text == "never" {
        return Some(DurationSetting(None));
    }
    let digits = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
    Some(DurationSetting(Some(number.parse::<u64>().ok()?.checked_mul(ms)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_has_a_number_and_a_unit() {
        assert_eq!(parse("10m"), Some(DurationSetting(Some(600_000))));
        assert_eq!(parse("90 s"), Some(DurationSetting(Some(90_000))));
        assert_eq!(parse("500ms"), Some(DurationSetting(Some(500))));
        assert_eq!(parse("never"), Some(DurationSetting(None)));
        for invalid in ["", "10", "m", "-1s", "1 day", "99999999999999999999h"] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }
}
