//! Runs the operations on a NATS journal. Each append, read and delete is a separate task, because
//! each waits for the servers and must not delay the others.

use super::{
    ClaimedEpochs, CompletionHandler, JournalCompletion, POISONED, READS_MAX, ReadRequest,
    WAITING_BYTES_MAX, append_completion, overload_completion, spawn_thread,
    write_queue::append_size,
};
use crate::{
    error::{AppendError, ReadError},
    nats::{NatsJournal, NatsStore},
    record::AppendRequest,
};
use std::{
    future::Future,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

/// How long shutdown waits for running tasks. The servers may still store an append that has not
/// been acknowledged by then; no caller was notified of it.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct NatsTasks {
    nats: Arc<NatsJournal>,
    epochs: ClaimedEpochs,
    /// To the thread that calls the completion handler. The handler may block, and the connection
    /// must be served in the meantime. The limits of appends and reads bound the number of
    /// completions.
    completions: Sender<JournalCompletion>,
    waiting_bytes: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
    running: Arc<RunningTasks>,
}

#[derive(Default)]
struct RunningTasks {
    count: Mutex<usize>,
    task_ended: Condvar,
}

impl NatsTasks {
    pub(super) fn start(
        nats: Arc<NatsJournal>,
        epochs: &ClaimedEpochs,
        on_completion: &CompletionHandler,
    ) -> (NatsTasks, JoinHandle<()>) {
        let (completions, completions_rx) = mpsc::channel();
        let on_completion = on_completion.clone();
        let notifier = spawn_thread("journal-notifier", move || {
            for it in completions_rx {
                on_completion(it);
            }
        });
        let (waiting_bytes, reads, running) = Default::default();
        let epochs = epochs.clone();
        (NatsTasks { nats, epochs, completions, waiting_bytes, reads, running }, notifier)
    }

    /// Starts the appends concurrently. The caller ensures that a stream has at most one append in
    /// progress.
    pub(super) fn append_batch(&self, batch: Vec<AppendRequest>) -> Vec<JournalCompletion> {
        let mut refused = Vec::new();
        for append in batch {
            let (bytes, waiting) = (append_size(&append), self.waiting_bytes());
            if waiting != 0 && WAITING_BYTES_MAX < waiting + bytes {
                refused.push(overload_completion(&append, waiting));
                continue;
            }
            self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            let (store, waiting_bytes) = (self.nats.store.clone(), self.waiting_bytes.clone());
            let epochs = self.epochs.clone();
            self.spawn_task(async move {
                let (append, outcome) = claim_and_append(&store, &epochs, append).await;
                waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                append_completion((&append, outcome))
            });
        }
        refused
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn start_read(&self, read: ReadRequest) -> Option<JournalCompletion> {
        let ReadRequest { token, stream, after, events_max, bytes_max } = read;
        if READS_MAX <= self.reads.fetch_add(1, Ordering::Relaxed) {
            self.reads.fetch_sub(1, Ordering::Relaxed);
            let error = ReadError::Overloaded { stream: stream.clone() };
            return Some(JournalCompletion::ReadFailed { token, stream, after, error });
        }
        let (store, reads) = (self.nats.store.clone(), self.reads.clone());
        self.spawn_task(async move {
            let result = store.read_events(&stream, after, events_max, bytes_max).await;
            reads.fetch_sub(1, Ordering::Relaxed);
            match result {
                Ok(events) => JournalCompletion::Read { token, stream, after, events },
                Err(error) => JournalCompletion::ReadFailed { token, stream, after, error },
            }
        });
        None
    }

    pub(super) fn start_delete(&self, stream: Arc<str>) {
        let store = self.nats.store.clone();
        self.spawn_task(async move {
            match store.delete_stream(&stream).await {
                Ok(()) => JournalCompletion::Deleted { stream },
                Err(error) => JournalCompletion::DeleteFailed { stream, error },
            }
        });
    }

    pub(super) fn start_release(&self, stream: Arc<str>, epoch: u64) {
        let store = self.nats.store.clone();
        self.spawn_task(async move {
            match store.release_stream(&stream, epoch).await {
                Ok(()) => JournalCompletion::Released { stream },
                Err(error) => JournalCompletion::ReleaseFailed { stream, error },
            }
        });
    }

    fn spawn_task(&self, work: impl Future<Output = JournalCompletion> + Send + 'static) {
        let (completions, running) = (self.completions.clone(), self.running.clone());
        *running.count.lock().expect(POISONED) += 1;
        self.nats.spawn(async move {
            let _ = completions.send(work.await);
            *running.count.lock().expect(POISONED) -= 1;
            running.task_ended.notify_all();
        });
    }
}

impl Drop for NatsTasks {
    fn drop(&mut self) {
        let count = self.running.count.lock().expect(POISONED);
        let ended = &self.running.task_ended;
        let _ = ended.wait_timeout_while(count, SHUTDOWN_TIMEOUT, |it| *it != 0);
    }
}

async fn claim_and_append(
    store: &NatsStore,
    epochs: &ClaimedEpochs,
    mut append: AppendRequest,
) -> (AppendRequest, Result<u64, AppendError>) {
    if append.epoch == 0 {
        let known = epochs.lock().expect(POISONED).get(&append.stream).copied();
        let epoch = match known {
            Some(epoch) => Ok(epoch),
            None => store.claim_stream(&append.stream).await.and_then(|it| it.epoch_for(&append)),
        };
        match epoch {
            Ok(epoch) => append.epoch = epoch,
            Err(error) => return (append, Err(error)),
        }
        epochs.lock().expect(POISONED).insert(append.stream.clone(), append.epoch);
    }
    let outcome = store.append_one(&append).await;
    (append, outcome)
}
