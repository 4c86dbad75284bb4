//! Thoughts that a model writes at the beginning of its text, between `<think>` and `</think>`.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Thought(&'a str),
}

/// A part that was held back and owns its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Text(String),
    Thought(String),
}

impl Rest {
    pub(super) fn as_part(&self) -> Part<'_> {
        match self {
            Rest::Text(text) => Part::Text(text),
            Rest::Thought(text) => Part::Thought(text),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Thinking {
    stage: Stage,
    /// What may still become a tag.
    held: String,
    /// A tag has just been passed: the line breaks behind it belong to nobody.
    fresh: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing but white space has come, and perhaps the start of the tag.
    #[default]
    Before,
    Inside,
    After,
}

impl Thinking {
    pub(super) fn push(&mut self, text: &str, tell: &mut dyn FnMut(Part<'_>)) {
        if self.stage == Stage::After {
            self.say(text, tell);
            return;
        }
        self.held.push_str(text);
        if self.stage == Stage::Before {
            self.open();
        }
        match self.stage {
            Stage::Before => {}
            Stage::Inside => self.think(tell),
            Stage::After => {
                let held = std::mem::take(&mut self.held);
                self.say(&held, tell);
            }
        }
    }

    pub(super) fn finish(&mut self) -> Option<Rest> {
        let held = std::mem::take(&mut self.held);
        match self.stage {
            _ if held.is_empty() => None,
            Stage::Inside => Some(Rest::Thought(held)),
            Stage::Before | Stage::After => Some(Rest::Text(held)),
        }
    }

    /// Decides how the text begins, once it can be told.
    fn open(&mut self) {
        let start = self.held.trim_start();
        if let Some(rest) = start.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            (self.stage, self.fresh) = (Stage::Inside, true);
        } else if !OPEN.starts_with(start) {
            self.stage = Stage::After;
        }
    }

    /// Tells thoughts up to the closing tag or what may be its start, and the text behind it.
    fn think(&mut self, tell: &mut dyn FnMut(Part<'_>)) {
        let held = std::mem::take(&mut self.held);
        if let Some((thought, text)) = held.split_once(CLOSE) {
            self.say(thought, tell);
            (self.stage, self.fresh) = (Stage::After, true);
            self.say(text, tell);
            return;
        }
        let (thought, rest) = held.split_at(held.len() - start_of(CLOSE, &held));
        self.say(thought, tell);
        rest.clone_into(&mut self.held);
    }

    fn say(&mut self, text: &str, tell: &mut dyn FnMut(Part<'_>)) {
        let text = if self.fresh { text.trim_start_matches('\n') } else { text };
        if text.is_empty() {
            return;
        }
        self.fresh = false;
        tell(if self.stage == Stage::Inside { Part::Thought(text) } else { Part::Text(text) });
    }
}

/// How many bytes at the end of `text` may be the start of `tag`.
pub(super) fn start_of(tag: &str, text: &str) -> usize {
    (1..tag.len()).rev().find(|it| text.ends_with(&tag[..*it])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Part, Thinking, start_of};
    use proptest::prelude::*;

    fn read(pieces: &[&str]) -> [String; 2] {
        let (mut thinking, mut read) = (Thinking::default(), [String::new(), String::new()]);
        let mut tell = |part: Part<'_>| match part {
            Part::Thought(text) => read[0].push_str(text),
            Part::Text(text) => read[1].push_str(text),
        };
        for piece in pieces {
            thinking.push(piece, &mut tell);
        }
        if let Some(rest) = thinking.finish() {
            tell(rest.as_part());
        }
        read
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_text() {
        assert_eq!(read(&["\n<think>", "\nhm", "</think>", "so"]), ["hm", "so"]);
        assert_eq!(read(&["<think>hm"]), ["hm", ""]);
    }

    #[test]
    fn a_tag_elsewhere_is_text() {
        assert_eq!(read(&["a <think>b</think>"]), ["", "a <think>b</think>"]);
        assert_eq!(read(&["<thin"]), ["", "<thin"]);
        assert_eq!(read(&["<thing>"]), ["", "<thing>"]);
    }

    #[test]
    fn the_longest_start_is_found() {
        assert_eq!(start_of("</think>", "a</"), 2);
        assert_eq!(start_of("</think>", "a</think"), 7);
        assert_eq!(start_of("```", "a``"), 2);
        assert_eq!(start_of("</think>", "é"), 0);
    }

    proptest! {
        #[test]
        fn pieces_never_show(text in "[ \n]?(<think>)?([a<é]|</think>|</th){0,8}", cut in any::<prop::sample::Index>()) {
            let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = cuts[cut.index(cuts.len())];
            prop_assert_eq!(read(&[&text[..at], &text[at..]]), read(&[&text]));
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            prop_assert_eq!(read(&chars), read(&[&text]));
        }
    }
}
