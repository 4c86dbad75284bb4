//! What a plan asks about the disk.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// Questions about paths of this machine.
pub trait PathLookup {
    /// The path without symbolic links, if it exists.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;
    /// What a path is, without following a link at its end.
    fn kind(&self, path: &Path) -> Option<EntryKind>;
    /// The names in a directory.
    fn list(&self, path: &Path) -> Vec<OsString>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File,
    Link,
}

/// The disk itself.
#[derive(Debug, Clone, Copy)]
pub struct DiskLookup;

impl PathLookup for DiskLookup {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok()
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        let kind = fs::symlink_metadata(path).ok()?.file_type();
        Some(if kind.is_symlink() {
            EntryKind::Link
        } else if kind.is_dir() {
            EntryKind::Directory
        } else {
            EntryKind::File
        })
    }

    fn list(&self, path: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.file_name()).collect();
        names.sort();
        names
    }
}
