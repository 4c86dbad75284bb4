//! Runs the operations on a local journal: one thread writes, one reads, one does the upkeep. A
//! small append skips the queue: if nothing is queued before it, it is committed on the calling
//! thread, which costs less than waking another thread.

use super::{
    CompletionHandler, JournalCompletion, READS_MAX, ReadRequest, WAITING_BYTES_MAX,
    append_completion, overload_completion, spawn_thread,
    write_queue::{WriteGroup, WriteOperation, WriteQueue, append_size},
};
use crate::{error::ReadError, journal::Journal, record::AppendRequest};
use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// The limits of a batch that is committed on the calling thread. Beyond them the commit costs more
/// than handing it to the writer thread.
const INLINE_EVENTS_MAX: u64 = 32;
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// The approximate size of one transaction of the writer thread. It fits SQLite's cache, and the
/// first append in it does not wait too long for the last.
const GROUP_BYTES_MAX: usize = 1024 * 1024;

/// The delay before failed upkeep is retried.
const UPKEEP_RETRY_DELAY: Duration = Duration::from_secs(5);

pub(super) struct StorageThreads {
    journal: Journal,
    queue: Arc<WriteQueue>,
    reads: SyncSender<ReadRequest>,
    upkeep: SyncSender<()>,
}

impl StorageThreads {
    pub(super) fn start(
        journal: &Journal,
        on_completion: &CompletionHandler,
    ) -> (StorageThreads, Vec<JoinHandle<()>>) {
        let queue = Arc::new(WriteQueue::default());
        let (reads, reads_rx) = mpsc::sync_channel(READS_MAX);
        let (upkeep, upkeep_rx) = mpsc::sync_channel(1);
        let writer = {
            let (journal, queue) = (journal.clone(), queue.clone());
            let (upkeep, on_completion) = (upkeep.clone(), on_completion.clone());
            move || run_writer(&journal, &queue, &upkeep, &*on_completion)
        };
        let reader = {
            let (journal, on_completion) = (journal.clone(), on_completion.clone());
            move || run_reader(&journal, &reads_rx, &*on_completion)
        };
        let keeper = {
            let (journal, on_completion) = (journal.clone(), on_completion.clone());
            move || run_upkeep_thread(&journal, &upkeep_rx, &*on_completion)
        };
        let threads = vec![
            spawn_thread("journal-writer", writer),
            spawn_thread("journal-reader", reader),
            spawn_thread("journal-upkeep", keeper),
        ];
        request_upkeep_if_due(journal, &upkeep);
        (StorageThreads { journal: journal.clone(), queue, reads, upkeep }, threads)
    }

    /// Commits a batch on the calling thread if no operation is queued or in progress, the batch is
    /// small, and the commit waits neither for the disk nor for another writer. The result may be
    /// returned before the completion handler was called for an earlier commit.
    pub(super) fn append_batch(&self, batch: Vec<AppendRequest>) -> Vec<JournalCompletion> {
        if is_small(&batch)
            && self.queue.is_idle()
            && let Some(outcomes) = self.journal.try_append_batch(&batch)
        {
            request_upkeep_if_due(&self.journal, &self.upkeep);
            return batch.iter().zip(outcomes).map(append_completion).collect();
        }
        let waiting_bytes = self.waiting_bytes();
        let bytes: usize = batch.iter().map(append_size).sum();
        if waiting_bytes != 0 && WAITING_BYTES_MAX < waiting_bytes + bytes {
            return batch.iter().map(|it| overload_completion(it, waiting_bytes)).collect();
        }
        self.queue.push_all(batch.into_iter().map(WriteOperation::Append));
        Vec::new()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.queue.waiting_bytes()
    }

    pub(super) fn start_read(&self, read: ReadRequest) -> Option<JournalCompletion> {
        let refused = self.reads.try_send(read).err()?;
        let (mpsc::TrySendError::Full(read) | mpsc::TrySendError::Disconnected(read)) = refused;
        let ReadRequest { token, stream, after, .. } = read;
        let error = ReadError::Overloaded { stream: stream.clone() };
        Some(JournalCompletion::ReadFailed { token, stream, after, error })
    }

    pub(super) fn start_delete(&self, stream: Arc<str>) {
        self.queue.push_all([WriteOperation::Delete(stream)]);
    }

    #[cfg(test)]
    pub(super) fn queue(&self) -> &Arc<WriteQueue> {
        &self.queue
    }
}

impl Drop for StorageThreads {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn run_writer(
    journal: &Journal,
    queue: &WriteQueue,
    upkeep: &SyncSender<()>,
    on_completion: &dyn Fn(JournalCompletion),
) {
    while let Some(group) = queue.next_group(GROUP_BYTES_MAX) {
        match group {
            WriteGroup::Append(batch) => {
                let outcomes = journal.append_batch(&batch);
                queue.mark_committed();
                batch.iter().zip(outcomes).map(append_completion).for_each(on_completion);
            }
            WriteGroup::Delete(stream) => {
                let deleted = journal.delete_stream(&stream);
                queue.mark_committed();
                on_completion(match deleted {
                    Ok(()) => JournalCompletion::Deleted { stream },
                    Err(error) => JournalCompletion::DeleteFailed { stream, error },
                });
            }
        }
        request_upkeep_if_due(journal, upkeep);
    }
}

fn run_reader(
    journal: &Journal,
    reads: &Receiver<ReadRequest>,
    on_completion: &dyn Fn(JournalCompletion),
) {
    for ReadRequest { token, stream, after, events_max, bytes_max } in reads {
        on_completion(match journal.read_events(&stream, after, events_max, bytes_max) {
            Ok(events) => JournalCompletion::Read { token, stream, after, events },
            Err(error) => JournalCompletion::ReadFailed { token, stream, after, error },
        });
    }
}

fn run_upkeep_thread(
    journal: &Journal,
    requests: &Receiver<()>,
    on_completion: &dyn Fn(JournalCompletion),
) {
    let mut failed_at: Option<Instant> = None;
    for () in requests {
        let is_delayed = failed_at.is_some_and(|it| it.elapsed() < UPKEEP_RETRY_DELAY);
        if is_delayed || !journal.is_upkeep_due() {
            continue;
        }
        failed_at = match journal.run_upkeep() {
            Ok(()) => None,
            Err(error) => {
                on_completion(JournalCompletion::UpkeepFailed { error });
                Some(Instant::now())
            }
        };
    }
}

fn request_upkeep_if_due(journal: &Journal, upkeep: &SyncSender<()>) {
    if journal.is_upkeep_due() {
        // A full channel already contains a request.
        let _ = upkeep.try_send(());
    }
}

fn is_small(batch: &[AppendRequest]) -> bool {
    let events: u64 = batch.iter().map(|it| u64::from(it.count)).sum();
    let bytes: usize = batch.iter().map(append_size).sum();
    events <= INLINE_EVENTS_MAX && bytes <= INLINE_BYTES_MAX
}
