//! Confined access to files inside a session's directories, and the tail of a command's output.
//!
//! The daemon uses it to serve an agent's `fs` and `terminal` requests when no client does, and
//! Jackfield's own agent uses it when its client does not.
//!
//! Everything here blocks: callers run it on a thread that may wait for a disk.
//!
//! **Invariant:** nothing outside the session's directories is opened, created or described in an
//! error, regardless of symbolic links and concurrent renames.

mod confined_path;
mod files;
mod output_tail;

pub use confined_path::{ConfinedPath, refuse_path};
pub use files::{ReadFileRequest, RemoveFileRequest, WriteFileRequest};
pub use output_tail::OutputTail;
