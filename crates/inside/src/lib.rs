//! What an agent may touch: files inside a session's directories, and the end of what its commands
//! print. Whoever serves an agent's `fs` and `terminal` uses it: the daemon where no client does, and
//! our own agent where its client does not.
//!
//! Everything here blocks: callers run it on a thread that may wait for a disk.
//!
//! **Invariant:** nothing outside the session's directories is opened, made or told of, whatever links
//! and renames lead there.

mod files;
mod place;
mod screen;

pub use files::{ReadFile, RemoveFile, WriteFile};
pub use place::{Place, refused};
pub use screen::Screen;
