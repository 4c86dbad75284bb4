//! A journal on the network: each append, read and delete is a task of its own, because each waits for
//! servers and none should wait for another.

use super::{
    Done, Epochs, OnDone, POISONED, READS_MAX, Read, WAITING_BYTES_MAX, appended, overloaded,
    queue::size, spawn,
};
use crate::{
    error::{AppendError, ReadError},
    nats::{Nats, Store},
    record::Append,
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

/// How long the end waits for what is under way. What the servers have not taken by then they may take
/// later, or never; nobody was told that they have it.
const END_MAX: Duration = Duration::from_secs(10);

pub(super) struct Tasks {
    nats: Arc<Nats>,
    epochs: Epochs,
    /// To the thread that calls `on_done`, which may wait; the connection must be served meanwhile. No
    /// more is on its way than appends and reads may be.
    told: Sender<Done>,
    waiting_bytes: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
    under_way: Arc<UnderWay>,
}

#[derive(Default)]
struct UnderWay {
    count: Mutex<usize>,
    none: Condvar,
}

impl Tasks {
    pub(super) fn start(
        nats: Arc<Nats>,
        epochs: &Epochs,
        on_done: &OnDone,
    ) -> (Tasks, JoinHandle<()>) {
        let (told, telling) = mpsc::channel();
        let on_done = on_done.clone();
        let teller =
            spawn("journal-teller", move || telling.into_iter().for_each(|it| on_done(it)));
        let (waiting_bytes, reads, under_way) = Default::default();
        let epochs = epochs.clone();
        (Tasks { nats, epochs, told, waiting_bytes, reads, under_way }, teller)
    }

    /// Appends of different streams go side by side; one stream has one at a time, see to it.
    pub(super) fn append(&self, batch: Vec<Append>) -> Vec<Done> {
        let mut refused = Vec::new();
        for append in batch {
            let (bytes, waiting) = (size(&append), self.waiting_bytes());
            if waiting != 0 && WAITING_BYTES_MAX < waiting + bytes {
                refused.push(overloaded(&append, waiting));
                continue;
            }
            self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            let (store, waiting_bytes) = (self.nats.store.clone(), self.waiting_bytes.clone());
            let epochs = self.epochs.clone();
            self.begin(async move {
                let (append, outcome) = claim_and_append(&store, &epochs, append).await;
                waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                appended((&append, outcome))
            });
        }
        refused
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn read(&self, read: Read) -> Option<Done> {
        let Read { token, stream, after, events_max, bytes_max } = read;
        if READS_MAX <= self.reads.fetch_add(1, Ordering::Relaxed) {
            self.reads.fetch_sub(1, Ordering::Relaxed);
            let error = ReadError::Overloaded { stream: stream.clone() };
            return Some(Done::ReadFailed { token, stream, after, error });
        }
        let (store, reads) = (self.nats.store.clone(), self.reads.clone());
        self.begin(async move {
            let found = store.read(&stream, after, events_max, bytes_max).await;
            reads.fetch_sub(1, Ordering::Relaxed);
            match found {
                Ok(events) => Done::Read { token, stream, after, events },
                Err(error) => Done::ReadFailed { token, stream, after, error },
            }
        });
        None
    }

    pub(super) fn delete(&self, stream: Arc<str>) {
        let store = self.nats.store.clone();
        self.begin(async move {
            match store.delete(&stream).await {
                Ok(()) => Done::Deleted { stream },
                Err(error) => Done::DeleteFailed { stream, error },
            }
        });
    }

    pub(super) fn release(&self, stream: Arc<str>, epoch: u64) {
        let store = self.nats.store.clone();
        self.begin(async move {
            match store.release(&stream, epoch).await {
                Ok(()) => Done::Released { stream },
                Err(error) => Done::ReleaseFailed { stream, error },
            }
        });
    }

    fn begin(&self, work: impl Future<Output = Done> + Send + 'static) {
        let (told, under_way) = (self.told.clone(), self.under_way.clone());
        *under_way.count.lock().expect(POISONED) += 1;
        self.nats.spawn(async move {
            let _ = told.send(work.await);
            *under_way.count.lock().expect(POISONED) -= 1;
            under_way.none.notify_all();
        });
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let count = self.under_way.count.lock().expect(POISONED);
        let _ = self.under_way.none.wait_timeout_while(count, END_MAX, |it| *it != 0);
    }
}

async fn claim_and_append(
    store: &Store,
    epochs: &Epochs,
    mut append: Append,
) -> (Append, Result<u64, AppendError>) {
    if append.epoch == 0 {
        let known = epochs.lock().expect(POISONED).get(&append.stream).copied();
        let epoch = match known {
            Some(epoch) => Ok(epoch),
            None => store.claim(&append.stream).await.and_then(|it| it.followed_by(&append)),
        };
        match epoch {
            Ok(epoch) => append.epoch = epoch,
            Err(error) => return (append, Err(error)),
        }
        epochs.lock().expect(POISONED).insert(append.stream.clone(), append.epoch);
    }
    let outcome = store.append(&append).await;
    (append, outcome)
}
