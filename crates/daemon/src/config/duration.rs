//! Durations as people write them: `90s`, `2m`, `1h`, `500ms`, or `never`.

use serde::{Deserialize, Deserializer, de::Error};

/// How long; nothing is `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Option<u64>);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is no duration: write a number and its unit, as in `500ms`, `90s`, `2m` \
                 or `1h`, or `never`"
            ))
        })
    }
}

fn parse(text: &str) -> Option<Span> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    if text == "never" {
        return Some(Span(None));
    }
    let digits = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
    Some(Span(Some(number.parse::<u64>().ok()?.checked_mul(ms)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        assert_eq!(parse("10m"), Some(Span(Some(600_000))));
        assert_eq!(parse("90 s"), Some(Span(Some(90_000))));
        assert_eq!(parse("500ms"), Some(Span(Some(500))));
        assert_eq!(parse("never"), Some(Span(None)));
        for wrong in ["", "10", "m", "-1s", "1 day", "99999999999999999999h"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
