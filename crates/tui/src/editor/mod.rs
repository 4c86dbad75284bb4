//! The input field: several lines, undo, a kill ring, history, and the keys of emacs or vi.
//!
//! [`TextBuffer`] is the text and the cursor, [`EditorRows`] its wrapped form in cells. [`TextEditor`] handles keys.

mod blocks;
mod buffer;
mod edit_log;
mod emacs;
mod history;
mod kill_ring;
#[cfg(test)]
mod properties;
mod rows;
#[cfg(test)]
mod tests;
mod text_editor;
mod vi;
mod word_motions;

pub(crate) use history::PromptHistory;
pub(crate) use rows::{EditorRow, EditorRows};
pub(crate) use text_editor::{EditorReply, TextEditor};

use blocks::PastedBlocks;
use buffer::TextBuffer;
use edit_log::EditLog;
use kill_ring::KillRing;
