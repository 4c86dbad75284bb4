//! Open requests of agents to the user.

/// The state of the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxState {}
