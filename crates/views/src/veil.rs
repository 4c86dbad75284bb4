//! A session's log without secrets. What an agent says comes in pieces, and a secret may be split
//! over them, with tool calls and other events between them: the pieces of one stream are read as one
//! text, and an event waits until nothing in it can be half of a secret.

use jackfield_events::EventKind;
use jackfield_protocol::redact::{self, Pieces};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// Facts go in, and come out in the same order, none added and none lost.
#[derive(Debug, Default)]
pub struct Veil {
    waiting: VecDeque<Waiting>,
    /// About how much memory the waiting facts take.
    waiting_bytes: usize,
    /// How many facts have come out: the number of the first that waits.
    released: usize,
    /// The texts that are not over, by the kind of their chunks or by their tool call.
    streams: BTreeMap<String, Stream>,
}

#[derive(Debug)]
struct Waiting {
    fact: Value,
    bytes: usize,
    /// Pieces of it that are not decided yet.
    open: usize,
}

#[derive(Debug, Default)]
struct Stream {
    pieces: Pieces,
    /// Where the pieces stand that have not come back.
    places: VecDeque<(usize, String)>,
}

/// If more facts than this wait, a word that may become a secret is hidden without waiting on.
const WAITING_MAX: usize = 4096;
/// The same for the memory that they take.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// More texts than this are not kept apart: the oldest tool calls are taken to be over.
const STREAMS_MAX: usize = 256;

impl Veil {
    /// The next fact, or the next message of a log in ACP; returns what may be shown.
    pub fn push(&mut self, fact: Value) -> Vec<Value> {
        let part = Part::of(&fact);
        self.interrupt(&part);
        let number = self.released + self.waiting.len();
        let pieces: Vec<(String, String)> = match &part {
            Part::Chunk { places, .. } => places
                .iter()
                .filter_map(|it| Some((it.clone(), fact.pointer(it)?.as_str()?.to_owned())))
                .collect(),
            Part::Between | Part::Boundary => Vec::new(),
        };
        let bytes = size_of(&fact);
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { fact, bytes, open: pieces.len() });
        if let Part::Chunk { key, ends, .. } = part {
            let mut stream = self.streams.remove(&key).unwrap_or_default();
            for (place, text) in pieces {
                stream.places.push_back((number, place));
                let decided = stream.pieces.push(&text);
                self.put_back(&mut stream, decided);
            }
            if ends {
                self.end(stream);
            } else {
                self.streams.insert(key, stream);
            }
        }
        self.keep_bounds();
        self.take()
    }

    /// There are no more: the rest.
    pub fn finish(&mut self) -> Vec<Value> {
        self.end_all();
        self.take()
    }

    /// Lets go of what the other streams need not wait for, or ends them.
    fn interrupt(&mut self, part: &Part) {
        let current = match part {
            Part::Boundary => return self.end_all(),
            Part::Chunk { key, .. } => Some(key.as_str()),
            Part::Between => None,
        };
        for (key, mut stream) in std::mem::take(&mut self.streams) {
            if current != Some(key.as_str()) && !stream.places.is_empty() {
                let decided = stream.pieces.pause();
                self.put_back(&mut stream, decided);
            }
            self.streams.insert(key, stream);
        }
    }

    fn keep_bounds(&mut self) {
        if WAITING_MAX < self.waiting.len() || WAITING_BYTES_MAX < self.waiting_bytes {
            for (key, mut stream) in std::mem::take(&mut self.streams) {
                let decided = stream.pieces.give_up();
                self.put_back(&mut stream, decided);
                self.streams.insert(key, stream);
            }
        }
        while STREAMS_MAX < self.streams.len()
            && let Some((_, stream)) = self.streams.pop_first()
        {
            self.end(stream);
        }
    }

    fn end_all(&mut self) {
        for (_, stream) in std::mem::take(&mut self.streams) {
            self.end(stream);
        }
    }

    fn end(&mut self, mut stream: Stream) {
        let decided = stream.pieces.finish();
        self.put_back(&mut stream, decided);
    }

    fn put_back(&mut self, stream: &mut Stream, decided: Vec<String>) {
        for text in decided {
            let (number, place) = stream.places.pop_front().expect("a place for each piece");
            let waiting = &mut self.waiting[number - self.released];
            waiting.open -= 1;
            if let Some(slot) = waiting.fact.pointer_mut(&place) {
                *slot = Value::String(text);
            }
        }
    }

    fn take(&mut self) -> Vec<Value> {
        let mut shown = Vec::new();
        while let Some(mut waiting) = self.waiting.pop_front_if(|it| it.open == 0) {
            self.released += 1;
            self.waiting_bytes -= waiting.bytes;
            redact::json(&mut waiting.fact);
            shown.push(waiting.fact);
        }
        shown
    }
}

/// About how much memory a value takes.
fn size_of(value: &Value) -> usize {
    let inner = match value {
        Value::String(it) => it.len(),
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(members) => members.iter().map(|(key, it)| key.len() + size_of(it)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inner + std::mem::size_of::<Value>()
}

/// What a fact is to the texts that are not over.
enum Part {
    /// A piece of one: which, where its texts stand, and whether it ends with this.
    Chunk { key: String, places: Vec<String>, ends: bool },
    /// It may come between two pieces.
    Between,
    /// All texts end before it.
    Boundary,
}

/// Whether every text ends before such an event: the turn is over, or the agent is another one.
fn ends_texts(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Prompted
            | EventKind::Ended
            | EventKind::Opened
            | EventKind::Bound
            | EventKind::Forked
            | EventKind::Imported
            | EventKind::Gone
            | EventKind::Closed
    )
}

impl Part {
    fn of(fact: &Value) -> Part {
        // A fact of the log, or the same as ACP has it.
        let found = ["/frame/params/update", "/params/update"]
            .into_iter()
            .find_map(|it| Some((it, fact.pointer(it)?)));
        let Some((at, update)) = found else {
            let kind =
                EventKind::from_value(fact).or_else(|| EventKind::from_value(&fact["params"]));
            return if kind.is_some_and(ends_texts) { Part::Boundary } else { Part::Between };
        };
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let places = vec![format!("{at}/content/text")];
                // Tool calls come first in the order of keys: they are the first to go.
                Part::Chunk { key: format!("text {kind}"), places, ends: false }
            }
            "tool_call" | "tool_call_update" => {
                let blocks = update["content"].as_array().map_or(0, Vec::len);
                let mut places: Vec<String> =
                    (0..blocks).map(|it| format!("{at}/content/{it}/content/text")).collect();
                places.push(format!("{at}/rawOutput"));
                // What a terminal prints, as some agents pass it on.
                let terminal = ["terminal_output", "terminal_output_delta"];
                places.extend(terminal.map(|it| format!("{at}/_meta/{it}/data")));
                let key = format!("call {}", update["toolCallId"].as_str().unwrap_or_default());
                let ends = matches!(update["status"].as_str(), Some("completed" | "failed"));
                Part::Chunk { key, places, ends }
            }
            _ => Part::Between,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const KEY: &str = "sk-ant-api03-Zx81kQpL0vTn52RmYw";

    fn chunk(kind: &str, text: &str) -> Value {
        json!({ "is": "said", "turn": 1, "frame": { "method": "session/update", "params": {
            "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } } } })
    }

    fn tool(id: &str, text: &str) -> Value {
        json!({ "params": { "update": { "sessionUpdate": "tool_call_update", "toolCallId": id,
            "content": [{ "type": "content", "content": { "type": "text", "text": text } }] } } })
    }

    fn veiled(facts: Vec<Value>) -> Vec<Value> {
        let mut veil = Veil::default();
        let mut shown: Vec<Value> = facts.into_iter().flat_map(|it| veil.push(it)).collect();
        shown.extend(veil.finish());
        shown
    }

    fn words(facts: &[Value]) -> String {
        facts
            .iter()
            .filter_map(|it| it.pointer("/frame/params/update/content/text")?.as_str())
            .collect()
    }

    #[test]
    fn what_comes_between_two_words_does_not_save_a_secret() {
        let aside = json!({ "is": "said", "frame": { "params": { "update": { "sessionUpdate": "usage_update" } } } });
        let shown = veiled(vec![
            chunk("agent_message_chunk", "it is sk-ant-"),
            aside.clone(),
            chunk("agent_message_chunk", "api03-Zx81kQ"),
            chunk("agent_message_chunk", "pL0vTn52RmYw."),
            json!({ "is": "ended" }),
        ]);
        assert_eq!(shown.len(), 5);
        assert_eq!(words(&shown), "it is sk-***.");
        assert_eq!(shown[1], aside);
    }

    #[test]
    fn calls_that_run_side_by_side_are_read_apart() {
        let shown = veiled(vec![
            tool("a", "KEY sk-ant-api03-"),
            tool("b", "nothing"),
            tool("a", "Zx81kQpL0vTn52RmYw"),
            tool("b", " here"),
        ]);
        let text = serde_json::to_string(&shown).unwrap();
        assert!(!text.contains("Zx81k") && text.contains("nothing") && text.contains(" here"));
    }

    #[test]
    fn what_a_terminal_prints_piece_by_piece_is_read_as_one_text() {
        let printed = |text: &str| {
            json!({ "params": { "update": { "sessionUpdate": "tool_call_update", "toolCallId": "a",
                "_meta": { "terminal_output": { "terminal_id": "a", "data": text } } } } })
        };
        let (first, second) = KEY.split_at(12);
        let shown = veiled(vec![printed(first), printed(second), printed(" and more")]);
        let printed = |it: &Value| {
            it.pointer("/params/update/_meta/terminal_output/data")?.as_str().map(str::to_owned)
        };
        let text: String = shown.iter().filter_map(printed).collect();
        assert_eq!(text, "sk-*** and more");
    }

    #[test]
    fn a_call_that_says_everything_again_is_read_afresh_each_time() {
        let shown = veiled(vec![tool("a", "done"), tool("a", &format!("done\n{KEY}"))]);
        assert!(!serde_json::to_string(&shown).unwrap().contains("Zx81k"));
    }

    #[test]
    fn a_secret_is_found_although_another_event_comes_between_its_halves() {
        let plan = json!({ "is": "said", "frame": { "params": { "update": { "sessionUpdate": "plan" } } } });
        let between = [
            tool("a", "output of a call"),
            chunk("agent_thought_chunk", "a thought"),
            chunk("user_message_chunk", "a prompt said back"),
            json!({ "is": "asked", "ask": 1, "frame": { "params": {} } }),
            json!({ "is": "answered", "ask": 1 }),
            json!({ "is": "configured", "frame": {} }),
            json!({ "method": "_jackfield/ask", "params": { "is": "asked" } }),
            plan,
        ];
        for event in between {
            let shown = veiled(vec![
                chunk("agent_message_chunk", "it is sk-ant-api03-Zx81"),
                event.clone(),
                chunk("agent_message_chunk", "kQpL0vTn52RmYw. Then"),
            ]);
            assert_eq!(shown.len(), 3);
            let said = words(&[shown[0].clone(), shown[2].clone()]);
            assert_eq!(said, "it is sk-***. Then", "{event}");
            assert_eq!(shown[1], event);
        }
        let shown = veiled(vec![
            tool("a", "KEY sk-ant-api03-Zx81"),
            chunk("agent_message_chunk", "still running"),
            tool("a", "kQpL0vTn52RmYw"),
        ]);
        let text = serde_json::to_string(&shown).unwrap();
        assert!(!text.contains("Zx81") && !text.contains("kQpL0"), "{text}");
    }

    #[test]
    fn nothing_waits_behind_a_word_that_is_no_secret() {
        let mut veil = Veil::default();
        assert!(veil.push(chunk("agent_message_chunk", "I run the tests:")).is_empty());
        assert_eq!(veil.push(json!({ "is": "asked", "ask": 1 })).len(), 2);
        assert!(veil.push(chunk("agent_message_chunk", "a key is sk-ant-")).is_empty());
        assert!(veil.push(json!({ "is": "asked", "ask": 2 })).is_empty());
        assert_eq!(veil.push(json!({ "is": "ended" })).len(), 3);
    }

    #[test]
    fn a_word_does_not_go_on_behind_the_end_of_a_turn() {
        let shown = veiled(vec![
            chunk("agent_message_chunk", "see sk-"),
            json!({ "is": "ended" }),
            chunk("agent_message_chunk", "abcdefgh12345678"),
        ]);
        assert_eq!(words(&shown), "see sk-abcdefgh12345678");
    }

    #[test]
    fn large_facts_wait_only_up_to_their_bound() {
        let mut veil = Veil::default();
        let mut shown = veil.push(chunk("agent_message_chunk", "sk-ant-api03-Zx81k"));
        let large = json!({ "is": "configured", "frame": "x".repeat(WAITING_BYTES_MAX / 4) });
        for _ in 0..4 {
            shown.extend(veil.push(large.clone()));
        }
        assert_eq!(shown.len(), 5, "the first were released before the end");
        assert_eq!(words(&shown), "***");
        assert_eq!(veil.waiting_bytes, 0);
    }

    #[test]
    fn facts_that_wait_too_long_lose_a_word_and_no_secret() {
        let mut veil = Veil::default();
        let mut shown = veil.push(chunk("agent_message_chunk", "sk-ant-api03-Zx81k"));
        let aside = json!({ "params": { "update": { "sessionUpdate": "usage_update" } } });
        for _ in 0..WAITING_MAX {
            shown.extend(veil.push(aside.clone()));
        }
        assert_eq!(shown.len(), WAITING_MAX + 1);
        shown.extend(veil.push(chunk("agent_message_chunk", "QpL0vTn52RmYw end")));
        shown.extend(veil.finish());
        assert_eq!(words(&shown), "*** end");
    }

    proptest! {
        #[test]
        fn no_cut_saves_a_secret(cuts in proptest::collection::vec(0usize..60, 0..12)) {
            let text = format!("before {KEY} after it all");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it % text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let facts: Vec<Value> =
                cuts.windows(2).map(|it| chunk("agent_thought_chunk", &text[it[0]..it[1]])).collect();
            let count = facts.len();
            let shown = veiled(facts);
            prop_assert_eq!(shown.len(), count);
            prop_assert_eq!(words(&shown), "before sk-*** after it all");
        }
    }
}
