//! A checksum that shows whether messages were lost, repeated, changed or reordered.

/// A count, and a checksum over numbers and texts in their order (FNV-1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    pub count: u64,
    pub sum: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum { count: 0, sum: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Checksum {
    pub fn add(&mut self, n: u64, text: &[u8]) {
        self.count += 1;
        for byte in n.to_le_bytes().iter().chain(text) {
            self.sum = (self.sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_of(notes: &[(u64, &str)]) -> Checksum {
        let mut sum = Checksum::default();
        for (n, text) in notes {
            sum.add(*n, text.as_bytes());
        }
        sum
    }

    #[test]
    fn loss_repetition_and_reordering_change_the_checksum() {
        let right = checksum_of(&[(1, "a"), (2, "b"), (3, "c")]);
        assert_eq!(right, checksum_of(&[(1, "a"), (2, "b"), (3, "c")]));
        for wrong in [
            checksum_of(&[(1, "a"), (3, "c")]),
            checksum_of(&[(1, "a"), (2, "b"), (2, "b"), (3, "c")]),
            checksum_of(&[(2, "b"), (1, "a"), (3, "c")]),
            checksum_of(&[(1, "a"), (2, "b"), (3, "d")]),
        ] {
            assert_ne!(right, wrong);
        }
    }
}
