//! The state of the interface.

use crate::{
    board::BoardState,
    hub::{ConnectionState, RequestNumber},
    inbox::InboxState,
    keymap::KeyBindings,
    session::SessionView,
    text::{ColorDepth, ViewTheme},
};
use jackfield_events::Time;

/// What the user chose at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewOptions {
    pub(crate) color_depth: ColorDepth,
    /// Draws below the prompt of the shell instead of on the alternate screen.
    pub(crate) is_inline: bool,
    pub(crate) uses_mouse: bool,
    /// The home directory, shown as `~`.
    pub(crate) home: Option<String>,
    /// The directory in which a new session starts.
    pub(crate) cwd: String,
    /// The session to open at once.
    pub(crate) session: Option<String>,
}

/// The page that has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ActivePage {
    #[default]
    Board,
    Session,
    Inbox,
    Help,
}

/// Everything that is drawn.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) options: ViewOptions,
    pub(crate) theme: ViewTheme,
    pub(crate) keymap: KeyBindings,
    pub(crate) size: (u16, u16),
    pub(crate) now: Time,
    pub(crate) connection: ConnectionState,
    pub(crate) page: ActivePage,
    /// The page to return to from the inbox or the help.
    pub(crate) previous_page: ActivePage,
    pub(crate) board: BoardState,
    pub(crate) session: Option<SessionView>,
    pub(crate) inbox: InboxState,
    /// One line about the last action, and until when it is shown.
    pub(crate) notice: Option<(String, Time)>,
    pub(crate) last_request: RequestNumber,
}

impl AppState {
    pub(crate) fn new(
        options: ViewOptions,
        keymap: KeyBindings,
        size: (u16, u16),
        now: Time,
    ) -> AppState {
        AppState {
            theme: ViewTheme::new(options.color_depth),
            options,
            keymap,
            size,
            now,
            connection: ConnectionState::default(),
            page: ActivePage::default(),
            previous_page: ActivePage::default(),
            board: BoardState::default(),
            session: None,
            inbox: InboxState::default(),
            notice: None,
            last_request: RequestNumber::default(),
        }
    }
}
