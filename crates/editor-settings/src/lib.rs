//! Adds agents to the settings of editors and takes them out again, without I/O.
//!
//! Settings in JSON are edited as text: members are inserted and removed, and every other byte stays as it is.
//! For editors whose settings are programs, a file of our own is generated.

mod elisp;
mod entries;
mod jsonc;
mod lua;

pub use elisp::{elisp_load_line, generate_elisp_file};
pub use entries::{EntryEdit, EntryRemoval, SettingsEntry, add_entries, remove_entries};
pub use jsonc::{EditError, InsertedValue, SyntaxError, format_document};
pub use lua::{generate_lazy_spec, generate_lua_module};

use serde::{Deserialize, Serialize};

/// An agent as an editor starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorAgent {
    /// The name that `jackfield acp` accepts.
    pub id: String,
    /// The name in the menus of the editor.
    pub title: String,
}
