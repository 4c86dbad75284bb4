//! Bytes as hex digits.

pub(crate) fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("four bits are one digit");
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits = digits.filter(|it| it.len().is_multiple_of(2))?;
    digits.chunks_exact(2).map(|it| u8::try_from((it[0] << 4) | it[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_is_no_hex_does_not() {
        assert_eq!(encode(&[0, 10, 255]), "000aff");
        assert_eq!(decode("000aFF"), Some(vec![0, 10, 255]));
        assert_eq!(decode(""), Some(vec![]));
        assert!(["0", "0g", "é", "+1"].iter().all(|it| decode(it).is_none()));
    }
}
