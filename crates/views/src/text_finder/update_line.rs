//! The members of an agent's update that a search needs, read without building the whole event.

use jackfield_events::EventKind;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The line of a `said` event with an update. Anything unusual, such as an escaped or repeated name, is an error, and
/// the caller parses the whole event.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateLine<'a> {
    pub(super) seq: u64,
    pub(super) at: u64,
    is: &'a str,
    #[serde(borrow)]
    frame: UpdateFrame<'a>,
}

#[derive(Debug, Deserialize)]
struct UpdateFrame<'a> {
    #[serde(borrow)]
    params: UpdateParams<'a>,
}

#[derive(Debug, Deserialize)]
struct UpdateParams<'a> {
    #[serde(borrow)]
    update: UpdateMembers<'a>,
}

#[derive(Debug, Deserialize)]
struct UpdateMembers<'a> {
    #[serde(rename = "sessionUpdate")]
    kind: &'a str,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'a> UpdateLine<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<UpdateLine<'a>> {
        let line: UpdateLine<'a> = serde_json::from_slice(line).ok()?;
        (EventKind::from_name(line.is) == Some(EventKind::Said)).then_some(line)
    }

    /// `sessionUpdate`.
    pub(super) fn kind(&self) -> &'a str {
        self.frame.params.update.kind
    }

    /// The text of an update whose content is one block; `None` for other content.
    pub(super) fn chunk_text(&self) -> Option<Cow<'a, str>> {
        let content = self.frame.params.update.content?.get();
        let block: ContentBlock<'a> =
            serde_json::from_str(content).ok().filter(|_| content.starts_with('{'))?;
        Some(block.text.unwrap_or_default())
    }
}

/// Excludes lines whose text cannot contain the searched text, by a word of it.
///
/// A word of ASCII letters in a string is the same bytes in the JSON of that string, in any case, unless a letter is
/// written as `\u…` or is one of [`FOLDED_TO_ASCII`].
#[derive(Debug)]
pub(super) struct WordFilter {
    /// The longest word of the searched text, in lower case. A number may be written differently in a line and in its
    /// text, with one letter at most, so the word has at least two.
    word: Option<Vec<u8>>,
}

/// The characters outside of ASCII whose lower case has an ASCII letter: `İ` and the sign of kelvin.
const FOLDED_TO_ASCII: [char; 2] = ['\u{130}', '\u{212a}'];

impl WordFilter {
    /// `needle` is in lower case.
    pub(super) fn new(needle: &[char]) -> WordFilter {
        let parts = needle.split(|it| !it.is_ascii_alphabetic());
        let longest = parts.max_by_key(|it| it.len()).filter(|it| 2 <= it.len());
        let to_bytes = |word: &[char]| word.iter().collect::<String>().into_bytes();
        WordFilter { word: longest.map(to_bytes) }
    }

    /// Whether the text of a line may contain the searched text.
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        let Some(word) = &self.word else { return true };
        let has = |text: &[u8]| memchr::memmem::find(line, text).is_some();
        contains_word(line, word)
            || has(br"\u")
            || FOLDED_TO_ASCII.iter().any(|it| has(it.to_string().as_bytes()))
    }
}

/// Whether a word in lower case is in the bytes, in any case.
fn contains_word(bytes: &[u8], word: &[u8]) -> bool {
    let Some((first, _)) = word.split_first() else { return true };
    let mut starts = memchr::memchr2_iter(*first, first.to_ascii_uppercase(), bytes);
    starts.any(|it| bytes[it..].get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(needle: &str) -> WordFilter {
        WordFilter::new(&needle.to_lowercase().chars().collect::<Vec<_>>())
    }

    #[test]
    fn only_listed_characters_become_ascii_letters_in_lower_case() {
        let folded = ('\u{80}'..=char::MAX)
            .filter(|it| it.to_lowercase().any(|lower| lower.is_ascii_alphabetic()));
        assert_eq!(folded.collect::<Vec<_>>(), FOLDED_TO_ASCII);
    }

    #[test]
    fn line_without_the_longest_word_is_excluded() {
        let filter = filter("To parse it");
        assert!(filter.may_match(br#"{"text":"the PARSER"}"#));
        assert!(!filter.may_match(br#"{"text":"to it"}"#));
        assert!(filter.may_match(br#"{"text":"\u0070arse"}"#));
        assert!(filter.may_match("\u{212a}".as_bytes()));
    }

    #[test]
    fn text_without_a_word_excludes_nothing() {
        for needle in ["", "1e22", "äö", "x-y", "!"] {
            assert!(filter(needle).may_match(b"{}"), "{needle}");
        }
    }
}
