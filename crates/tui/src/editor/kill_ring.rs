//! Deleted text that can be inserted again.

/// The last deleted texts.
#[derive(Debug, Default)]
pub(crate) struct KillRing {
    /// The newest is the last.
    texts: Vec<String>,
    /// The number of steps back from the newest.
    offset: usize,
}

/// Where a deleted text was, seen from the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillSide {
    Before,
    After,
}

const TEXTS_MAX: usize = 32;

impl KillRing {
    /// Adds a text. A deletion right after another one extends its text.
    pub(crate) fn push(&mut self, text: &str, side: KillSide, extends: bool) {
        if text.is_empty() {
            return;
        }
        self.offset = 0;
        match self.texts.last_mut().filter(|_| extends) {
            Some(last) if side == KillSide::Before => last.insert_str(0, text),
            Some(last) => last.push_str(text),
            None => {
                if self.texts.len() == TEXTS_MAX {
                    self.texts.remove(0);
                }
                self.texts.push(text.to_owned());
            }
        }
    }

    /// The text to insert.
    pub(crate) fn current(&self) -> Option<&str> {
        let index = self.texts.len().checked_sub(self.offset + 1)?;
        Some(&self.texts[index])
    }

    /// Goes to the text before; after the oldest to the newest.
    pub(crate) fn rotate(&mut self) -> Option<&str> {
        self.offset = (self.offset + 1) % self.texts.len().max(1);
        self.current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_deletions_are_one_text() {
        let mut ring = KillRing::default();
        ring.push("old", KillSide::After, false);
        ring.push("b", KillSide::After, false);
        ring.push("c", KillSide::After, true);
        ring.push("a", KillSide::Before, true);
        assert_eq!(ring.current(), Some("abc"));
        assert_eq!(ring.rotate(), Some("old"));
        assert_eq!(ring.rotate(), Some("abc"));
    }
}
