//! Derived ids in the format of cuid2: the same event has the same id for every reader, at any time and
//! from any starting point. `docs/adr/0017-derive-envelope-ids-from-the-log.md` says why.

use sha2::{Digest, Sha256};

/// Derives an id of 24 characters, a letter first, from these parts. Each part is hashed after its
/// length, so different lists of parts never hash the same input.
pub(super) fn derive_id(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    let (first, rest) = hash.split_at(1);
    let letter = char::from(b'a' + first[0] % 26);
    // 23 digits of base 36 hold a little less than 119 bits.
    let mut number = rest[..16].iter().fold(0u128, |sum, it| (sum << 8) | u128::from(*it));
    let digits = (0..23).map(|_| {
        let digit = u32::try_from(number % 36).expect("less than 36");
        number /= 36;
        char::from_digit(digit, 36).expect("less than 36")
    });
    std::iter::once(letter).chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn id_has_the_format_of_a_cuid() {
        for number in 0..1000 {
            let id = derive_id(&["s-1", &number.to_string()]);
            assert_eq!(id.len(), 24);
            assert!(id.starts_with(|it: char| it.is_ascii_lowercase()), "{id}");
            assert!(id.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit()), "{id}");
        }
    }

    #[test]
    fn same_parts_always_give_the_same_id() {
        // Readers have stored these ids: a change here is a change of the format.
        assert_eq!(derive_id(&["turn", "s-1", "2"]), "bxn86o7tkkuogoz1jkpvlxz9");
        assert_eq!(derive_id(&["call", "s-1", "toolu_1"]), "beudt3adsfzrhxnv5oepxo5z");
    }

    #[test]
    fn different_parts_give_different_ids() {
        let lists: [&[&str]; 6] =
            [&["a", "b"], &["ab"], &["a", "b", ""], &["", "ab"], &["b", "a"], &[]];
        let ids: BTreeSet<String> = lists.iter().map(|it| derive_id(it)).collect();
        assert_eq!(ids.len(), lists.len());
    }
}
