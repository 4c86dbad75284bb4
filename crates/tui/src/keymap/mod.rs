//! Actions and their keys.

/// The keys of each action.
#[derive(Debug, Default)]
pub(crate) struct KeyBindings {}
