//! Open requests of agents to the user.

use crate::{
    keymap::KeyContext,
    page::{AppInput, UpdateContext},
};
use jackfield_events::Time;

/// The state of the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxState {}

#[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "not written yet")]
impl InboxState {
    pub(crate) fn update(&mut self, _cx: &mut UpdateContext<'_>, _input: &AppInput) {}

    pub(crate) fn key_context(&self) -> KeyContext {
        KeyContext::Inbox
    }

    pub(crate) fn on_drawn(&mut self, _cx: &mut UpdateContext<'_>, _is_shown: bool) {}

    pub(crate) fn on_focus(&mut self, _cx: &mut UpdateContext<'_>, _has_focus: bool) {}

    pub(crate) fn on_typed(&mut self, _now: Time) {}

    pub(crate) fn has_requests(&self) -> bool {
        false
    }

    /// The first open request in a few words, and the number of all.
    pub(crate) fn first_request(&self) -> Option<(String, usize)> {
        None
    }
}
