//! The state of the interface.

use super::HelpState;
use crate::{
    board::BoardState,
    hub::{ConnectionState, RequestNumber},
    inbox::InboxState,
    keymap::KeyBindings,
    page::{ActivePage, ViewOptions},
    session::SessionView,
    text::{SyntaxLoading, ViewTheme},
};
use jackfield_events::Time;

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
    pub(crate) help: HelpState,
    /// One line about the last action, and until when it is shown.
    pub(crate) notice: Option<(String, Time)>,
    /// The size of the page that the parts were laid out for.
    pub(super) page_size: (u16, u16),
    pub(crate) last_request: RequestNumber,
}

impl AppState {
    pub(crate) fn new(
        options: ViewOptions,
        keymap: KeyBindings,
        size: (u16, u16),
        now: Time,
    ) -> AppState {
        let mut theme = ViewTheme::on_background(options.color_depth, options.background);
        theme.syntax_loading = options.loads_syntaxes.then(SyntaxLoading::default);
        AppState {
            theme,
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
            help: HelpState::default(),
            notice: None,
            page_size: (0, 0),
            last_request: RequestNumber::default(),
        }
    }
}
