//! Removes secrets from a session's log. An agent streams its text in chunks, and a secret may be split
//! across chunks with tool calls and other events between them. The chunks of one text are therefore
//! scanned as one text, and an event is held back until no part of it can belong to a secret.

use jackfield_events::EventKind;
use jackfield_protocol::redact::{self, PieceRedactor};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// Redacts events one by one. Returns the same events in the same order; none is added or lost.
#[derive(Debug, Default)]
pub struct StreamingRedactor {
    pending: VecDeque<PendingEvent>,
    /// The approximate memory use of the pending events.
    pending_bytes: usize,
    /// The number of events released so far, which is the index of the first pending event.
    released_count: usize,
    /// The texts that have not ended, by the kind of their chunks or by their tool call.
    streams: BTreeMap<String, TextStream>,
}

#[derive(Debug)]
struct PendingEvent {
    event: Value,
    bytes: usize,
    /// The number of its chunks that are not redacted yet.
    undecided: usize,
}

#[derive(Debug, Default)]
struct TextStream {
    pieces: PieceRedactor,
    /// The event index and the JSON pointer of each chunk that is not redacted yet.
    chunks: VecDeque<(usize, String)>,
}

/// When more events than this are pending, a possible start of a secret is hidden without waiting for
/// the rest.
const PENDING_MAX: usize = 4096;
/// The same for the memory of the pending events.
const PENDING_BYTES_MAX: usize = 8 << 20;
/// When more texts than this are open, the oldest tool calls are treated as ended.
const STREAMS_MAX: usize = 256;

impl StreamingRedactor {
    /// Adds the next event, or the next message of a log in ACP. Returns the events that are redacted.
    pub fn push(&mut self, event: Value) -> Vec<Value> {
        let effect = TextEffect::classify(&event);
        self.interrupt_streams(&effect);
        let index = self.released_count + self.pending.len();
        let chunks: Vec<(String, String)> = match &effect {
            TextEffect::Chunk { pointers, .. } => pointers
                .iter()
                .filter_map(|it| Some((it.clone(), event.pointer(it)?.as_str()?.to_owned())))
                .collect(),
            TextEffect::Between | TextEffect::Boundary => Vec::new(),
        };
        let bytes = estimate_bytes(&event);
        self.pending_bytes += bytes;
        self.pending.push_back(PendingEvent { event, bytes, undecided: chunks.len() });
        if let TextEffect::Chunk { key, ends, .. } = effect {
            let mut stream = self.streams.remove(&key).unwrap_or_default();
            for (pointer, text) in chunks {
                stream.chunks.push_back((index, pointer));
                let redacted = stream.pieces.push(&text);
                self.replace_chunks(&mut stream, redacted);
            }
            if ends {
                self.end_stream(stream);
            } else {
                self.streams.insert(key, stream);
            }
        }
        self.enforce_limits();
        self.take_redacted()
    }

    /// Ends all texts and returns the remaining events.
    pub fn finish(&mut self) -> Vec<Value> {
        self.end_all_streams();
        self.take_redacted()
    }

    /// Ends the other texts at a boundary, else releases their chunks that cannot start a secret.
    fn interrupt_streams(&mut self, effect: &TextEffect) {
        let current = match effect {
            TextEffect::Boundary => return self.end_all_streams(),
            TextEffect::Chunk { key, .. } => Some(key.as_str()),
            TextEffect::Between => None,
        };
        for (key, mut stream) in std::mem::take(&mut self.streams) {
            if current != Some(key.as_str()) && !stream.chunks.is_empty() {
                let redacted = stream.pieces.pause();
                self.replace_chunks(&mut stream, redacted);
            }
            self.streams.insert(key, stream);
        }
    }

    fn enforce_limits(&mut self) {
        if PENDING_MAX < self.pending.len() || PENDING_BYTES_MAX < self.pending_bytes {
            for (key, mut stream) in std::mem::take(&mut self.streams) {
                let redacted = stream.pieces.give_up();
                self.replace_chunks(&mut stream, redacted);
                self.streams.insert(key, stream);
            }
        }
        while STREAMS_MAX < self.streams.len()
            && let Some((_, stream)) = self.streams.pop_first()
        {
            self.end_stream(stream);
        }
    }

    fn end_all_streams(&mut self) {
        for (_, stream) in std::mem::take(&mut self.streams) {
            self.end_stream(stream);
        }
    }

    fn end_stream(&mut self, mut stream: TextStream) {
        let redacted = stream.pieces.finish();
        self.replace_chunks(&mut stream, redacted);
    }

    /// Writes redacted chunks back into their events.
    fn replace_chunks(&mut self, stream: &mut TextStream, redacted: Vec<String>) {
        for text in redacted {
            let (index, pointer) = stream.chunks.pop_front().expect("a pointer for each chunk");
            let pending = &mut self.pending[index - self.released_count];
            pending.undecided -= 1;
            if let Some(slot) = pending.event.pointer_mut(&pointer) {
                *slot = Value::String(text);
            }
        }
    }

    fn take_redacted(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(mut pending) = self.pending.pop_front_if(|it| it.undecided == 0) {
            self.released_count += 1;
            self.pending_bytes -= pending.bytes;
            redact::json(&mut pending.event);
            events.push(pending.event);
        }
        events
    }
}

/// The approximate memory use of a value.
fn estimate_bytes(value: &Value) -> usize {
    let inner = match value {
        Value::String(it) => it.len(),
        Value::Array(items) => items.iter().map(estimate_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, it)| key.len() + estimate_bytes(it)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inner + size_of::<Value>()
}

/// The effect of an event on the texts that have not ended.
enum TextEffect {
    /// Continues the text `key`: the JSON pointers to the chunks, and whether the text ends here.
    Chunk { key: String, pointers: Vec<String>, ends: bool },
    /// May come between two chunks of a text.
    Between,
    /// Ends all texts.
    Boundary,
}

/// Whether an event of this kind ends all texts: the turn ended, or the agent was replaced.
fn is_text_boundary(kind: EventKind) -> bool {
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

impl TextEffect {
    fn classify(event: &Value) -> TextEffect {
        // An event of the log, or the same event as an ACP message.
        let found = ["/frame/params/update", "/params/update"]
            .into_iter()
            .find_map(|it| Some((it, event.pointer(it)?)));
        let Some((base, update)) = found else {
            let kind =
                EventKind::from_value(event).or_else(|| EventKind::from_value(&event["params"]));
            let is_boundary = kind.is_some_and(is_text_boundary);
            return if is_boundary { TextEffect::Boundary } else { TextEffect::Between };
        };
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let pointers = vec![format!("{base}/content/text")];
                // The keys of tool calls sort first, so `enforce_limits` ends tool calls first.
                TextEffect::Chunk { key: format!("text {kind}"), pointers, ends: false }
            }
            "tool_call" | "tool_call_update" => {
                let blocks = update["content"].as_array().map_or(0, Vec::len);
                let mut pointers: Vec<String> =
                    (0..blocks).map(|it| format!("{base}/content/{it}/content/text")).collect();
                pointers.push(format!("{base}/rawOutput"));
                // Terminal output, as some agents forward it.
                let terminal = ["terminal_output", "terminal_output_delta"];
                pointers.extend(terminal.map(|it| format!("{base}/_meta/{it}/data")));
                let key = format!("call {}", update["toolCallId"].as_str().unwrap_or_default());
                let ends = matches!(update["status"].as_str(), Some("completed" | "failed"));
                TextEffect::Chunk { key, pointers, ends }
            }
            _ => TextEffect::Between,
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

    fn redact_all(events: Vec<Value>) -> Vec<Value> {
        let mut redactor = StreamingRedactor::default();
        let mut redacted: Vec<Value> =
            events.into_iter().flat_map(|it| redactor.push(it)).collect();
        redacted.extend(redactor.finish());
        redacted
    }

    fn joined_text(events: &[Value]) -> String {
        events
            .iter()
            .filter_map(|it| it.pointer("/frame/params/update/content/text")?.as_str())
            .collect()
    }

    #[test]
    fn secret_is_hidden_across_an_unrelated_event() {
        let unrelated = json!({ "is": "said", "frame": { "params": { "update": { "sessionUpdate": "usage_update" } } } });
        let redacted = redact_all(vec![
            chunk("agent_message_chunk", "it is sk-ant-"),
            unrelated.clone(),
            chunk("agent_message_chunk", "api03-Zx81kQ"),
            chunk("agent_message_chunk", "pL0vTn52RmYw."),
            json!({ "is": "ended" }),
        ]);
        assert_eq!(redacted.len(), 5);
        assert_eq!(joined_text(&redacted), "it is sk-***.");
        assert_eq!(redacted[1], unrelated);
    }

    #[test]
    fn parallel_tool_calls_are_scanned_separately() {
        let redacted = redact_all(vec![
            tool("a", "KEY sk-ant-api03-"),
            tool("b", "nothing"),
            tool("a", "Zx81kQpL0vTn52RmYw"),
            tool("b", " here"),
        ]);
        let text = serde_json::to_string(&redacted).unwrap();
        assert!(!text.contains("Zx81k") && text.contains("nothing") && text.contains(" here"));
    }

    #[test]
    fn terminal_output_chunks_are_scanned_as_one_text() {
        let output = |text: &str| {
            json!({ "params": { "update": { "sessionUpdate": "tool_call_update", "toolCallId": "a",
                "_meta": { "terminal_output": { "terminal_id": "a", "data": text } } } } })
        };
        let (first, second) = KEY.split_at(12);
        let redacted = redact_all(vec![output(first), output(second), output(" and more")]);
        let data = |it: &Value| {
            it.pointer("/params/update/_meta/terminal_output/data")?.as_str().map(str::to_owned)
        };
        let text: String = redacted.iter().filter_map(data).collect();
        assert_eq!(text, "sk-*** and more");
    }

    #[test]
    fn repeated_tool_call_content_is_scanned_each_time() {
        let redacted = redact_all(vec![tool("a", "done"), tool("a", &format!("done\n{KEY}"))]);
        assert!(!serde_json::to_string(&redacted).unwrap().contains("Zx81k"));
    }

    #[test]
    fn secret_split_by_any_event_kind_is_hidden() {
        let plan = json!({ "is": "said", "frame": { "params": { "update": { "sessionUpdate": "plan" } } } });
        let between = [
            tool("a", "output of a call"),
            chunk("agent_thought_chunk", "a thought"),
            chunk("user_message_chunk", "an echoed prompt"),
            json!({ "is": "asked", "ask": 1, "frame": { "params": {} } }),
            json!({ "is": "answered", "ask": 1 }),
            json!({ "is": "configured", "frame": {} }),
            json!({ "method": "_jackfield/ask", "params": { "is": "asked" } }),
            plan,
        ];
        for event in between {
            let redacted = redact_all(vec![
                chunk("agent_message_chunk", "it is sk-ant-api03-Zx81"),
                event.clone(),
                chunk("agent_message_chunk", "kQpL0vTn52RmYw. Then"),
            ]);
            assert_eq!(redacted.len(), 3);
            let text = joined_text(&[redacted[0].clone(), redacted[2].clone()]);
            assert_eq!(text, "it is sk-***. Then", "{event}");
            assert_eq!(redacted[1], event);
        }
        let redacted = redact_all(vec![
            tool("a", "KEY sk-ant-api03-Zx81"),
            chunk("agent_message_chunk", "still running"),
            tool("a", "kQpL0vTn52RmYw"),
        ]);
        let text = serde_json::to_string(&redacted).unwrap();
        assert!(!text.contains("Zx81") && !text.contains("kQpL0"), "{text}");
    }

    #[test]
    fn events_after_harmless_text_are_released_at_once() {
        let mut redactor = StreamingRedactor::default();
        assert!(redactor.push(chunk("agent_message_chunk", "I run the tests:")).is_empty());
        assert_eq!(redactor.push(json!({ "is": "asked", "ask": 1 })).len(), 2);
        assert!(redactor.push(chunk("agent_message_chunk", "a key is sk-ant-")).is_empty());
        assert!(redactor.push(json!({ "is": "asked", "ask": 2 })).is_empty());
        assert_eq!(redactor.push(json!({ "is": "ended" })).len(), 3);
    }

    #[test]
    fn text_does_not_continue_after_the_end_of_a_turn() {
        let redacted = redact_all(vec![
            chunk("agent_message_chunk", "see sk-"),
            json!({ "is": "ended" }),
            chunk("agent_message_chunk", "abcdefgh12345678"),
        ]);
        assert_eq!(joined_text(&redacted), "see sk-abcdefgh12345678");
    }

    #[test]
    fn large_events_are_released_at_the_byte_limit() {
        let mut redactor = StreamingRedactor::default();
        let mut redacted = redactor.push(chunk("agent_message_chunk", "sk-ant-api03-Zx81k"));
        let large = json!({ "is": "configured", "frame": "x".repeat(PENDING_BYTES_MAX / 4) });
        for _ in 0..4 {
            redacted.extend(redactor.push(large.clone()));
        }
        assert_eq!(redacted.len(), 5, "the first were released before the end");
        assert_eq!(joined_text(&redacted), "***");
        assert_eq!(redactor.pending_bytes, 0);
    }

    #[test]
    fn event_limit_hides_the_undecided_text() {
        let mut redactor = StreamingRedactor::default();
        let mut redacted = redactor.push(chunk("agent_message_chunk", "sk-ant-api03-Zx81k"));
        let unrelated = json!({ "params": { "update": { "sessionUpdate": "usage_update" } } });
        for _ in 0..PENDING_MAX {
            redacted.extend(redactor.push(unrelated.clone()));
        }
        assert_eq!(redacted.len(), PENDING_MAX + 1);
        redacted.extend(redactor.push(chunk("agent_message_chunk", "QpL0vTn52RmYw end")));
        redacted.extend(redactor.finish());
        assert_eq!(joined_text(&redacted), "*** end");
    }

    proptest! {
        #[test]
        fn secret_is_hidden_however_the_text_is_split(cuts in proptest::collection::vec(0usize..60, 0..12)) {
            let text = format!("before {KEY} after it all");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it % text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let events: Vec<Value> =
                cuts.windows(2).map(|it| chunk("agent_thought_chunk", &text[it[0]..it[1]])).collect();
            let count = events.len();
            let redacted = redact_all(events);
            prop_assert_eq!(redacted.len(), count);
            prop_assert_eq!(joined_text(&redacted), "before sk-*** after it all");
        }
    }
}
