//! Turns foreign text into safe, styled lines: control characters removed, Markdown, code, colors of terminal output
//! and diffs as styles, wrapped by cells.

mod cells;
mod color;
mod color_depth;
mod diff;
mod escape_sequence;
mod format;
mod highlight;
#[cfg(test)]
mod hostile_tests;
mod json;
mod markdown;
mod palette;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rendering_tests;
mod sanitize;
mod span_list;
mod terminal_output;
mod theme;
mod wrap;

pub(crate) use cells::{cell_width, truncate_cells};
pub(crate) use color_depth::ColorDepth;
pub(crate) use diff::render_diff;
pub(crate) use format::{format_age, format_cost, format_duration, format_tokens, shorten_path};
pub(crate) use highlight::{CodeSample, SyntaxLoading, highlight_code};
pub(crate) use json::render_json;
pub(crate) use markdown::render_markdown;
pub(crate) use palette::TerminalBackground;
pub(crate) use sanitize::{escape_hidden, sanitize_line, sanitize_text};
pub(crate) use terminal_output::render_terminal_output;
pub(crate) use theme::ViewTheme;
pub(crate) use wrap::wrap_line;
