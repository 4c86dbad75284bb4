//! One session: its transcript, the input field, the queue and the settings.

mod transcript_pane;

use crate::{
    hub::{HubRequest, SessionRow},
    keymap::KeyContext,
    page::{AppInput, UpdateContext},
};
pub(crate) use transcript_pane::{FindStatus, TranscriptPane};

/// The state of an open session.
#[derive(Debug, Default)]
pub(crate) struct SessionView {
    session: String,
}

#[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "not written yet")]
impl SessionView {
    /// Opens a session. `row` is missing if the lists have not arrived yet.
    pub(crate) fn open(
        _cx: &mut UpdateContext<'_>,
        session: &str,
        _row: Option<&SessionRow>,
    ) -> SessionView {
        SessionView { session: session.to_owned() }
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.session
    }

    /// What has the focus, for the keys and the footer.
    pub(crate) fn focus(&self) -> KeyContext {
        KeyContext::Composer
    }

    /// Handles keys while the page has the focus, and everything that concerns the session at any time.
    /// `AppInput::Resize` has the size of the page.
    pub(crate) fn update(&mut self, _cx: &mut UpdateContext<'_>, _input: &AppInput) {}

    /// Ends what was started for the session.
    pub(crate) fn close(self, cx: &mut UpdateContext<'_>) {
        cx.send(HubRequest::Unfollow { session: self.session });
    }

    /// Whether the input field has text: a new request does not take the focus from it.
    pub(crate) fn has_draft(&self) -> bool {
        false
    }
}
