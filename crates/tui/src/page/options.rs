//! What the user chose at the start, and the pages.

use crate::text::{ColorDepth, TerminalBackground};

/// What the user chose at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewOptions {
    pub(crate) color_depth: ColorDepth,
    pub(crate) background: TerminalBackground,
    /// The home directory, shown as `~`.
    pub(crate) home: Option<String>,
    /// The directory in which a new session starts.
    pub(crate) cwd: String,
    /// The frame is below the prompt of the shell, and finished items are printed above it.
    pub(crate) is_inline: bool,
    /// Syntaxes are loaded in the background, and code has no colors until then.
    pub(crate) loads_syntaxes: bool,
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
