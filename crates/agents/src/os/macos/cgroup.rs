//! macOS has no control groups.

use crate::os::ProcessIdentity;
use std::path::{Path, PathBuf};

/// The group of one agent. Without an effect on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlGroup {
    directory: PathBuf,
}

#[expect(clippy::unused_self, reason = "groups of other systems have state")]
impl ControlGroup {
    pub(crate) fn new(parent: &Path, mark: &str) -> ControlGroup {
        ControlGroup { directory: parent.join(mark) }
    }

    pub(crate) fn at(directory: PathBuf) -> ControlGroup {
        ControlGroup { directory }
    }

    /// No recorded directory is a group.
    pub(crate) fn from_record(_directory: &Path, _mark: &str) -> Option<ControlGroup> {
        None
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn start_inside<T>(&self, start: impl FnOnce() -> T) -> T {
        start()
    }

    pub(crate) fn kill(&self) {}

    pub(crate) fn processes(&self) -> Vec<ProcessIdentity> {
        Vec::new()
    }

    pub(crate) fn remove(&self) {}
}

/// No directory of groups exists.
pub(crate) fn delegated_directory() -> Option<PathBuf> {
    None
}
