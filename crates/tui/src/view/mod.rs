//! Draws the state into a frame.

use crate::app::AppState;
use ratatui::Frame;

/// Draws the whole interface.
pub(crate) fn draw(_state: &AppState, _frame: &mut Frame<'_>) {}
