//! The journal's threads, and the value through which a loop that must not wait talks to them.
//!
//! One thread writes, one reads, one copies, one keeps the journal in shape. A small append does not travel
//! at all: with nothing queued before it, it is committed on the calling thread, which costs less
//! than waking another one.

mod copy;
mod queue;
#[cfg(test)]
mod tests;

use crate::{
    error::{AppendError, CopyError, ReadError, UpkeepError},
    journal::Journal,
    record::{Append, Event},
};
pub use copy::Translate;

use bytes::Bytes;
use copy::Copy;
use queue::{Group, Op, Queue, size};
use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A batch up to these limits is committed on the calling thread. Beyond them the commit costs
/// more than handing it over.
const INLINE_EVENTS_MAX: u64 = 32;
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// One transaction of the writer thread, roughly. It fits SQLite's cache, and the first append in
/// it does not wait too long for the last.
const GROUP_BYTES: usize = 1024 * 1024;

/// Bytes that may wait for the writer thread. A loop should slow down long before: see
/// [`Port::waiting_bytes`]. Few in tests, so that they see it; so the next one.
const WAITING_BYTES_MAX: usize = if cfg!(test) { 1024 * 1024 } else { 256 * 1024 * 1024 };

/// Reads that may wait for the reader thread: more than there are clients.
const READS_MAX: usize = if cfg!(test) { 8 } else { 16 * 1024 };

/// Copies that may wait for the copier thread: a person asks for one at a time.
const COPIES_MAX: usize = 64;

/// How long upkeep that failed is left alone: the cause will not go away faster.
const UPKEEP_PAUSE: Duration = Duration::from_secs(5);

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
    DeleteFailed {
        stream: Arc<str>,
        error: AppendError,
    },
    /// Nothing is lost, but someone should look: the disk may be full.
    UpkeepFailed {
        error: UpkeepError,
    },
}

/// What a loop holds of the journal. Nothing here waits, except for the end: to stop or drop it
/// is to flush what is queued and to join the threads.
pub struct Port {
    journal: Journal,
    queue: Arc<Queue>,
    /// Gone once it is told to stop.
    reads: Option<SyncSender<Read>>,
    copies: Option<SyncSender<Copy>>,
    /// A copy under way gives up.
    closing: Arc<AtomicBool>,
    upkeep: Option<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
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
        let on_done = Arc::new(on_done);
        let queue = Arc::new(Queue::default());
        let (reads, reads_in) = mpsc::sync_channel(READS_MAX);
        let (copies, copies_in) = mpsc::sync_channel(COPIES_MAX);
        let closing = Arc::new(AtomicBool::new(false));
        let (upkeep, upkeep_in) = mpsc::sync_channel(1);
        let writer = {
            let (journal, queue, on_done) = (journal.clone(), queue.clone(), on_done.clone());
            let upkeep = upkeep.clone();
            move || write(&journal, &queue, &upkeep, &*on_done)
        };
        let reader = {
            let (journal, on_done) = (journal.clone(), on_done.clone());
            move || read(&journal, &reads_in, &*on_done)
        };
        let duplicator = {
            let (journal, closing, on_done) = (journal.clone(), closing.clone(), on_done.clone());
            move || copy::copy(&journal, &copies_in, &closing, &*on_done)
        };
        let keeper = {
            let journal = journal.clone();
            move || keep(&journal, &upkeep_in, &*on_done)
        };
        let threads = vec![
            spawn("journal-writer", writer),
            spawn("journal-reader", reader),
            spawn("journal-copier", duplicator),
            spawn("journal-keeper", keeper),
        ];
        call_for_upkeep(&journal, &upkeep);
        let (reads, copies, upkeep) = (Some(reads), Some(copies), Some(upkeep));
        Port { journal, queue, reads, copies, closing, upkeep, threads }
    }

    /// Appends a batch. What is returned is done; the rest is queued for the writer thread, which
    /// commits all that waits in one transaction, and `on_done` tells.
    ///
    /// A batch is committed here and now if nothing is queued or under way before it, it is small,
    /// and the commit waits neither for the disk nor for anyone else. It may be returned before
    /// `on_done` has told of a commit before it.
    #[must_use]
    pub fn append(&mut self, batch: Vec<Append>) -> Vec<Done> {
        if is_small(&batch)
            && self.queue.is_idle()
            && let Some(outcomes) = self.journal.try_append(&batch)
        {
            if let Some(upkeep) = &self.upkeep {
                call_for_upkeep(&self.journal, upkeep);
            }
            return batch.iter().zip(outcomes).map(appended).collect();
        }
        let waiting_bytes = self.waiting_bytes();
        let bytes: usize = batch.iter().map(size).sum();
        if waiting_bytes != 0 && WAITING_BYTES_MAX < waiting_bytes + bytes {
            let overloaded = |it: &Append| {
                appended((
                    it,
                    Err(AppendError::Overloaded { stream: it.stream.clone(), waiting_bytes }),
                ))
            };
            return batch.iter().map(overloaded).collect();
        }
        self.queue.push(batch.into_iter().map(Op::Append));
        Vec::new()
    }

    /// What waits for the writer thread: the measure by which to stop taking in more.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Asks for events; the reader thread answers through `on_done`. If too many reads wait
    /// already, the refusal is returned.
    #[must_use]
    pub fn read(
        &self,
        token: u64,
        stream: Arc<str>,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Option<Done> {
        let reads = self.reads.as_ref().expect("only the end takes it");
        let read = Read { token, stream, after, events_max, bytes_max };
        let refused = reads.try_send(read).err()?;
        let (mpsc::TrySendError::Full(read) | mpsc::TrySendError::Disconnected(read)) = refused;
        let error = ReadError::Overloaded { stream: read.stream.clone() };
        Some(Done::ReadFailed { token, stream: read.stream, after, error })
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
        self.queue.push([Op::Delete(stream)]);
    }

    /// Flushes what is queued and joins the threads. `on_done` is called for all of it.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.queue.close();
        self.closing.store(true, Ordering::Relaxed);
        self.reads = None;
        self.copies = None;
        self.upkeep = None;
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

fn write(
    journal: &Journal,
    queue: &Queue,
    upkeep: &SyncSender<()>,
    on_done: &(dyn Fn(Done) + Send + Sync),
) {
    while let Some(group) = queue.take(GROUP_BYTES) {
        match group {
            Group::Append(batch) => {
                let outcomes = journal.append(&batch);
                queue.finish();
                batch.iter().zip(outcomes).map(appended).for_each(on_done);
            }
            Group::Delete(stream) => {
                let deleted = journal.delete(&stream);
                queue.finish();
                on_done(match deleted {
                    Ok(()) => Done::Deleted { stream },
                    Err(error) => Done::DeleteFailed { stream, error },
                });
            }
        }
        call_for_upkeep(journal, upkeep);
    }
}

fn read(journal: &Journal, reads: &Receiver<Read>, on_done: &(dyn Fn(Done) + Send + Sync)) {
    for Read { token, stream, after, events_max, bytes_max } in reads {
        on_done(match journal.read(&stream, after, events_max, bytes_max) {
            Ok(events) => Done::Read { token, stream, after, events },
            Err(error) => Done::ReadFailed { token, stream, after, error },
        });
    }
}

fn keep(journal: &Journal, calls: &Receiver<()>, on_done: &(dyn Fn(Done) + Send + Sync)) {
    let mut failed_at: Option<Instant> = None;
    for () in calls {
        let is_paused = failed_at.is_some_and(|it| it.elapsed() < UPKEEP_PAUSE);
        if is_paused || !journal.upkeep_is_due() {
            continue;
        }
        failed_at = match journal.upkeep() {
            Ok(()) => None,
            Err(error) => {
                on_done(Done::UpkeepFailed { error });
                Some(Instant::now())
            }
        };
    }
}

fn call_for_upkeep(journal: &Journal, upkeep: &SyncSender<()>) {
    if journal.upkeep_is_due() {
        // Full: it was called for already.
        let _ = upkeep.try_send(());
    }
}

fn is_small(batch: &[Append]) -> bool {
    let events: u64 = batch.iter().map(|it| u64::from(it.count)).sum();
    let bytes: usize = batch.iter().map(size).sum();
    events <= INLINE_EVENTS_MAX && bytes <= INLINE_BYTES_MAX
}

fn appended((append, outcome): (&Append, Result<u64, AppendError>)) -> Done {
    let stream = Arc::clone(&append.stream);
    match outcome {
        Ok(upto) => Done::Appended { stream, upto },
        Err(error) => Done::AppendFailed { stream, first: append.first, error },
    }
}
