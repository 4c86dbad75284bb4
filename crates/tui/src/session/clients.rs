//! The clients that take part in a session, as its log names them.

use jackfield_events::{EventBody, ReceivedEvent, Time};
use std::collections::BTreeMap;

/// What clients did, in the part of the log that was read.
#[derive(Debug, Default)]
pub(crate) struct ClientList {
    /// By the sequence number of the event: pages of the log can arrive more than once.
    acts: BTreeMap<u64, ClientAct>,
}

#[derive(Debug)]
struct ClientAct {
    by: String,
    at: Time,
    is_prompt: bool,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientRow {
    pub(crate) name: String,
    pub(crate) prompts: u64,
    pub(crate) answers: u64,
    pub(crate) last_at: Time,
}

/// The oldest are dropped: the list is about who takes part now.
const ACTS_MAX: usize = 2_000;

impl ClientList {
    pub(crate) fn add_event(&mut self, event: &ReceivedEvent) {
        let (by, is_prompt) = match &event.body {
            EventBody::Prompted(it) => (&it.by, true),
            EventBody::Answered(it) => (&it.by, false),
            _ => return,
        };
        let is_client = !matches!(&**by, "policy" | "jackfield");
        let Some(seq) = event.seq.filter(|_| is_client) else { return };
        self.acts.insert(seq.0, ClientAct { by: by.to_string(), at: event.at, is_prompt });
        if self.acts.len() > ACTS_MAX {
            self.acts.pop_first();
        }
    }

    /// The clients; the one that did something last is the first.
    pub(crate) fn rows(&self) -> Vec<ClientRow> {
        let mut rows: Vec<ClientRow> = Vec::new();
        for act in self.acts.values().rev() {
            let index = rows.iter().position(|it| it.name == act.by).unwrap_or_else(|| {
                let (name, last_at) = (act.by.clone(), act.at);
                rows.push(ClientRow { name, prompts: 0, answers: 0, last_at });
                rows.len() - 1
            });
            rows[index].prompts += u64::from(act.is_prompt);
            rows[index].answers += u64::from(!act.is_prompt);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_are_counted_once_for_each_event() {
        let mut list = ClientList::default();
        let prompt = |seq: u64, by: &str| {
            let event = json!({ "seq": seq, "at": seq * 1000, "is": "prompted", "turn": seq, "by": by, "frame": {} });
            ReceivedEvent::from_value(event).unwrap()
        };
        for event in [prompt(2, "web"), prompt(1, "cli"), prompt(3, "cli"), prompt(3, "cli")] {
            list.add_event(&event);
        }
        let rows = list.rows();
        let found: Vec<_> =
            rows.iter().map(|it| (it.name.as_str(), it.prompts, it.last_at.0)).collect();
        assert_eq!(found, [("cli", 2, 3000), ("web", 1, 2000)]);
    }
}
