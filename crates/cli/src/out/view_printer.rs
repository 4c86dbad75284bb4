//! Prints the events of a session as agent events or envelopes, one JSON value per line.

use super::CommandOutput;
use crate::report::CommandError;
use clap::ValueEnum;
use jackfield_events::ReceivedEvent;
use jackfield_views::{AgentEventView, EnvelopeView};
use serde::Serialize;

/// How to print a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ConversationFormat {
    /// Human-readable
    #[default]
    Text,
    /// ACP messages, one per line
    Json,
    /// Agent events, one per line, in the same form for every agent
    Events,
    /// Session envelopes, one per line
    Envelopes,
    /// Session envelopes with additions to their protocol: permission requests, errors, usage
    #[value(name = "envelopes+")]
    ExtendedEnvelopes,
    /// Only the final text
    Quiet,
}

/// Prints events as agent events or as envelopes.
#[derive(Debug)]
pub(crate) struct ViewPrinter {
    output: CommandOutput,
    view: PrintedView,
}

#[derive(Debug)]
enum PrintedView {
    Events(AgentEventView),
    Envelopes(EnvelopeView),
}

impl ViewPrinter {
    /// `None` for formats that are printed in another way.
    pub(crate) fn new(
        output: &CommandOutput,
        format: ConversationFormat,
        session: &str,
    ) -> Option<ViewPrinter> {
        let view = match format {
            ConversationFormat::Events => PrintedView::Events(AgentEventView::default()),
            ConversationFormat::Envelopes => PrintedView::Envelopes(EnvelopeView::new(session)),
            ConversationFormat::ExtendedEnvelopes => {
                PrintedView::Envelopes(EnvelopeView::new(session).with_additions())
            }
            ConversationFormat::Text | ConversationFormat::Json | ConversationFormat::Quiet => {
                return None;
            }
        };
        Some(ViewPrinter { output: output.clone(), view })
    }

    /// Prints what an event of the log adds to the view.
    pub(crate) fn print_event(&mut self, event: &ReceivedEvent) -> Result<(), CommandError> {
        let lines = match &mut self.view {
            PrintedView::Events(events) => to_lines(&events.fold_event(event)),
            PrintedView::Envelopes(envelopes) => to_lines(&envelopes.fold_event(event)),
        };
        self.output.print_raw(&lines)
    }
}

fn to_lines(values: &[impl Serialize]) -> String {
    let line = |it| serde_json::to_string(it).expect("plain data serializes") + "\n";
    values.iter().map(line).collect()
}
