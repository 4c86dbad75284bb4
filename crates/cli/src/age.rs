//! A span of time as people write it.

use std::str::FromStr;

/// In milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) u64);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let seconds = match &text[digits..] {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return Err("give a number and a unit, as in `30d` or `12h`".into()),
        };
        let number = text[..digits].parse::<u64>().map_err(|error| error.to_string())?;
        Ok(Age(number.saturating_mul(seconds * 1000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_number_and_a_unit() {
        assert_eq!("30d".parse(), Ok(Age(30 * 86_400_000)));
        assert_eq!("0s".parse(), Ok(Age(0)));
        for nonsense in ["", "d", "30", "3 d", "-1d", "1y"] {
            assert!(nonsense.parse::<Age>().is_err(), "{nonsense}");
        }
    }
}
