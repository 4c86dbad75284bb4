//! Identifies the archive of a cell. The cell and a marker in the archive both store the identity,
//! and events are removed from a log only while the two agree. So no event is moved to a directory
//! whose storage is not mounted, or to a bucket with another prefix.

use super::{
    NatsStore,
    jetstream::{NatsError, StoredMessage},
};
use async_nats::HeaderMap;
use serde::{Deserialize, Serialize};

/// The number of attempts when several hosts use an archive for the first time at the same moment.
const ATTEMPTS_MAX: usize = 8;

/// What the cell stores about its archive.
#[derive(Debug, Serialize, Deserialize)]
struct ArchiveRecord {
    archive: String,
    /// The archive has the marker. Before that, no event was removed from a log.
    marked: bool,
}

impl NatsStore {
    /// Whether an archive contains events of this cell.
    pub(super) async fn has_used_archive(&self) -> Result<bool, NatsError> {
        Ok(self.archive_record().await?.is_some_and(|(_, it)| it.marked))
    }

    /// Refuses an archive that does not belong to this cell. Does not mark an unused archive.
    pub(super) async fn check_used_archive(&self) -> Result<(), NatsError> {
        match self.archive_record().await? {
            Some((_, record)) if record.marked => {
                compare_identity(&record.archive, self.archive()?.read_identity().await?)
            }
            _ => Ok(()),
        }
    }

    /// Refuses an archive that does not belong to this cell. The first use assigns it to the cell.
    pub(super) async fn check_archive(&self) -> Result<(), NatsError> {
        let archive = self.archive()?;
        for _ in 0..ATTEMPTS_MAX {
            let (position, record) = match self.archive_record().await? {
                // The marker is read after the record: a marked record implies a written marker.
                Some((_, record)) if record.marked => {
                    return compare_identity(&record.archive, archive.read_identity().await?);
                }
                Some(known) => known,
                None => {
                    let found = archive.read_identity().await?;
                    let marked = found.is_some();
                    let archive = found.unwrap_or_else(new_identity);
                    self.write_record(0, &ArchiveRecord { archive, marked }).await?;
                    continue;
                }
            };
            archive.write_marker(&record.archive).await?;
            self.write_record(position, &ArchiveRecord { marked: true, ..record }).await?;
        }
        Err(NatsError::Refused("other hosts are marking the archive; try again".to_owned()))
    }

    async fn archive_record(&self) -> Result<Option<(u64, ArchiveRecord)>, NatsError> {
        let last =
            self.jetstream.read_last(&self.cell.owned_name(), &self.cell.archive_subject()).await?;
        let Some(StoredMessage { position, body, .. }) = last else { return Ok(None) };
        let record = serde_json::from_slice(&body);
        let record = record.map_err(|it| {
            NatsError::Refused(format!("failed to parse the archive record of the cell: {it}"))
        })?;
        Ok(Some((position, record)))
    }

    /// Another host may write the record first; the next read finds its record.
    async fn write_record(&self, after: u64, record: &ArchiveRecord) -> Result<(), NatsError> {
        let body = serde_json::to_vec(record).expect("a record is plain data");
        let subject = self.cell.archive_subject();
        match self
            .jetstream
            .publish_message(subject, HeaderMap::new(), body.into(), Some(after))
            .await
        {
            Ok(_) | Err(NatsError::Stale | NatsError::Busy) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Fails if the identity in the marker is not the one that the cell stores.
fn compare_identity(expected: &str, actual: Option<String>) -> Result<(), NatsError> {
    let actual = match actual {
        Some(actual) if actual == expected => return Ok(()),
        Some(actual) => format!("this is {actual}"),
        None => {
            "this has no marker; its storage may not be mounted, or the URL is another".to_owned()
        }
    };
    Err(NatsError::Archive(format!(
        "the events of this fleet are in archive {expected}, and {actual}: nothing is moved"
    )))
}

fn new_identity() -> String {
    let number = getrandom::u64().expect("the system has random numbers");
    format!("{number:016x}")
}
