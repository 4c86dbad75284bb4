//! The last record that was acknowledged, in a file of its own.
//!
//! A WAL that is removed or cut after a crash leaves a database that is whole and too old, and nothing in it shows
//! that. This file survives the loss, so the next start can compare. It is written after each commit, without waiting
//! for the disk: it may be behind the log, never ahead of what was committed.

use super::open_files::beside;
use crate::journal::LostRecords;
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
};

/// A number of fixed width, so that a new one covers the old one.
const WIDTH: usize = 20;

#[derive(Debug)]
pub(super) struct AcknowledgedRecord {
    file: File,
}

impl AcknowledgedRecord {
    /// Opens the file beside the database, or creates it, readable by its owner alone.
    pub(super) fn open(database: &Path) -> io::Result<AcknowledgedRecord> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let path = beside(database, "-acknowledged");
        Ok(AcknowledgedRecord { file: jackfield_private_files::open_file(&path, &mut options)? })
    }

    /// Notes the last record. A failure is ignored: the note stays behind, and the next one is tried again.
    pub(super) fn set(&self, record: i64) {
        let _behind = self.file.write_all_at(format!("{record:0WIDTH$}\n").as_bytes(), 0);
    }

    /// The records between the last one in the log and the last one that was acknowledged.
    pub(super) fn missing_after(&self, last: i64) -> Option<LostRecords> {
        let mut text = [0; WIDTH];
        // Empty, cut or written by hand: then nothing is known.
        self.file.read_exact_at(&mut text, 0).ok()?;
        let acknowledged: i64 = std::str::from_utf8(&text).ok()?.parse().ok()?;
        let count = u64::try_from(acknowledged - last).ok().filter(|it| 0 < *it)?;
        Some(LostRecords { count })
    }
}
