//! Separates the reasoning that a model writes at the beginning of its text, between `<think>` and
//! `</think>`, from the text.

const OPEN_TAG: &str = "<think>";
const CLOSE_TAG: &str = "</think>";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponsePart<'a> {
    Text(&'a str),
    Thought(&'a str),
}

/// A part that was held back until the end of the response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeldPart {
    Text(String),
    Thought(String),
}

impl HeldPart {
    pub(super) fn as_part(&self) -> ResponsePart<'_> {
        match self {
            HeldPart::Text(text) => ResponsePart::Text(text),
            HeldPart::Thought(text) => ResponsePart::Thought(text),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ReasoningSplitter {
    position: TagPosition,
    /// Text that may still turn out to be a tag.
    held: String,
    /// Whether the last input was a tag. Line breaks directly after a tag are dropped.
    is_after_tag: bool,
}

/// Where the input is, relative to the tags.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum TagPosition {
    /// Only white space has arrived, and possibly the start of the opening tag.
    #[default]
    Before,
    Inside,
    After,
}

impl ReasoningSplitter {
    pub(super) fn push(&mut self, text: &str, on_part: &mut dyn FnMut(ResponsePart<'_>)) {
        if self.position == TagPosition::After {
            self.emit(text, on_part);
            return;
        }
        self.held.push_str(text);
        if self.position == TagPosition::Before {
            self.detect_open_tag();
        }
        match self.position {
            TagPosition::Before => {}
            TagPosition::Inside => self.read_thought(on_part),
            TagPosition::After => {
                let held = std::mem::take(&mut self.held);
                self.emit(&held, on_part);
            }
        }
    }

    pub(super) fn finish(&mut self) -> Option<HeldPart> {
        let held = std::mem::take(&mut self.held);
        match self.position {
            _ if held.is_empty() => None,
            TagPosition::Inside => Some(HeldPart::Thought(held)),
            TagPosition::Before | TagPosition::After => Some(HeldPart::Text(held)),
        }
    }

    /// Decides whether the text begins with the opening tag, as soon as enough of it has arrived.
    fn detect_open_tag(&mut self) {
        let start = self.held.trim_start();
        if let Some(rest) = start.strip_prefix(OPEN_TAG) {
            self.held = rest.to_owned();
            (self.position, self.is_after_tag) = (TagPosition::Inside, true);
        } else if !OPEN_TAG.starts_with(start) {
            self.position = TagPosition::After;
        }
    }

    /// Emits the thought up to the closing tag, or up to what may be its start, and the text that
    /// follows the tag.
    fn read_thought(&mut self, on_part: &mut dyn FnMut(ResponsePart<'_>)) {
        let held = std::mem::take(&mut self.held);
        if let Some((thought, text)) = held.split_once(CLOSE_TAG) {
            self.emit(thought, on_part);
            (self.position, self.is_after_tag) = (TagPosition::After, true);
            self.emit(text, on_part);
            return;
        }
        let (thought, rest) = held.split_at(held.len() - partial_tag_len(CLOSE_TAG, &held));
        self.emit(thought, on_part);
        rest.clone_into(&mut self.held);
    }

    fn emit(&mut self, text: &str, on_part: &mut dyn FnMut(ResponsePart<'_>)) {
        let text = if self.is_after_tag { text.trim_start_matches('\n') } else { text };
        if text.is_empty() {
            return;
        }
        self.is_after_tag = false;
        on_part(if self.position == TagPosition::Inside {
            ResponsePart::Thought(text)
        } else {
            ResponsePart::Text(text)
        });
    }
}

/// Returns how many bytes at the end of `text` may be the start of `tag`.
pub(super) fn partial_tag_len(tag: &str, text: &str) -> usize {
    (1..tag.len()).rev().find(|it| text.ends_with(&tag[..*it])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{ReasoningSplitter, ResponsePart, partial_tag_len};
    use proptest::prelude::*;

    fn split(fragments: &[&str]) -> [String; 2] {
        let (mut splitter, mut parts) =
            (ReasoningSplitter::default(), [String::new(), String::new()]);
        let mut on_part = |part: ResponsePart<'_>| match part {
            ResponsePart::Thought(text) => parts[0].push_str(text),
            ResponsePart::Text(text) => parts[1].push_str(text),
        };
        for fragment in fragments {
            splitter.push(fragment, &mut on_part);
        }
        if let Some(rest) = splitter.finish() {
            on_part(rest.as_part());
        }
        parts
    }

    #[test]
    fn thoughts_at_the_beginning_are_separated_from_the_text() {
        assert_eq!(split(&["\n<think>", "\nhm", "</think>", "so"]), ["hm", "so"]);
        assert_eq!(split(&["<think>hm"]), ["hm", ""]);
    }

    #[test]
    fn tag_elsewhere_is_text() {
        assert_eq!(split(&["a <think>b</think>"]), ["", "a <think>b</think>"]);
        assert_eq!(split(&["<thin"]), ["", "<thin"]);
        assert_eq!(split(&["<thing>"]), ["", "<thing>"]);
    }

    #[test]
    fn longest_partial_tag_is_found() {
        assert_eq!(partial_tag_len("</think>", "a</"), 2);
        assert_eq!(partial_tag_len("</think>", "a</think"), 7);
        assert_eq!(partial_tag_len("```", "a``"), 2);
        assert_eq!(partial_tag_len("</think>", "é"), 0);
    }

    proptest! {
        #[test]
        fn fragmentation_does_not_change_the_result(text in "[ \n]?(<think>)?([a<é]|</think>|</th){0,8}", cut in any::<prop::sample::Index>()) {
            let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = cuts[cut.index(cuts.len())];
            prop_assert_eq!(split(&[&text[..at], &text[at..]]), split(&[&text]));
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&chars), split(&[&text]));
        }
    }
}
