//! A journal on this machine: one thread writes, one reads, one keeps the journal in shape. A small append
//! does not travel at all: with nothing queued before it, it is committed on the calling thread, which
//! costs less than waking another one.

use super::{
    Done, OnDone, READS_MAX, Read, WAITING_BYTES_MAX, appended, overloaded,
    queue::{Group, Op, Queue, size},
    spawn,
};
use crate::{error::ReadError, journal::Journal, record::Append};
use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// A batch up to these limits is committed on the calling thread. Beyond them the commit costs
/// more than handing it over.
const INLINE_EVENTS_MAX: u64 = 32;
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// One transaction of the writer thread, roughly. It fits SQLite's cache, and the first append in
/// it does not wait too long for the last.
const GROUP_BYTES: usize = 1024 * 1024;

/// How long upkeep that failed is left alone: the cause will not go away faster.
const UPKEEP_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Threads {
    journal: Journal,
    queue: Arc<Queue>,
    reads: SyncSender<Read>,
    upkeep: SyncSender<()>,
}

impl Threads {
    pub(super) fn start(journal: &Journal, on_done: &OnDone) -> (Threads, Vec<JoinHandle<()>>) {
        let queue = Arc::new(Queue::default());
        let (reads, reads_in) = mpsc::sync_channel(READS_MAX);
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
        let keeper = {
            let (journal, on_done) = (journal.clone(), on_done.clone());
            move || keep(&journal, &upkeep_in, &*on_done)
        };
        let threads = vec![
            spawn("journal-writer", writer),
            spawn("journal-reader", reader),
            spawn("journal-keeper", keeper),
        ];
        call_for_upkeep(journal, &upkeep);
        (Threads { journal: journal.clone(), queue, reads, upkeep }, threads)
    }

    /// A batch is committed here and now if nothing is queued or under way before it, it is small,
    /// and the commit waits neither for the disk nor for anyone else. It may be returned before
    /// `on_done` has told of a commit before it.
    pub(super) fn append(&self, batch: Vec<Append>) -> Vec<Done> {
        if is_small(&batch)
            && self.queue.is_idle()
            && let Some(outcomes) = self.journal.try_append(&batch)
        {
            call_for_upkeep(&self.journal, &self.upkeep);
            return batch.iter().zip(outcomes).map(appended).collect();
        }
        let waiting_bytes = self.waiting_bytes();
        let bytes: usize = batch.iter().map(size).sum();
        if waiting_bytes != 0 && WAITING_BYTES_MAX < waiting_bytes + bytes {
            return batch.iter().map(|it| overloaded(it, waiting_bytes)).collect();
        }
        self.queue.push(batch.into_iter().map(Op::Append));
        Vec::new()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.queue.bytes()
    }

    pub(super) fn read(&self, read: Read) -> Option<Done> {
        let refused = self.reads.try_send(read).err()?;
        let (mpsc::TrySendError::Full(read) | mpsc::TrySendError::Disconnected(read)) = refused;
        let Read { token, stream, after, .. } = read;
        let error = ReadError::Overloaded { stream: stream.clone() };
        Some(Done::ReadFailed { token, stream, after, error })
    }

    pub(super) fn delete(&self, stream: Arc<str>) {
        self.queue.push([Op::Delete(stream)]);
    }

    #[cfg(test)]
    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn write(journal: &Journal, queue: &Queue, upkeep: &SyncSender<()>, on_done: &dyn Fn(Done)) {
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

fn read(journal: &Journal, reads: &Receiver<Read>, on_done: &dyn Fn(Done)) {
    for Read { token, stream, after, events_max, bytes_max } in reads {
        on_done(match journal.read(&stream, after, events_max, bytes_max) {
            Ok(events) => Done::Read { token, stream, after, events },
            Err(error) => Done::ReadFailed { token, stream, after, error },
        });
    }
}

fn keep(journal: &Journal, calls: &Receiver<()>, on_done: &dyn Fn(Done)) {
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
