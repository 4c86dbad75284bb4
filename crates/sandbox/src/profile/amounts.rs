//! Sizes with units: `512MiB`, `2GB`.

const UNITS: [(&str, u64); 7] = [
    ("", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The number of bytes, or `None` if the text is not a positive number with a known unit.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|it| *it > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_a_number_and_a_unit() {
        let sizes = ["512MiB", "2 GB", "100", "0", "", "MiB", "2TiB", "-1", "99999999999GiB"];
        let expected =
            [Some(512 << 20), Some(2_000_000_000), Some(100), None, None, None, None, None, None];
        assert_eq!(sizes.map(parse_bytes), expected);
    }
}
