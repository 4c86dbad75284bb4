//! Words and thoughts as they stream: each said once, also where a cut stream begins again.

use crate::{Said, Turn};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Voice {
    Text,
    /// What Codex shows of a model's thoughts.
    Summary,
    /// The thoughts themselves, from models that give them away.
    Thought,
}

#[derive(Debug, Default)]
pub(super) struct Voices {
    voices: BTreeMap<(String, Voice), Spoken>,
    /// What was cut off and will be said again, under another id.
    torn: Vec<(Voice, Spoken)>,
}

#[derive(Debug, Clone)]
struct Spoken {
    /// The id under which it was first said.
    id: String,
    said: Said,
    /// Thoughts come in numbered parts.
    part: u64,
    done: bool,
}

/// What stands between two parts.
pub(super) const BREAK: &str = "\n\n";

impl Voices {
    pub(super) fn clear(&mut self) {
        self.voices.clear();
        self.torn.clear();
    }

    pub(super) fn piece(&mut self, id: &str, voice: Voice, part: u64, text: &str, turn: &mut Turn) {
        let spoken = self.spoken(id, voice);
        if spoken.part < part {
            spoken.part = part;
            say(&spoken.id, voice, spoken.said.piece(BREAK), turn);
        }
        say(&spoken.id, voice, spoken.said.piece(text), turn);
    }

    pub(super) fn whole(&mut self, id: &str, voice: Voice, text: &str, turn: &mut Turn) {
        let spoken = self.spoken(id, voice);
        spoken.done = true;
        say(&spoken.id, voice, spoken.said.whole(text), turn);
    }

    /// Whether any of it was said.
    pub(super) fn has(&self, id: &str, voice: Voice) -> bool {
        self.voices.contains_key(&(id.to_owned(), voice))
    }

    /// The stream was cut: what is not finished will be said again from its beginning.
    pub(super) fn tear(&mut self) {
        for ((_, voice), spoken) in &mut self.voices {
            if !spoken.done && !spoken.said.is_empty() {
                spoken.done = true;
                let mut again = spoken.clone();
                again.said.restart();
                (again.part, again.done) = (0, false);
                self.torn.push((*voice, again));
            }
        }
    }

    fn spoken(&mut self, id: &str, voice: Voice) -> &mut Spoken {
        let torn = &mut self.torn;
        self.voices.entry((id.to_owned(), voice)).or_insert_with(|| {
            let again = torn.iter().position(|(it, _)| *it == voice).map(|at| torn.remove(at).1);
            again.unwrap_or_else(|| Spoken {
                id: id.to_owned(),
                said: Said::default(),
                part: 0,
                done: false,
            })
        })
    }
}

fn say(id: &str, voice: Voice, text: &str, turn: &mut Turn) {
    match voice {
        Voice::Text => turn.text(id, text),
        Voice::Summary | Voice::Thought => turn.thought(id, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Effect;

    fn told(turn: &Turn) -> Vec<(String, String)> {
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            Effect::Update(update) => Some(update),
            _ => None,
        });
        updates.map(|it| (word(&it["messageId"]), word(&it["content"]["text"]))).collect()
    }

    #[test]
    fn a_message_that_begins_again_under_another_id_is_said_once() {
        let (mut voices, mut turn) = (Voices::default(), Turn::default());
        voices.piece("a", Voice::Text, 0, "Hello from", &mut turn);
        voices.tear();
        voices.piece("b", Voice::Text, 0, "Hello", &mut turn);
        voices.piece("b", Voice::Text, 0, " from the model", &mut turn);
        voices.whole("b", Voice::Text, "Hello from the model.", &mut turn);
        let said = |text: &str| ("a".to_owned(), text.to_owned());
        assert_eq!(told(&turn), [said("Hello from"), said(" the model"), said(".")]);
    }

    #[test]
    fn parts_of_thoughts_are_set_apart() {
        let (mut voices, mut turn) = (Voices::default(), Turn::default());
        voices.piece("r", Voice::Summary, 0, "one", &mut turn);
        voices.piece("r", Voice::Summary, 1, "two", &mut turn);
        voices.whole("r", Voice::Summary, "one\n\ntwo\n\nthree", &mut turn);
        let all: String = told(&turn).into_iter().map(|(_, text)| text).collect();
        assert_eq!(all, "one\n\ntwo\n\nthree");
    }
}
