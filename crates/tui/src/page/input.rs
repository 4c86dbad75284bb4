//! What the core reacts to.

use crate::hub::HubUpdate;
use crossterm::event::{KeyEvent, MouseEvent};

/// One input. Each is handled at a time that the caller gives.
#[derive(Debug, Clone)]
pub(crate) enum AppInput {
    Key(KeyEvent),
    /// Text of a bracketed paste.
    Paste(String),
    /// Pages get the position within the page.
    Mouse(MouseEvent),
    /// Pages get the size of the page.
    Resize {
        width: u16,
        height: u16,
    },
    Hub(HubUpdate),
    /// A time that an effect asked for has come, or a second has passed.
    Tick,
    /// The state was drawn on the terminal. Does not need another frame.
    Drawn,
    /// The text of the external editor; `None` if it failed or was not changed.
    EditedText(Option<String>),
    /// Files that match a completion, relative to the working directory of the session if they are in it.
    Files {
        session: String,
        query: String,
        paths: Vec<String>,
    },
    /// The syntax of a language was loaded: its code can be drawn with colors.
    SyntaxLoaded(String),
}
