//! [`NonBlockingJournal`]: journal access for an event loop that must not block, and the threads
//! behind it.

mod nats_tasks;
mod storage_threads;
mod stream_copy;
#[cfg(test)]
mod tests;
mod write_queue;

use crate::{
    error::{AppendError, CopyError, ReadError, UpkeepError},
    journal::Journal,
    record::{AppendRequest, StoredEvent},
};
pub use stream_copy::LineTranslator;

use bytes::Bytes;
use nats_tasks::NatsTasks;
use std::{
    collections::BTreeMap,
    panic,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use storage_threads::StorageThreads;
use stream_copy::CopyRequest;

/// The maximum number of bytes in the write queue. The caller should slow down long before: see
/// [`NonBlockingJournal::waiting_bytes`]. This limit and the next are low in tests, so that tests
/// reach them.
const WAITING_BYTES_MAX: usize = if cfg!(test) { 1024 * 1024 } else { 256 * 1024 * 1024 };

/// The maximum number of queued reads: more than there are clients.
const READS_MAX: usize = if cfg!(test) { 8 } else { 16 * 1024 };

/// The append interval of a journal on the network. Twenty appends per second and stream are enough
/// for users who follow a session.
const NETWORK_APPEND_INTERVAL: Duration = Duration::from_millis(50);

/// The maximum number of queued copies: users request them one at a time.
const COPIES_MAX: usize = 64;

/// The result of an operation of a [`NonBlockingJournal`].
#[derive(Debug, Clone)]
pub enum JournalCompletion {
    /// The stream is durable up to this event.
    Appended {
        stream: Arc<str>,
        upto: u64,
    },
    AppendFailed {
        stream: Arc<str>,
        first: u64,
        error: AppendError,
    },
    Read {
        token: u64,
        stream: Arc<str>,
        after: u64,
        events: Vec<StoredEvent>,
    },
    ReadFailed {
        token: u64,
        stream: Arc<str>,
        after: u64,
        error: ReadError,
    },
    /// The copy is complete and durable. The summary covers all of it.
    Copied {
        stream: Arc<str>,
        summary: Bytes,
    },
    /// The copy was deleted, or its summary marks it as unfinished.
    CopyFailed {
        stream: Arc<str>,
        error: CopyError,
    },
    Deleted {
        stream: Arc<str>,
    },
    /// Other hosts may claim the stream now.
    Released {
        stream: Arc<str>,
    },
    /// Other hosts still consider the stream owned by this host. Nothing is lost.
    ReleaseFailed {
        stream: Arc<str>,
        error: AppendError,
    },
    DeleteFailed {
        stream: Arc<str>,
        error: AppendError,
    },
    /// Nothing is lost, but an operator should check the disk: it may be full.
    UpkeepFailed {
        error: UpkeepError,
    },
}

/// The epoch of each stream that this journal has claimed.
type ClaimedEpochs = Arc<Mutex<BTreeMap<Arc<str>, u64>>>;

type CompletionHandler = Arc<dyn Fn(JournalCompletion) + Send + Sync>;

/// A handle to a journal whose methods do not block. Only stopping or dropping it blocks: that
/// flushes the queue and joins the threads.
pub struct NonBlockingJournal {
    journal: Journal,
    /// `None` once it is being dropped.
    executor: Option<JournalExecutor>,
    epochs: ClaimedEpochs,
    /// `None` once it is being dropped.
    copies: Option<SyncSender<CopyRequest>>,
    /// Interrupts a copy in progress.
    is_closing: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

enum JournalExecutor {
    Threads(StorageThreads),
    Tasks(NatsTasks),
}

struct ReadRequest {
    token: u64,
    stream: Arc<str>,
    after: u64,
    events_max: usize,
    bytes_max: usize,
}

impl NonBlockingJournal {
    /// Starts the threads, which call `on_completion`. A handler that blocks delays its thread.
    pub fn start(
        journal: Journal,
        on_completion: impl Fn(JournalCompletion) + Send + Sync + 'static,
    ) -> NonBlockingJournal {
        let on_completion: CompletionHandler = Arc::new(on_completion);
        let epochs = ClaimedEpochs::default();
        let (executor, mut threads) = if let Some(nats) = journal.as_nats() {
            let (tasks, notifier) = NatsTasks::start(nats.clone(), &epochs, &on_completion);
            (JournalExecutor::Tasks(tasks), vec![notifier])
        } else {
            let (storage, threads) = StorageThreads::start(&journal, &on_completion);
            (JournalExecutor::Threads(storage), threads)
        };
        let (copies, copy_receiver) = mpsc::sync_channel(COPIES_MAX);
        let is_closing = Arc::new(AtomicBool::new(false));
        let run_copies = {
            let (journal, is_closing) = (journal.clone(), is_closing.clone());
            move || stream_copy::run_copier(&journal, &copy_receiver, &is_closing, &*on_completion)
        };
        threads.push(spawn_thread("journal-copier", run_copies));
        NonBlockingJournal {
            journal,
            executor: Some(executor),
            epochs,
            copies: Some(copies),
            is_closing,
            threads,
        }
    }

    /// Appends a batch. Returns the results that are known at once; the completion handler receives
    /// the others.
    ///
    /// An append with epoch 0 uses the epoch of this handle's own claim. The first such append to a
    /// stream claims it and must start right after its head. Otherwise another writer has appended,
    /// and the append is fenced.
    #[must_use]
    pub fn append_batch(&mut self, batch: Vec<AppendRequest>) -> Vec<JournalCompletion> {
        match self.executor() {
            JournalExecutor::Tasks(tasks) => tasks.append_batch(batch),
            JournalExecutor::Threads(threads) => {
                let (mut claimed, mut done) = (Vec::with_capacity(batch.len()), Vec::new());
                for append in batch {
                    match self.with_claimed_epoch(append) {
                        Ok(append) => claimed.push(append),
                        Err(refused) => done.push(refused),
                    }
                }
                if !claimed.is_empty() {
                    done.extend(threads.append_batch(claimed));
                }
                done
            }
        }
    }

    /// Sets the epoch of an append to that of our claim. Claims the stream if necessary.
    fn with_claimed_epoch(
        &self,
        mut append: AppendRequest,
    ) -> Result<AppendRequest, JournalCompletion> {
        if append.epoch != 0 {
            return Ok(append);
        }
        let mut epochs = self.epochs.lock().expect(POISONED);
        append.epoch = if let Some(epoch) = epochs.get(&append.stream) {
            *epoch
        } else {
            let claim = self.journal.claim_stream(&append.stream);
            let claim = claim.and_then(|it| it.epoch_for(&append));
            let epoch = claim.map_err(|error| append_completion((&append, Err(error))))?;
            epochs.insert(append.stream.clone(), epoch);
            epoch
        };
        Ok(append)
    }

    /// Registers a claim that was made without this handle.
    pub fn register_claim(&self, stream: Arc<str>, epoch: u64) {
        self.epochs.lock().expect(POISONED).insert(stream, epoch);
    }

    /// Forgets the claim of a stream. The next append with epoch 0 claims it again.
    pub fn forget_claim(&self, stream: &str) {
        self.epochs.lock().expect(POISONED).remove(stream);
        if let Some(nats) = self.journal.as_nats() {
            nats.store.forget_stream(stream);
        }
    }

    /// Releases a stream after the appends before it. In a shared journal other hosts may then
    /// claim it.
    pub fn release_stream(&self, stream: Arc<str>) {
        let epoch = self.epochs.lock().expect(POISONED).remove(&stream);
        if let (Some(epoch), JournalExecutor::Tasks(tasks)) = (epoch, self.executor()) {
            tasks.start_release(stream, epoch);
        }
    }

    /// How long the caller should collect events of a stream between two appends: the longer an
    /// append takes, the more events it should carry.
    pub fn append_interval(&self) -> Duration {
        match self.executor() {
            JournalExecutor::Threads(_) => Duration::ZERO,
            JournalExecutor::Tasks(_) => NETWORK_APPEND_INTERVAL,
        }
    }

    /// The size of the write queue. The caller should stop reading its inputs when it grows.
    pub fn waiting_bytes(&self) -> usize {
        match self.executor() {
            JournalExecutor::Threads(it) => it.waiting_bytes(),
            JournalExecutor::Tasks(it) => it.waiting_bytes(),
        }
    }

    /// Starts a read; the completion handler receives the events. Returns a refusal if too many
    /// reads are queued.
    #[must_use]
    pub fn start_read(
        &self,
        token: u64,
        stream: Arc<str>,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Option<JournalCompletion> {
        let read = ReadRequest { token, stream, after, events_max, bytes_max };
        match self.executor() {
            JournalExecutor::Threads(it) => it.start_read(read),
            JournalExecutor::Tasks(it) => it.start_read(read),
        }
    }

    /// Copies the events of a stream up to `upto` into a new stream. `translator` rewrites each
    /// line. The completion handler receives the result. Returns a refusal if too many copies are
    /// queued.
    #[must_use]
    pub fn start_copy(
        &self,
        from: Arc<str>,
        upto: u64,
        to: Arc<str>,
        translator: Box<dyn LineTranslator>,
    ) -> Option<JournalCompletion> {
        let copies = self.copies.as_ref().expect("only `drop` takes it");
        let refused = copies.try_send(CopyRequest { from, upto, to, translator }).err()?;
        let (mpsc::TrySendError::Full(copy) | mpsc::TrySendError::Disconnected(copy)) = refused;
        let error = CopyError::Overloaded { stream: copy.from };
        Some(JournalCompletion::CopyFailed { stream: copy.to, error })
    }

    /// Deletes a stream after the operations queued for it. The completion handler receives the
    /// result.
    pub fn start_delete(&mut self, stream: Arc<str>) {
        self.forget_claim(&stream);
        match self.executor() {
            JournalExecutor::Threads(it) => it.start_delete(stream),
            JournalExecutor::Tasks(it) => it.start_delete(stream),
        }
    }

    /// Flushes the queue and joins the threads. The completion handler receives all results.
    pub fn stop(self) {
        drop(self);
    }

    fn executor(&self) -> &JournalExecutor {
        self.executor.as_ref().expect("only `drop` takes it")
    }
}

impl Drop for NonBlockingJournal {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.executor = None;
        self.copies = None;
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                panic::resume_unwind(panic);
            }
        }
    }
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(work).expect("a process that cannot start a few threads cannot start")
}

fn append_completion(
    (append, outcome): (&AppendRequest, Result<u64, AppendError>),
) -> JournalCompletion {
    let stream = Arc::clone(&append.stream);
    match outcome {
        Ok(upto) => JournalCompletion::Appended { stream, upto },
        Err(error) => JournalCompletion::AppendFailed { stream, first: append.first, error },
    }
}

fn overload_completion(append: &AppendRequest, waiting_bytes: usize) -> JournalCompletion {
    let stream = append.stream.clone();
    append_completion((append, Err(AppendError::Overloaded { stream, waiting_bytes })))
}

const POISONED: &str = "nothing panics while it holds the epochs";
