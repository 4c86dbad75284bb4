//! A session retold in another vocabulary, one JSON line after the other.

use super::Out;
use crate::report::Failure;
use clap::ValueEnum;
use jackfield_views::{AgentEvents, Envelopes};
use serde::Serialize;
use serde_json::Value;

/// How to print a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Telling {
    /// For people
    #[default]
    Text,
    /// ACP messages, one a line
    Json,
    /// Agent events, one a line: the same few for every agent
    Events,
    /// Session envelopes, one a line
    Envelopes,
    /// Nothing but the final text
    Quiet,
}

/// Prints facts as events or as envelopes.
#[derive(Debug)]
pub(crate) struct Retold {
    out: Out,
    view: View,
}

#[derive(Debug)]
enum View {
    Events(AgentEvents),
    Envelopes(Envelopes),
}

impl Retold {
    /// Nothing if the conversation is told in another way.
    pub(crate) fn new(out: &Out, telling: Telling, session: &str) -> Option<Retold> {
        let view = match telling {
            Telling::Events => View::Events(AgentEvents::default()),
            Telling::Envelopes => View::Envelopes(Envelopes::new(session)),
            Telling::Text | Telling::Json | Telling::Quiet => return None,
        };
        Some(Retold { out: out.clone(), view })
    }

    /// One fact of the log.
    pub(crate) fn fact(&mut self, fact: &Value) -> Result<(), Failure> {
        let lines = match &mut self.view {
            View::Events(events) => lines(&events.fold(fact)),
            View::Envelopes(envelopes) => lines(&envelopes.fold(fact)),
        };
        self.out.exact(&lines)
    }
}

fn lines(told: &[impl Serialize]) -> String {
    let line = |it| serde_json::to_string(it).expect("plain data serializes") + "\n";
    told.iter().map(line).collect()
}
