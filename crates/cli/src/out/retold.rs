//! A session retold in another vocabulary, one JSON line after the other.

use super::Out;
use crate::report::Failure;
use clap::ValueEnum;
use jackfield_events::ReceivedEvent;
use jackfield_views::{AgentEvents, Envelopes};
use serde::Serialize;

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

    /// One event of the log.
    pub(crate) fn event(&mut self, event: &ReceivedEvent) -> Result<(), Failure> {
        let lines = match &mut self.view {
            View::Events(events) => lines(&events.fold(event)),
            View::Envelopes(envelopes) => lines(&envelopes.fold(event)),
        };
        self.out.exact(&lines)
    }
}

fn lines(told: &[impl Serialize]) -> String {
    let line = |it| serde_json::to_string(it).expect("plain data serializes") + "\n";
    told.iter().map(line).collect()
}
