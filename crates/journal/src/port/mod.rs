//! The value through which a loop that must not wait talks to the journal, and the threads behind it.

mod copy;
mod queue;
mod tasks;
#[cfg(test)]
mod tests;
mod threads;

use crate::{
    error::{AppendError, CopyError, ReadError, UpkeepError},
    journal::Journal,
    record::{Append, Event},
};
pub use copy::Translate;

use bytes::Bytes;
use copy::Copy;
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
use tasks::Tasks;
use threads::Threads;

/// Bytes that may wait to be written. A loop should slow down long before: see
/// [`Port::waiting_bytes`]. Few in tests, so that they see it; so the next one.
const WAITING_BYTES_MAX: usize = if cfg!(test) { 1024 * 1024 } else { 256 * 1024 * 1024 };

/// Reads that may wait: more than there are clients.
const READS_MAX: usize = if cfg!(test) { 8 } else { 16 * 1024 };

/// Over a network. Twenty appends a second of each stream are plenty for people who read along.
const LINGER: Duration = Duration::from_millis(50);

/// Copies that may wait for the copier thread: a person asks for one at a time.
const COPIES_MAX: usize = 64;

/// What became of something asked of a [`Port`].
#[derive(Debug, Clone)]
pub enum Done {
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
        events: Vec<Event>,
    },
    ReadFailed {
        token: u64,
        stream: Arc<str>,
        after: u64,
        error: ReadError,
    },
    /// The copy is whole and durable; the summary is that of the whole.
    Copied {
        stream: Arc<str>,
        summary: Bytes,
    },
    /// Nothing is left of the copy, or it says itself that it is unfinished.
    CopyFailed {
        stream: Arc<str>,
        error: CopyError,
    },
    Deleted {
        stream: Arc<str>,
    },
    /// Others may have the stream now.
    Released {
        stream: Arc<str>,
    },
    /// The stream still is ours, for all that others know; nothing is lost.
    ReleaseFailed {
        stream: Arc<str>,
        error: AppendError,
    },
    DeleteFailed {
        stream: Arc<str>,
        error: AppendError,
    },
    /// Nothing is lost, but someone should look: the disk may be full.
    UpkeepFailed {
        error: UpkeepError,
    },
}

/// The epoch under which each stream is written.
type Epochs = Arc<Mutex<BTreeMap<Arc<str>, u64>>>;

type OnDone = Arc<dyn Fn(Done) + Send + Sync>;

/// What a loop holds of the journal. Nothing here waits, except for the end: to stop or drop it
/// is to flush what is queued and to join the threads.
pub struct Port {
    journal: Journal,
    /// Gone once it is told to stop.
    way: Option<Way>,
    epochs: Epochs,
    copies: Option<SyncSender<Copy>>,
    /// A copy under way gives up.
    closing: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

enum Way {
    Threads(Threads),
    Tasks(Tasks),
}

struct Read {
    token: u64,
    stream: Arc<str>,
    after: u64,
    events_max: usize,
    bytes_max: usize,
}

impl Port {
    /// Starts the threads. `on_done` is called on them; if it waits, that thread does.
    pub fn start(journal: Journal, on_done: impl Fn(Done) + Send + Sync + 'static) -> Port {
        let on_done: OnDone = Arc::new(on_done);
        let epochs = Epochs::default();
        let (way, mut threads) = if let Some(nats) = journal.as_nats() {
            let (way, teller) = Tasks::start(nats.clone(), &epochs, &on_done);
            (Way::Tasks(way), vec![teller])
        } else {
            let (way, threads) = Threads::start(&journal, &on_done);
            (Way::Threads(way), threads)
        };
        let (copies, copies_in) = mpsc::sync_channel(COPIES_MAX);
        let closing = Arc::new(AtomicBool::new(false));
        let duplicator = {
            let (journal, closing) = (journal.clone(), closing.clone());
            move || copy::copy(&journal, &copies_in, &closing, &*on_done)
        };
        threads.push(spawn("journal-copier", duplicator));
        Port { journal, way: Some(way), epochs, copies: Some(copies), closing, threads }
    }

    /// Appends a batch. What is returned is done; `on_done` tells of the rest.
    ///
    /// An append of epoch 0 is made under the epoch of this port's own claim. The first one to a stream
    /// claims it, and must begin where the stream ends: otherwise somebody else has written, and it is
    /// fenced.
    #[must_use]
    pub fn append(&mut self, batch: Vec<Append>) -> Vec<Done> {
        match self.way() {
            Way::Tasks(tasks) => tasks.append(batch),
            Way::Threads(threads) => {
                let (mut claimed, mut done) = (Vec::with_capacity(batch.len()), Vec::new());
                for append in batch {
                    match self.claimed(append) {
                        Ok(append) => claimed.push(append),
                        Err(refused) => done.push(refused),
                    }
                }
                if !claimed.is_empty() {
                    done.extend(threads.append(claimed));
                }
                done
            }
        }
    }

    /// The append under the epoch of our claim, which is made if there is none yet.
    fn claimed(&self, mut append: Append) -> Result<Append, Done> {
        if append.epoch != 0 {
            return Ok(append);
        }
        let mut epochs = self.epochs.lock().expect(POISONED);
        append.epoch = if let Some(epoch) = epochs.get(&append.stream) {
            *epoch
        } else {
            let claim = self.journal.claim(&append.stream);
            let claim = claim.and_then(|it| it.followed_by(&append));
            let epoch = claim.map_err(|error| appended((&append, Err(error))))?;
            epochs.insert(append.stream.clone(), epoch);
            epoch
        };
        Ok(append)
    }

    /// The stream was claimed by other means.
    pub fn own(&self, stream: Arc<str>, epoch: u64) {
        self.epochs.lock().expect(POISONED).insert(stream, epoch);
    }

    /// Nothing more is written to the stream, unless it is claimed anew.
    pub fn disown(&self, stream: &str) {
        self.epochs.lock().expect(POISONED).remove(stream);
        if let Some(nats) = self.journal.as_nats() {
            nats.store.forget(stream);
        }
    }

    /// Lets go of a stream, after what was appended to it: where others can have it, they may.
    pub fn release(&self, stream: Arc<str>) {
        let epoch = self.epochs.lock().expect(POISONED).remove(&stream);
        if let (Some(epoch), Way::Tasks(tasks)) = (epoch, self.way()) {
            tasks.release(stream, epoch);
        }
    }

    /// How long a stream should gather events between two appends: as long as an append is worth.
    pub fn linger(&self) -> Duration {
        match self.way() {
            Way::Threads(_) => Duration::ZERO,
            Way::Tasks(_) => LINGER,
        }
    }

    /// What waits to be written: the measure by which to stop taking in more.
    pub fn waiting_bytes(&self) -> usize {
        match self.way() {
            Way::Threads(it) => it.waiting_bytes(),
            Way::Tasks(it) => it.waiting_bytes(),
        }
    }

    /// Asks for events; `on_done` tells. If too many reads wait already, the refusal is returned.
    #[must_use]
    pub fn read(
        &self,
        token: u64,
        stream: Arc<str>,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Option<Done> {
        let read = Read { token, stream, after, events_max, bytes_max };
        match self.way() {
            Way::Threads(it) => it.read(read),
            Way::Tasks(it) => it.read(read),
        }
    }

    /// Copies the events of a stream up to `upto` into a new one, line by line as `translate` wants
    /// them; the copier thread tells through `on_done`. If too many copies wait already, the refusal
    /// is returned.
    #[must_use]
    pub fn copy(
        &self,
        from: Arc<str>,
        upto: u64,
        to: Arc<str>,
        translate: Box<dyn Translate>,
    ) -> Option<Done> {
        let copies = self.copies.as_ref().expect("only the end takes it");
        let refused = copies.try_send(Copy { from, upto, to, translate }).err()?;
        let (mpsc::TrySendError::Full(copy) | mpsc::TrySendError::Disconnected(copy)) = refused;
        let error = CopyError::Overloaded { stream: copy.from };
        Some(Done::CopyFailed { stream: copy.to, error })
    }

    /// Deletes a stream, after what was queued for it; `on_done` tells.
    pub fn delete(&mut self, stream: Arc<str>) {
        self.disown(&stream);
        match self.way() {
            Way::Threads(it) => it.delete(stream),
            Way::Tasks(it) => it.delete(stream),
        }
    }

    /// Flushes what is queued and joins the threads. `on_done` is called for all of it.
    pub fn stop(self) {
        drop(self);
    }

    fn way(&self) -> &Way {
        self.way.as_ref().expect("only the end takes it")
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.way = None;
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

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(work).expect("a process that cannot start a few threads cannot start")
}

fn appended((append, outcome): (&Append, Result<u64, AppendError>)) -> Done {
    let stream = Arc::clone(&append.stream);
    match outcome {
        Ok(upto) => Done::Appended { stream, upto },
        Err(error) => Done::AppendFailed { stream, first: append.first, error },
    }
}

fn overloaded(append: &Append, waiting_bytes: usize) -> Done {
    let stream = append.stream.clone();
    appended((append, Err(AppendError::Overloaded { stream, waiting_bytes })))
}

const POISONED: &str = "nothing panics while it holds the epochs";
