//! Finds a text in a whole session, also where it is split over several chunks of one message.

use crate::timeline::content_text;
use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, TurnStarted};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use utoipa::ToSchema;

/// Chunks of a message are joined up to this size before they are searched.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Characters before and after a match in its snippet.
const SNIPPET_CHARS: usize = 60;

/// What a match is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchedPart {
    Prompt,
    Text,
    Thought,
    Tool,
}

/// A place where the text was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TextMatch {
    /// The event in which the match begins.
    pub seq: u64,
    /// Its time, in milliseconds since the epoch.
    pub at: u64,
    pub part: MatchedPart,
    /// The match with some text around it, on one line.
    pub snippet: String,
    /// Where the match begins in the text of its event, in UTF-16 code units.
    pub offset: usize,
}

/// Searches the events of a session in order, and keeps the last matches.
#[derive(Debug)]
pub struct TextFinder {
    /// In lower case.
    needle: Vec<char>,
    /// Only matches that begin before this event.
    before: u64,
    matches_max: usize,
    matches: VecDeque<TextMatch>,
    has_more: bool,
    message: OpenMessage,
}

/// The message whose chunks are being joined.
#[derive(Debug, Default)]
struct OpenMessage {
    part: Option<MatchedPart>,
    text: String,
    /// Where the text of each event begins.
    events: Vec<EventStart>,
}

#[derive(Debug, Clone, Copy)]
struct EventStart {
    seq: u64,
    at: u64,
    byte: usize,
}

impl TextFinder {
    /// Finds `text` regardless of case, and keeps the last `matches_max` matches before the event `before`.
    pub fn new(text: &str, before: Option<u64>, matches_max: usize) -> TextFinder {
        TextFinder {
            needle: text.chars().flat_map(char::to_lowercase).collect(),
            before: before.unwrap_or(u64::MAX),
            matches_max,
            matches: VecDeque::new(),
            has_more: false,
            message: OpenMessage::default(),
        }
    }

    /// Searches the next event.
    pub fn fold_event(&mut self, event: &ReceivedEvent) {
        let seq = event.seq.map_or(0, |it| it.0);
        if self.before <= seq && self.message.part.is_none() {
            return;
        }
        let start = EventStart { seq, at: event.at.0, byte: 0 };
        match &event.body {
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                self.search_message();
                let blocks = frame["params"]["prompt"].as_array();
                let texts = blocks.into_iter().flatten().filter_map(|it| it["text"].as_str());
                let text = texts.collect::<Vec<_>>().join("\n");
                self.add_chunk(MatchedPart::Prompt, &text, start);
                self.search_message();
            }
            EventBody::Said(AgentMessage { frame, .. }) => {
                self.fold_update(&frame["params"]["update"], start);
            }
            _ => {}
        }
    }

    fn fold_update(&mut self, update: &Value, start: EventStart) {
        let text = content_text(&update["content"]).unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => self.add_chunk(MatchedPart::Text, &text, start),
            Some("agent_thought_chunk") => self.add_chunk(MatchedPart::Thought, &text, start),
            Some("user_message_chunk") => self.add_chunk(MatchedPart::Prompt, &text, start),
            Some("tool_call" | "tool_call_update") => {
                self.search_message();
                self.add_chunk(MatchedPart::Tool, &tool_text(update), start);
                self.search_message();
            }
            _ => {}
        }
    }

    /// The matches, the newest first, and whether there are earlier ones.
    pub fn finish(mut self) -> (Vec<TextMatch>, bool) {
        self.search_message();
        (self.matches.into_iter().rev().collect(), self.has_more)
    }

    fn add_chunk(&mut self, part: MatchedPart, text: &str, mut start: EventStart) {
        if self.message.part != Some(part) {
            self.search_message();
            self.message.part = Some(part);
        }
        start.byte = self.message.text.len();
        self.message.events.push(start);
        self.message.text.push_str(text);
        if MESSAGE_BYTES_MAX < self.message.text.len() {
            self.search_message();
        }
    }

    /// Searches the joined chunks and forgets them.
    fn search_message(&mut self) {
        let message = std::mem::take(&mut self.message);
        let Some(part) = message.part else { return };
        for (from, to) in find_all(&message.text, &self.needle) {
            let index = message.events.partition_point(|it| it.byte <= from).saturating_sub(1);
            let Some(start) = message.events.get(index) else { continue };
            if self.before <= start.seq {
                continue;
            }
            let offset = message.text[start.byte..from].encode_utf16().count();
            let snippet = snippet_around(&message.text, from, to);
            let found = TextMatch { seq: start.seq, at: start.at, part, snippet, offset };
            self.matches.push_back(found);
            if self.matches_max < self.matches.len() {
                self.matches.pop_front();
                self.has_more = true;
            }
        }
    }
}

/// The byte ranges of all matches, which do not overlap.
fn find_all(text: &str, needle: &[char]) -> Vec<(usize, usize)> {
    let Some(first) = needle.first() else { return Vec::new() };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(next) = text[from..].chars().next() {
        let starts = next.to_lowercase().next() == Some(*first);
        match starts.then(|| match_at(&text[from..], needle)).flatten() {
            Some(bytes) => {
                found.push((from, from + bytes));
                from += bytes;
            }
            None => from += next.len_utf8(),
        }
    }
    found
}

/// The number of bytes at the start of `text` that are the needle in any case.
fn match_at(text: &str, needle: &[char]) -> Option<usize> {
    let mut rest = needle;
    for (index, it) in text.char_indices() {
        for lower in it.to_lowercase() {
            let Some((expected, others)) = rest.split_first() else { return Some(index) };
            if *expected != lower {
                return None;
            }
            rest = others;
        }
        if rest.is_empty() {
            return Some(index + it.len_utf8());
        }
    }
    None
}

fn snippet_around(text: &str, from: usize, to: usize) -> String {
    let before = text[..from].char_indices().rev().take(SNIPPET_CHARS).last();
    let begin = before.map_or(from, |(index, _)| index);
    let snippet = text[begin..].chars();
    let chars = text[begin..to].chars().count() + SNIPPET_CHARS;
    snippet.take(chars).map(|it| if it.is_control() { ' ' } else { it }).collect()
}

/// What a tool call shows: its title, input, output and diffs.
fn tool_text(update: &Value) -> String {
    let mut texts = vec![update["title"].as_str().unwrap_or_default().to_owned()];
    if update["rawInput"].is_object() {
        texts.push(update["rawInput"].to_string());
    }
    for block in update["content"].as_array().into_iter().flatten() {
        let members = [&block["path"], &block["newText"], &block["content"]["text"]];
        texts.extend(members.iter().filter_map(|it| it.as_str()).map(str::to_owned));
    }
    texts.retain(|it| !it.is_empty());
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::build_event;
    use serde_json::json;

    fn chunk(seq: u64, kind: &str, text: &str) -> Value {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": kind, "content": content });
        json!({ "seq": seq, "at": 10 * seq, "is": "said", "frame": { "params": { "update": update } } })
    }

    fn find(
        events: &[Value],
        text: &str,
        before: Option<u64>,
        max: usize,
    ) -> (Vec<TextMatch>, bool) {
        let mut finder = TextFinder::new(text, before, max);
        for event in events {
            finder.fold_event(&build_event(event));
        }
        finder.finish()
    }

    fn places(found: &[TextMatch]) -> Vec<(u64, MatchedPart, usize)> {
        found.iter().map(|it| (it.seq, it.part, it.offset)).collect()
    }

    #[test]
    fn match_may_be_split_over_chunks_of_one_message() {
        let text = "agent_message_chunk";
        let events =
            [chunk(1, text, "see the Par"), chunk(2, text, "ser of x"), chunk(3, text, "y")];
        let (found, has_more) = find(&events, "parser", None, 10);
        assert_eq!((places(&found), has_more), (vec![(1, MatchedPart::Text, 8)], false));
        assert_eq!((found[0].at, &*found[0].snippet), (10, "see the Parser of xy"));
        assert_eq!(places(&find(&events, "XY", None, 10).0), [(2, MatchedPart::Text, 7)]);
        let split = [chunk(1, text, "par"), chunk(2, "agent_thought_chunk", "ser")];
        assert!(find(&split, "parser", None, 10).0.is_empty());
    }

    #[test]
    fn newest_matches_come_first_and_earlier_ones_in_the_next_page() {
        let prompt = json!({ "prompt": [{ "type": "text", "text": "one\ntwo one" }] });
        let call =
            json!({ "sessionUpdate": "tool_call", "title": "Run one", "rawInput": { "x": "ONE" } });
        let events = [
            json!({ "seq": 1, "at": 1, "is": "prompted", "frame": { "params": prompt } }),
            chunk(2, "agent_thought_chunk", "one"),
            json!({ "seq": 3, "at": 3, "is": "said", "frame": { "params": { "update": call } } }),
        ];
        let (found, has_more) = find(&events, "one", None, 3);
        let expected =
            [(3, MatchedPart::Tool, 14), (3, MatchedPart::Tool, 4), (2, MatchedPart::Thought, 0)];
        assert_eq!((places(&found), has_more), (expected.to_vec(), true));
        let (found, has_more) = find(&events, "one", Some(2), 3);
        let expected = vec![(1, MatchedPart::Prompt, 8), (1, MatchedPart::Prompt, 0)];
        assert_eq!((places(&found), has_more), (expected, false));
    }

    #[test]
    fn offsets_and_snippets_respect_characters() {
        let events = [chunk(1, "agent_message_chunk", "😀 ÄÖ\u{7}ü straße")];
        assert_eq!(find(&events, "äö", None, 9).0[0].offset, 3);
        assert_eq!(find(&events, "STRASSE", None, 9).0, []);
        assert_eq!(find(&events, "straße", None, 9).0[0].snippet, "😀 ÄÖ ü straße");
        assert_eq!(find(&events, "", None, 9).0, []);
    }
}
