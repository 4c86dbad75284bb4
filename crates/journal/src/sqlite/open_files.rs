//! Checks that the database and its WAL are still the files that were opened.
//!
//! SQLite continues to write to a file that was removed or renamed: every commit succeeds and is
//! lost at the next start. Therefore the paths are checked after each commit, before it is
//! acknowledged.

use crate::error::{FileChange, JournalFileChanged};
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The files of an open journal, identified by device and inode.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: [OpenFile; 2],
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    id: FileId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl OpenFiles {
    /// Records the files that are at these paths now. The caller has just opened them.
    pub(super) fn new(database: &Path) -> io::Result<OpenFiles> {
        let open = |path: PathBuf| Ok::<_, io::Error>(OpenFile { id: file_id(&path)?, path });
        Ok(OpenFiles { files: [open(database.to_owned())?, open(wal_path(database))?] })
    }

    /// Fails if one of the files is no longer at its path.
    pub(super) fn check_paths(&self) -> Result<(), JournalFileChanged> {
        for OpenFile { path, id } in &self.files {
            let change = match file_id(path) {
                Ok(found) if found == *id => continue,
                Ok(_) => FileChange::Replaced,
                Err(_) => FileChange::Removed,
            };
            return Err(JournalFileChanged { path: path.clone(), change });
        }
        Ok(())
    }
}

pub(super) fn wal_path(database: &Path) -> PathBuf {
    companion_path(database, "-wal")
}

/// The path of a file that belongs to the database, for example its WAL.
pub(super) fn companion_path(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn file_id(path: &Path) -> io::Result<FileId> {
    let meta = fs::metadata(path)?;
    Ok(FileId { device: meta.dev(), inode: meta.ino() })
}
