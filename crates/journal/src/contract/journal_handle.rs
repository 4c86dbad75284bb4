//! The journal handle of the test suite. If it has an archive, it archives events right after each
//! append, so that every read uses segments. On NATS it repeats an operation whose outcome is unknown,
//! as the product does: servers of a busy machine may elect a leader at any time.

use crate::{
    AppendError, AppendRequest, CellAddress, Journal, OpenError, PeerHosts, ReadError, StoredEvent,
    StreamArchiver, StreamClaim, StreamInfo, UpkeepError,
};
use jackfield_test_support::wait::wait_for;
use std::{future::Future, path::Path, sync::Arc, time::Duration};

/// Longer than an election on a busy machine.
const ELECTION_MAX: Duration = Duration::from_secs(30);

pub(super) struct JournalHandle {
    journal: Journal,
    is_on_nats: bool,
    /// Moves all events to the archive.
    archiver: Option<StreamArchiver>,
}

impl Clone for JournalHandle {
    fn clone(&self) -> JournalHandle {
        JournalHandle {
            journal: self.journal.clone(),
            is_on_nats: self.is_on_nats,
            archiver: self.archiver.clone(),
        }
    }
}

impl JournalHandle {
    pub(super) fn local(journal: Journal) -> JournalHandle {
        JournalHandle { journal, is_on_nats: false, archiver: None }
    }

    /// Connects to the cell, and uses the archive in this directory, if there is one.
    pub(super) fn connect(address: &CellAddress, archive_dir: Option<&Path>) -> JournalHandle {
        let is_transient = |error: &OpenError| matches!(error, OpenError::Unreachable { .. });
        let journal = repeat(is_transient, || Journal::connect(address.clone())).unwrap();
        let archiver = archive_dir.map(|dir| {
            let archiver = journal.archiver().unwrap();
            let url = format!("file://{}", dir.display());
            repeat(is_transient, || archiver.open_archive(&url)).unwrap();
            archiver
        });
        JournalHandle { journal, is_on_nats: true, archiver }
    }

    pub(super) fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        self.run(is_unknown_outcome, || self.journal.claim_stream(stream))
    }

    pub(super) fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        let mut outcomes = self.journal.append_batch(batch);
        for (outcome, append) in outcomes.iter_mut().zip(batch) {
            if self.is_on_nats && outcome.as_ref().is_err_and(is_unknown_outcome) {
                let append = std::slice::from_ref(append);
                *outcome =
                    self.run(is_unknown_outcome, || self.journal.append_batch(append).remove(0));
            }
        }
        if let Some(archiver) = &self.archiver {
            self.run(|_| true, || block_on_task(archiver.archive_own_streams(Duration::ZERO)))
                .unwrap();
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
        self.run(is_unavailable, || self.journal.read_events(stream, after, events_max, bytes_max))
    }

    pub(super) fn list_streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        self.run(is_unavailable, || self.journal.list_streams())
    }

    pub(super) fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        self.run(is_unknown_outcome, || self.journal.delete_stream(stream))
    }

    /// Also archives the events of other handles.
    pub(super) fn run_upkeep(&self) -> Result<(), UpkeepError> {
        if let Some(archiver) = &self.archiver {
            self.run(
                |_| true,
                || {
                    let peers =
                        PeerHosts { is_alive: Arc::new(|_| false), is_ours: Arc::new(|_| true) };
                    block_on_task(archiver.archive_abandoned_streams(Duration::ZERO, peers))
                },
            )
            .unwrap();
        }
        self.run(|_| true, || self.journal.run_upkeep())
    }

    fn run<T, E>(
        &self,
        is_transient: impl Fn(&E) -> bool,
        operation: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        repeat(|error| self.is_on_nats && is_transient(error), operation)
    }
}

/// Repeats an operation while its error is transient.
fn repeat<T, E>(
    is_transient: impl Fn(&E) -> bool,
    mut operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    wait_for("a leader of the servers", ELECTION_MAX, || {
        Some(operation()).filter(|outcome| !outcome.as_ref().is_err_and(&is_transient))
    })
}

fn is_unknown_outcome(error: &AppendError) -> bool {
    use AppendError::{ClaimFailed, DeleteFailed, Unavailable};
    matches!(error, Unavailable { .. } | ClaimFailed { .. } | DeleteFailed { .. })
}

fn is_unavailable(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable { .. } | ReadError::ListFailed { .. })
}

fn block_on_task<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
