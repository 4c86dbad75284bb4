//! The journal handle of the test suite. If it has an archive, it archives events right after each
//! append, so that every read uses segments.

use crate::{
    AppendError, AppendRequest, Archiver, Journal, PeerHosts, ReadError, StoredEvent, StreamClaim,
    StreamInfo, UpkeepError,
};
use std::{future::Future, path::Path, sync::Arc, time::Duration};

pub(super) struct JournalHandle {
    journal: Journal,
    /// Moves all events to the archive.
    archiver: Option<Archiver>,
}

impl Clone for JournalHandle {
    fn clone(&self) -> JournalHandle {
        JournalHandle { journal: self.journal.clone(), archiver: self.archiver.clone() }
    }
}

impl JournalHandle {
    pub(super) fn new(journal: Journal) -> JournalHandle {
        JournalHandle { journal, archiver: None }
    }

    pub(super) fn with_archive(self, dir: &Path) -> JournalHandle {
        let archiver = self.journal.archiver().unwrap();
        archiver.open_archive(&format!("file://{}", dir.display())).unwrap();
        JournalHandle { archiver: Some(archiver), ..self }
    }

    pub(super) fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        self.journal.claim_stream(stream)
    }

    pub(super) fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        let outcomes = self.journal.append_batch(batch);
        if let Some(archiver) = &self.archiver {
            block_on_task(archiver.archive_own_streams(Duration::ZERO)).unwrap();
            assert_eq!(archiver.gauges().hot_streams, 0);
        }
        outcomes
    }

    pub(super) fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.journal.read_events(stream, after, events_max, bytes_max)
    }

    pub(super) fn list_streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        self.journal.list_streams()
    }

    pub(super) fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        self.journal.delete_stream(stream)
    }

    /// Also archives the events of other handles.
    pub(super) fn run_upkeep(&self) -> Result<(), UpkeepError> {
        if let Some(archiver) = &self.archiver {
            let peers = PeerHosts { is_alive: Arc::new(|_| false), is_ours: Arc::new(|_| true) };
            block_on_task(archiver.archive_abandoned_streams(Duration::ZERO, peers)).unwrap();
        }
        self.journal.run_upkeep()
    }
}

fn block_on_task<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
