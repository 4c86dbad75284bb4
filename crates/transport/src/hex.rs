//! Encodes bytes as hex digits.

pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("four bits are one digit");
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

pub(crate) fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits = digits.filter(|it| it.len().is_multiple_of(2))?;
    digits.chunks_exact(2).map(|it| u8::try_from((it[0] << 4) | it[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_and_decoded_and_other_texts_are_refused() {
        assert_eq!(encode_hex(&[0, 10, 255]), "000aff");
        assert_eq!(decode_hex("000aFF"), Some(vec![0, 10, 255]));
        assert_eq!(decode_hex(""), Some(vec![]));
        assert!(["0", "0g", "é", "+1"].iter().all(|it| decode_hex(it).is_none()));
    }
}
