//! Ids that look like those of cuid2 and are derived: the same fact has the same id whoever reads
//! it, whenever, and from wherever. `docs/adr/0017-envelope-ids-are-derived.md` says why.

use sha2::{Digest, Sha256};

/// An id of 24 characters, a letter first, made of these words. No two lists of words have the same
/// text to hash: each word goes in behind its length.
pub(super) fn derived(words: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word.as_bytes());
    }
    let hash = hash.finalize();
    let (first, rest) = hash.split_at(1);
    let letter = char::from(b'a' + first[0] % 26);
    // 23 digits of base 36 are a little less than 119 bits.
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
    fn an_id_has_the_form_of_a_cuid() {
        for number in 0..1000 {
            let id = derived(&["s-1", &number.to_string()]);
            assert_eq!(id.len(), 24);
            assert!(id.starts_with(|it: char| it.is_ascii_lowercase()), "{id}");
            assert!(id.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit()), "{id}");
        }
    }

    #[test]
    fn the_same_words_give_the_same_id_for_ever() {
        // Readers have stored these: a change here is a change of the format.
        assert_eq!(derived(&["turn", "s-1", "2"]), "bxn86o7tkkuogoz1jkpvlxz9");
        assert_eq!(derived(&["call", "s-1", "toolu_1"]), "beudt3adsfzrhxnv5oepxo5z");
    }

    #[test]
    fn other_words_give_other_ids() {
        let words: [&[&str]; 6] =
            [&["a", "b"], &["ab"], &["a", "b", ""], &["", "ab"], &["b", "a"], &[]];
        let ids: BTreeSet<String> = words.iter().map(|it| derived(it)).collect();
        assert_eq!(ids.len(), words.len());
    }
}
