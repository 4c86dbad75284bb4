//! The styles of the interface, for each number of colors that a terminal has.

use super::ColorDepth;
use ratatui::style::{Color, Modifier, Style};

/// The style of each part of the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewTheme {
    pub(crate) depth: ColorDepth,
    pub(crate) text: Style,
    pub(crate) dim: Style,
    pub(crate) strong: Style,
    pub(crate) accent: Style,
    /// A session or request that waits for the user.
    pub(crate) needs_user: Style,
    pub(crate) working: Style,
    pub(crate) success: Style,
    pub(crate) warning: Style,
    pub(crate) error: Style,
    pub(crate) added: Style,
    pub(crate) removed: Style,
    pub(crate) code: Style,
    pub(crate) link: Style,
    pub(crate) selected: Style,
    pub(crate) border: Style,
}

impl ViewTheme {
    pub(crate) fn new(depth: ColorDepth) -> ViewTheme {
        let plain = Style::new();
        let color = |color: Color| if depth == ColorDepth::None { plain } else { plain.fg(color) };
        ViewTheme {
            depth,
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            strong: plain.add_modifier(Modifier::BOLD),
            accent: color(Color::Cyan),
            needs_user: color(Color::Yellow).add_modifier(Modifier::BOLD),
            working: color(Color::Blue),
            success: color(Color::Green),
            warning: color(Color::Yellow),
            error: color(Color::Red),
            added: color(Color::Green),
            removed: color(Color::Red),
            code: color(Color::Magenta),
            link: color(Color::Blue).add_modifier(Modifier::UNDERLINED),
            selected: plain.add_modifier(Modifier::REVERSED),
            border: plain.add_modifier(Modifier::DIM),
        }
    }
}
