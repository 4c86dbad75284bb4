//! What `terminal` does for the core.

use crate::{
    hub::{HubRequest, RequestNumber},
    text::CodeSample,
};
use jackfield_events::Time;
use ratatui::text::Line;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AppEffect {
    Hub(RequestNumber, HubRequest),
    /// Copies text with OSC 52.
    Copy(String),
    /// Opens `$EDITOR` with this text, and sends what was written as an input.
    EditExternally(String),
    /// Finds files in the directories of a session whose path matches the query. The first directory is the working
    /// directory.
    FindFiles {
        session: String,
        directories: Vec<String>,
        query: String,
    },
    /// Loads the syntax of the code, and sends its language as an input.
    LoadSyntax(CodeSample),
    /// Prints lines into the scrollback of the terminal.
    PrintToScrollback(Vec<String>),
    /// Prints finished items above an inline frame.
    PrintAbove(Vec<Line<'static>>),
    /// Sends a tick at this time.
    WakeAt(Time),
    /// Draws everything again, after another program wrote to the terminal.
    Redraw,
    Suspend,
    Quit,
}
