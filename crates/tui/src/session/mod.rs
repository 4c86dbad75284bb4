//! One session: its transcript, the input field, the queue and the settings.

/// The state of an open session.
#[derive(Debug, Default)]
pub(crate) struct SessionView {}
