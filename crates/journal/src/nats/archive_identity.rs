//! Which archive has the cold events of a cell. The cell and a marker in the archive both have its identity, and
//! events are removed from a log only while these agree: a directory whose storage is not mounted, or a bucket with
//! another prefix, gets nothing.

use super::{
    Store,
    servers::{Stored, Trouble},
};
use async_nats::HeaderMap;
use serde::{Deserialize, Serialize};

/// Hosts that use an archive for the first time at the same moment.
const ATTEMPTS_MAX: usize = 8;

/// What the cell knows about its archive.
#[derive(Debug, Serialize, Deserialize)]
struct ArchiveRecord {
    archive: String,
    /// The archive has the marker. Before that nothing was removed from a log.
    marked: bool,
}

impl Store {
    /// Whether an archive has events of this cell.
    pub(super) async fn has_used_archive(&self) -> Result<bool, Trouble> {
        Ok(self.archive_record().await?.is_some_and(|(_, it)| it.marked))
    }

    /// Refuses an archive that is not the one of this cell. One that was never used is not marked.
    pub(super) async fn check_used_archive(&self) -> Result<(), Trouble> {
        match self.archive_record().await? {
            Some((_, record)) if record.marked => {
                compare(&record.archive, self.archive()?.identity().await?)
            }
            _ => Ok(()),
        }
    }

    /// Refuses an archive that is not the one of this cell. The first use makes it that.
    pub(super) async fn check_archive(&self) -> Result<(), Trouble> {
        let archive = self.archive()?;
        for _ in 0..ATTEMPTS_MAX {
            let (at, record) = match self.archive_record().await? {
                // Only now: the marker is written before the record says so.
                Some((_, record)) if record.marked => {
                    return compare(&record.archive, archive.identity().await?);
                }
                Some(known) => known,
                None => {
                    let found = archive.identity().await?;
                    let marked = found.is_some();
                    let archive = found.unwrap_or_else(new_identity);
                    self.write_record(0, &ArchiveRecord { archive, marked }).await?;
                    continue;
                }
            };
            archive.mark(&record.archive).await?;
            self.write_record(at, &ArchiveRecord { marked: true, ..record }).await?;
        }
        Err(Trouble::Refused("other hosts begin to use the archive; try again".to_owned()))
    }

    async fn archive_record(&self) -> Result<Option<(u64, ArchiveRecord)>, Trouble> {
        let last = self.servers.last(&self.cell.owned(), &self.cell.archive_subject()).await?;
        let Some(Stored { at, body, .. }) = last else { return Ok(None) };
        let record = serde_json::from_slice(&body);
        let record = record.map_err(|it| {
            Trouble::Refused(format!("the cell does not say which archive it has: {it}"))
        })?;
        Ok(Some((at, record)))
    }

    /// Somebody else may be faster: the next look finds what they wrote.
    async fn write_record(&self, after: u64, record: &ArchiveRecord) -> Result<(), Trouble> {
        let body = serde_json::to_vec(record).expect("a record is plain data");
        let subject = self.cell.archive_subject();
        match self.servers.publish(subject, HeaderMap::new(), body.into(), Some(after)).await {
            Ok(_) | Err(Trouble::Stale | Trouble::Busy) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Whether the archive that was found is the one that the cell knows.
fn compare(known: &str, found: Option<String>) -> Result<(), Trouble> {
    let found = match found {
        Some(found) if found == known => return Ok(()),
        Some(found) => format!("this is {found}"),
        None => {
            "this has no marker; its storage may not be mounted, or the URL is another".to_owned()
        }
    };
    Err(Trouble::Archive(format!(
        "the events of this fleet are in archive {known}, and {found}: nothing is moved"
    )))
}

fn new_identity() -> String {
    let number = getrandom::u64().expect("the system has random numbers");
    format!("{number:016x}")
}
