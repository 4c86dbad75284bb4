//! Finds a text in a whole session, also where it is split over several chunks of one message.

mod update_line;

use crate::timeline::content_text;
use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, TurnStarted};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use update_line::{UpdateLine, WordFilter};
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
    filter: WordFilter,
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
        let needle: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
        TextFinder {
            filter: WordFilter::new(&needle),
            needle,
            before: before.unwrap_or(u64::MAX),
            matches_max,
            matches: VecDeque::new(),
            has_more: false,
            message: OpenMessage::default(),
        }
    }

    /// Whether no match can begin in this event or a later one.
    pub fn is_complete_at(&self, seq: u64) -> bool {
        self.before <= seq && self.message.part.is_none()
    }

    /// Searches the next event, given as JSON. Only events with prompts and messages of the agent have text.
    pub fn search_line(&mut self, line: &[u8]) {
        let update = UpdateLine::parse(line);
        if update.is_some_and(|it| self.search_update(&it, line)) {
            return;
        }
        let event = serde_json::from_slice(line).ok();
        if let Some(event) = event.and_then(|it| ReceivedEvent::from_value(it).ok()) {
            self.search_event(&event);
        }
    }

    /// Searches a chunk of a message, and skips what cannot match. Returns whether that was possible.
    fn search_update(&mut self, update: &UpdateLine<'_>, line: &[u8]) -> bool {
        let start = EventStart { seq: update.seq, at: update.at, byte: 0 };
        if let Some(part) = chunk_part(update.kind()) {
            let Some(text) = update.chunk_text() else { return false };
            self.add_chunk(part, &text, start);
            return true;
        }
        if !is_tool_call(update.kind()) {
            return true;
        }
        let is_skipped = !self.filter.may_match(line);
        if is_skipped {
            self.search_message();
        }
        is_skipped
    }

    fn search_event(&mut self, event: &ReceivedEvent) {
        let start = EventStart { seq: event.seq.map_or(0, |it| it.0), at: event.at.0, byte: 0 };
        match &event.body {
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                let blocks = frame["params"]["prompt"].as_array();
                let texts = blocks.into_iter().flatten().filter_map(|it| it["text"].as_str());
                let text = texts.collect::<Vec<_>>().join("\n");
                self.search_text(MatchedPart::Prompt, &text, start);
            }
            EventBody::Said(AgentMessage { frame, .. }) => {
                let update = &frame["params"]["update"];
                let kind = update["sessionUpdate"].as_str().unwrap_or_default();
                if let Some(part) = chunk_part(kind) {
                    let text = content_text(&update["content"]).unwrap_or_default();
                    self.add_chunk(part, &text, start);
                } else if is_tool_call(kind) {
                    self.search_text(MatchedPart::Tool, &tool_text(update), start);
                }
            }
            _ => {}
        }
    }

    /// Searches a text that has no chunks.
    fn search_text(&mut self, part: MatchedPart, text: &str, start: EventStart) {
        self.search_message();
        self.add_chunk(part, text, start);
        self.search_message();
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

/// What the chunks of an update are part of.
fn chunk_part(kind: &str) -> Option<MatchedPart> {
    match kind {
        "agent_message_chunk" => Some(MatchedPart::Text),
        "agent_thought_chunk" => Some(MatchedPart::Thought),
        "user_message_chunk" => Some(MatchedPart::Prompt),
        _ => None,
    }
}

fn is_tool_call(kind: &str) -> bool {
    matches!(kind, "tool_call" | "tool_call_update")
}

/// The byte ranges of all matches, which do not overlap.
fn find_all(text: &str, needle: &[char]) -> Vec<(usize, usize)> {
    let Some(first) = needle.first() else { return Vec::new() };
    let is_ascii = text.is_ascii();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = find_start(&text[from..], *first, is_ascii) {
        from += start;
        match match_at(&text[from..], needle) {
            Some(bytes) => {
                found.push((from, from + bytes));
                from += bytes;
            }
            None => from += text[from..].chars().next().map_or(1, char::len_utf8),
        }
    }
    found
}

/// The offset of the next character whose lower case begins with `first`.
fn find_start(text: &str, first: char, is_ascii: bool) -> Option<usize> {
    if is_ascii {
        let first = u8::try_from(first).ok()?;
        return memchr::memchr2(first, first.to_ascii_uppercase(), text.as_bytes());
    }
    text.char_indices().find(|(_, it)| it.to_lowercase().next() == Some(first)).map(|(at, _)| at)
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
    use proptest::{collection::vec, prelude::*};
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
            let seq = event["seq"].as_u64().unwrap();
            if !finder.is_complete_at(seq) {
                finder.search_line(line(event).as_bytes());
            }
        }
        finder.finish()
    }

    /// The event with the members that every event of its kind has.
    fn line(event: &Value) -> String {
        let mut line = event.clone();
        (line["turn"], line["by"]) = (json!(1), json!("editor"));
        line.to_string()
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

    /// A JSON string, in which every character may be written as an escape.
    fn json_string(text: &str, is_escaped: bool) -> String {
        if !is_escaped {
            return Value::from(text).to_string();
        }
        let escapes = text.encode_utf16().map(|it| format!("\\u{it:04x}"));
        format!("\"{}\"", escapes.collect::<String>())
    }

    /// A chunk, a tool call, a prompt or an update without text.
    fn line_of_kind(seq: usize, kind: usize, text: &str, is_escaped: bool) -> String {
        let text = json_string(text, is_escaped);
        let update = match kind {
            0 => format!(r#""sessionUpdate":"agent_message_chunk","content":{{"text":{text}}}"#),
            1 => format!(r#""sessionUpdate":"agent_thought_chunk","content":[{text},1]"#),
            2 => format!(r#""sessionUpdate":"tool_call","title":{text},"rawInput":{{"a":{text}}}"#),
            3 => format!(r#""sessionUpdate":"tool_call_update","rawInput":{{{text}:1E22}}"#),
            _ => format!(r#""sessionUpdate":"plan","entries":[{text}]"#),
        };
        let frame =
            format!(r#"{{"params":{{"prompt":[{{"text":{text}}}],"update":{{{update}}}}}}}"#);
        let is = if kind == 5 { "prompted" } else { "said" };
        format!(r#"{{"seq":{seq},"at":1,"is":"{is}","turn":1,"by":"x","frame":{frame}}}"#)
    }

    proptest! {
        #[test]
        fn skipped_events_have_no_match(
            lines in vec((0..6_usize, "[abkK\u{212a}İ1e2 \\n\"\\\\ä\u{7}]{0,6}", any::<bool>()), 1..12),
            needle in "[abkK\u{212a}İ1e2 \\n\"ä]{1,4}",
        ) {
            let mut finder = TextFinder::new(&needle, None, 1000);
            let mut finder_of_all = TextFinder::new(&needle, None, 1000);
            for (seq, (kind, text, is_escaped)) in lines.iter().enumerate() {
                let line = line_of_kind(seq, *kind, text, *is_escaped);
                finder.search_line(line.as_bytes());
                let event = serde_json::from_str(&line).unwrap();
                finder_of_all.search_event(&ReceivedEvent::from_value(event).unwrap());
            }
            prop_assert_eq!(finder.finish(), finder_of_all.finish());
        }
    }
}
