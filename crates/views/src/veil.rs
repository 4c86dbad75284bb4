//! A session's log without secrets. What an agent says comes in pieces, and a secret may be split
//! over them: the pieces of one speech are read as one text, and each is kept until nothing in it
//! can be half of a secret.

use jackfield_wire::redact::{self, Pieces};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// Facts go in, and come out in the same order, none added and none lost.
#[derive(Debug, Default)]
pub struct Veil {
    waiting: VecDeque<Waiting>,
    /// How many have come out: the number of the first that waits.
    told: usize,
    /// What is being said, by whom or by which tool call.
    speeches: BTreeMap<String, Speech>,
}

#[derive(Debug)]
struct Waiting {
    fact: Value,
    /// Pieces of it that are not decided yet.
    open: usize,
}

#[derive(Debug, Default)]
struct Speech {
    pieces: Pieces,
    /// Where the pieces stand that have not come back.
    places: VecDeque<(usize, String)>,
}

/// More facts than this wait for nobody: then a word is hidden, secret or not.
const WAITING_MAX: usize = 4096;
/// These say how a session is, and may come between two words.
const ASIDE: [&str; 5] = [
    "usage_update",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
];

impl Veil {
    /// The next fact, or the next message of a log in ACP; returns what may be shown.
    pub fn push(&mut self, fact: Value) -> Vec<Value> {
        let heard = Heard::of(&fact);
        self.make_way(&heard);
        let number = self.told + self.waiting.len();
        let pieces: Vec<(String, String)> = match &heard {
            Heard::Speech { places, .. } => places
                .iter()
                .filter_map(|it| Some((it.clone(), fact.pointer(it)?.as_str()?.to_owned())))
                .collect(),
            Heard::Aside | Heard::Other => Vec::new(),
        };
        self.waiting.push_back(Waiting { fact, open: pieces.len() });
        if let Heard::Speech { key, ends, .. } = heard {
            let mut speech = self.speeches.remove(&key).unwrap_or_default();
            for (place, text) in pieces {
                speech.places.push_back((number, place));
                let decided = speech.pieces.push(&text);
                self.put_back(&mut speech, decided);
            }
            if ends {
                self.end(speech);
            } else {
                self.speeches.insert(key, speech);
            }
        }
        if WAITING_MAX < self.waiting.len() {
            self.give_up();
        }
        self.take()
    }

    /// There are no more: the rest.
    pub fn finish(&mut self) -> Vec<Value> {
        self.end_all(|_| true);
        self.take()
    }

    /// Ends the speeches that cannot go on behind this.
    fn make_way(&mut self, heard: &Heard) {
        match heard {
            Heard::Aside => {}
            Heard::Other => self.end_all(|_| true),
            Heard::Speech { key, .. } if is_call(key) => self.end_all(|it| !is_call(it)),
            Heard::Speech { key, .. } => self.end_all(|it| it != key),
        }
    }

    fn end_all(&mut self, which: impl Fn(&str) -> bool) {
        let ended: Vec<String> = self.speeches.keys().filter(|it| which(it)).cloned().collect();
        for key in ended {
            if let Some(speech) = self.speeches.remove(&key) {
                self.end(speech);
            }
        }
    }

    fn end(&mut self, mut speech: Speech) {
        let decided = speech.pieces.finish();
        self.put_back(&mut speech, decided);
    }

    fn give_up(&mut self) {
        for (key, mut speech) in std::mem::take(&mut self.speeches) {
            let decided = speech.pieces.give_up();
            self.put_back(&mut speech, decided);
            self.speeches.insert(key, speech);
        }
    }

    fn put_back(&mut self, speech: &mut Speech, decided: Vec<String>) {
        for text in decided {
            let (number, place) = speech.places.pop_front().expect("a place for each piece");
            let waiting = &mut self.waiting[number - self.told];
            waiting.open -= 1;
            if let Some(slot) = waiting.fact.pointer_mut(&place) {
                *slot = Value::String(text);
            }
        }
    }

    fn take(&mut self) -> Vec<Value> {
        let mut shown = Vec::new();
        while let Some(mut waiting) = self.waiting.pop_front_if(|it| it.open == 0) {
            self.told += 1;
            redact::json(&mut waiting.fact);
            shown.push(waiting.fact);
        }
        shown
    }
}

/// What a fact is to those that are in the middle of a word.
enum Heard {
    /// Part of a speech: which, where its texts stand, and whether it ends with this.
    Speech {
        key: String,
        places: Vec<String>,
        ends: bool,
    },
    Aside,
    Other,
}

fn is_call(key: &str) -> bool {
    key.starts_with("call ")
}

impl Heard {
    fn of(fact: &Value) -> Heard {
        // A fact of the log, or the same as ACP has it.
        let found = ["/frame/params/update", "/params/update"]
            .into_iter()
            .find_map(|it| Some((it, fact.pointer(it)?)));
        let Some((at, update)) = found else { return Heard::Other };
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let places = vec![format!("{at}/content/text")];
                Heard::Speech { key: kind.to_owned(), places, ends: false }
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
                Heard::Speech { key, places, ends }
            }
            _ if ASIDE.contains(&kind) => Heard::Aside,
            _ => Heard::Other,
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
