//! Stores the number of the last acknowledged record in a separate file.
//!
//! A WAL that is removed or truncated after a crash leaves a database that is intact but too old,
//! and the database itself does not show that. This file survives the loss, so the next start can
//! compare. It is written after each commit without waiting for the disk: it may be behind the log,
//! never ahead of the commits.

use super::open_files::companion_path;
use crate::durability::LostRecords;
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
};

/// The number has a fixed width, so that a new number overwrites the old one completely.
const WIDTH: usize = 20;

#[derive(Debug)]
pub(super) struct AcknowledgedRecord {
    file: File,
}

impl AcknowledgedRecord {
    /// Opens or creates the file next to the database, readable only by its owner.
    pub(super) fn open(database: &Path) -> io::Result<AcknowledgedRecord> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let path = companion_path(database, "-acknowledged");
        Ok(AcknowledgedRecord { file: jackfield_private_files::open_file(&path, &mut options)? })
    }

    /// Stores the number of the last record. An error is ignored: the file stays behind until the
    /// next commit.
    pub(super) fn store_record(&self, record: i64) {
        let _ = self.file.write_all_at(format!("{record:0WIDTH$}\n").as_bytes(), 0);
    }

    /// The records between the last record in the log and the last acknowledged record.
    pub(super) fn lost_records_after(&self, last: i64) -> Option<LostRecords> {
        let mut text = [0; WIDTH];
        // An empty, truncated or edited file says nothing about lost records.
        self.file.read_exact_at(&mut text, 0).ok()?;
        let acknowledged: i64 = std::str::from_utf8(&text).ok()?.parse().ok()?;
        let count = u64::try_from(acknowledged - last).ok().filter(|it| 0 < *it)?;
        Some(LostRecords { count })
    }
}
