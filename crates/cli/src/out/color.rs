//! The few colors there are, each with one meaning. Everything reads the same without them.

use anstyle::{AnsiColor, Style};
use std::fmt::Display;

pub(crate) const DONE: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const ALERT: Style = AnsiColor::Red.on_default().bold();
/// Names of things, and hints.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// What need not be read.
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BRIGHT: Style = Style::new().bold();

pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
