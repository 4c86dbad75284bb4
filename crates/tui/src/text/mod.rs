//! Turns foreign text into safe, styled lines: control characters removed, Markdown, code, colors of terminal output
//! and diffs as styles, wrapped by cells.

mod theme;

pub(crate) use theme::{ColorDepth, ViewTheme};
