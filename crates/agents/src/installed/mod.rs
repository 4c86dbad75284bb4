//! The agents that Jackfield has installed, each in a folder of its own.
//!
//! ```text
//! agents/                    mode 0700
//!   gemini.lock              held by the command that changes gemini
//!   gemini/
//!     current                the versions in use and before, replaced as a whole
//!     0.61.0/                one folder per version
//!       bin/                 links to the programs, all into this folder
//!       installed.json       written last: a folder without it is incomplete
//!       node_modules/, package-lock.json   or   venv/, requirements.txt   or   files/
//! ```
//!
//! **Invariant:** a program is used only if `current` names its version, and `current` names only versions that were
//! installed completely and whose program has started.
//!
//! **Invariant:** no folder is used that is a symbolic link or belongs to another user.

mod agent_lock;
mod record;
mod store;
mod version_name;

pub use agent_lock::AgentLock;
pub(crate) use record::RECORD_FORMAT;
pub use record::{InstallRecord, PackageRecord, PackageSource, VersionSelection};
pub use store::{InstalledAgents, InstalledVersion, StoreError};
pub(crate) use version_name::is_version_name;

#[cfg(test)]
mod tests;
