//! The board: all sessions, grouped and filtered.

use crate::{
    hub::SessionRow,
    page::{AppInput, UpdateContext},
};

/// The state of the board.
#[derive(Debug, Default)]
pub(crate) struct BoardState {}

#[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "not written yet")]
impl BoardState {
    pub(crate) fn update(&mut self, _cx: &mut UpdateContext<'_>, _input: &AppInput) {}

    pub(crate) fn has_text_field(&self) -> bool {
        false
    }

    pub(crate) fn find_row(&self, _session: &str) -> Option<&SessionRow> {
        None
    }

    pub(crate) fn finish_deletions(&mut self, _cx: &mut UpdateContext<'_>) {}
}
