//! The board: all sessions, grouped and filtered.

/// The state of the board.
#[derive(Debug, Default)]
pub(crate) struct BoardState {}
