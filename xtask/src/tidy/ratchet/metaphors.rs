//! Names that were replaced by the words of the field and must not come back.

use super::naming::split_words;

/// Words that mean nothing in this field: they are refused anywhere in an identifier, so `Leg`
/// stands for `LegId` and `open_leg` too. Plurals are counted under the singular.
const WORDS: &[&str] = &[
    "Babbled",
    "Caretaker",
    "Clerk",
    "Curator",
    "Deed",
    "Desk",
    "Door",
    "Fellow",
    "Flaw",
    "Fuse",
    "Guest",
    "Leg",
    "LetGo",
    "LetGone",
    "Office",
    "Patience",
    "Porter",
    "Retelling",
    "Rung",
    "Seat",
    "Sentry",
    "Sheaf",
    "Shelf",
    "Stranger",
    "Switchboard",
    "Trouble",
    "Veil",
    "Waking",
    "climb",
    "farewell",
    "forsake",
    "heir",
    "pulse",
    "roster",
    "rulebook",
    "theirs",
    "valve",
    "wick",
];

/// Names that are ordinary words otherwise: only an identifier that is exactly this is refused.
const IDENTIFIERS: &[&str] = &[
    "AGAIN",
    "ALittleLater",
    "Bench",
    "Care",
    "Front",
    "Ground",
    "LOOK",
    "Mailbox",
    "Manner",
    "Room",
    "SELDOM",
    "Scene",
    "Spare",
    "Standing",
    "Trail",
    "Trial",
    "Way",
    "Word",
    "Worth",
    "beat",
    "can",
    "early",
    "ease",
    "hello",
    "inherit",
    "introduces",
    "leaving",
    "lit",
    "meet",
    "ours",
    "owe",
    "pay",
    "prove",
    "proved",
    "say",
    "sit",
    "stand",
    "story",
    "told",
    "used",
    "worded",
    "words",
];

/// Finds the names of both lists in identifiers.
pub(crate) struct MetaphorFinder {
    words: Vec<(&'static str, Vec<String>)>,
}

impl MetaphorFinder {
    pub(crate) fn new() -> Self {
        Self { words: WORDS.iter().map(|it| (*it, split_words(it))).collect() }
    }

    /// The name in the lists that `identifier` contains.
    pub(crate) fn find(&self, identifier: &str) -> Option<&'static str> {
        if let Some(name) = IDENTIFIERS.iter().find(|it| **it == identifier) {
            return Some(name);
        }
        let words = split_words(identifier);
        let found = self.words.iter().find(|(_, metaphor)| {
            words.windows(metaphor.len()).any(|window| {
                window
                    .iter()
                    .zip(metaphor)
                    .all(|(word, it)| word == it || *word == format!("{it}s"))
            })
        });
        found.map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metaphor_is_found_in_longer_identifiers_and_in_plural() {
        let finder = MetaphorFinder::new();
        for identifier in ["Leg", "leg", "legs", "LegId", "on_leg_gone", "GATEWAY_LEGS"] {
            assert_eq!(finder.find(identifier), Some("Leg"), "{identifier}");
        }
        assert_eq!(finder.find("SessionLetGo"), Some("LetGo"));
    }

    #[test]
    fn ordinary_words_are_refused_alone_and_accepted_in_longer_names() {
        let finder = MetaphorFinder::new();
        assert_eq!(finder.find("Word"), Some("Word"));
        assert_eq!(finder.find("can"), Some("can"));
        for identifier in ["can_write", "WordList", "legacy", "delegate", "used_bytes", "their"] {
            assert_eq!(finder.find(identifier), None, "{identifier}");
        }
    }
}
