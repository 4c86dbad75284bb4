//! Actions and their keys.
//!
//! [`table`] lists all actions with their names in `config.toml`, the contexts in which they apply, and their
//! default keys. [`KeyBindings`] finds the action of a key.

mod action;
mod bindings;
mod key_chord;
mod table;

pub(crate) use action::{KeyAction, KeyContext};
pub(crate) use bindings::KeyBindings;
pub use bindings::{EditingKeys, KeyBindingError, check_key_bindings};
pub(crate) use key_chord::KeyChord;
