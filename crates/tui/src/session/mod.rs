//! One session: its transcript, the input field, the queue and the settings.

mod transcript_pane;

pub(crate) use transcript_pane::{FindStatus, TranscriptPane};

/// The state of an open session.
#[derive(Debug, Default)]
pub(crate) struct SessionView {}
