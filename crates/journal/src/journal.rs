//! The journal as its callers see it: one value, whichever backend is behind it.

use crate::{
    error::{AppendError, OpenError, ReadError, UpkeepError},
    memory::Memory,
    nats::{Address, Curator, Nats, Owners},
    record::{Append, Event},
    sqlite::Sqlite,
};
use bytes::Bytes;
use std::{path::Path, sync::Arc};

/// What an event survives once its append returned `Ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it ends. A power cut may cost the last moments, never the
    /// order or the integrity of what is left.
    Process,
    /// A power cut too: every commit waits for the disk.
    Power,
}

/// A stream is ours until someone else claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub epoch: u64,
    /// The number of the last event; 0 if there is none.
    pub head: u64,
}

impl Claim {
    /// The epoch, if the append begins where the stream ends. If not, somebody else has written.
    pub(crate) fn followed_by(self, append: &Append) -> Result<u64, AppendError> {
        if self.head + 1 == append.first {
            return Ok(self.epoch);
        }
        Err(AppendError::Fenced { stream: append.stream.clone(), epoch: 0, actual: self.epoch })
    }
}

/// Records that were acknowledged before the journal was opened, and that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRecords {
    pub count: u64,
}

/// What is known of a stream without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    pub name: Arc<str>,
    pub epoch: u64,
    pub head: u64,
    /// The latest summary that came with an append; empty if there was none.
    pub summary: Bytes,
    /// The last event of the append that brought it.
    pub summary_upto: u64,
}

/// Named streams of lines. Clones share one store.
#[derive(Clone)]
pub struct Journal {
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Memory(Arc<Memory>),
    Sqlite(Arc<Sqlite>),
    Nats(Arc<Nats>),
}

impl Journal {
    /// A journal that ends with its last clone.
    pub fn memory() -> Journal {
        Journal { backend: Backend::Memory(Arc::default()) }
    }

    /// Opens the journal in this SQLite file, or creates it, readable by its owner alone.
    pub fn open(path: &Path, durability: Durability) -> Result<Journal, OpenError> {
        Ok(Journal { backend: Backend::Sqlite(Arc::new(Sqlite::open(path, durability)?)) })
    }

    /// Opens the journal of a cell of NATS servers; what is missing there is made.
    pub fn connect(address: Address) -> Result<Journal, OpenError> {
        Ok(Journal { backend: Backend::Nats(Arc::new(Nats::open(address)?)) })
    }

    /// What was acknowledged before this journal was opened, and is not in it: its WAL was removed or cut, or
    /// an older copy was put in its place.
    pub fn lost_records(&self) -> Option<LostRecords> {
        match &self.backend {
            Backend::Sqlite(it) => it.lost_records(),
            Backend::Memory(_) | Backend::Nats(_) => None,
        }
    }

    /// What can be asked where many hosts share a journal; nothing where it is one's own.
    pub fn owners(&self) -> Option<Owners> {
        self.as_nats().cloned().map(Owners::new)
    }

    /// Who looks after a journal that many hosts share; nothing where it is one's own.
    pub fn curator(&self) -> Option<Curator> {
        self.as_nats().cloned().map(Curator::new)
    }

    /// Makes the caller the only writer of the stream, which is created if it does not exist.
    /// Waits for a commit that is under way.
    pub fn claim(&self, stream: &str) -> Result<Claim, AppendError> {
        match &self.backend {
            Backend::Memory(it) => it.claim(stream),
            Backend::Sqlite(it) => it.claim(stream),
            Backend::Nats(it) => it.claim(stream),
        }
    }

    /// Appends a batch in one transaction, on the calling thread. Each append is judged by
    /// itself: one that is fenced does not harm the others. `Ok` is the stream's head afterwards.
    ///
    /// Events that are already there are skipped, so an append whose outcome is unknown may be
    /// repeated under the same epoch.
    pub fn append(&self, batch: &[Append]) -> Vec<Result<u64, AppendError>> {
        match &self.backend {
            Backend::Memory(it) => it.append(batch),
            Backend::Sqlite(it) => it.append(batch),
            Backend::Nats(it) => it.append(batch),
        }
    }

    /// Like [`append`](Journal::append), but nothing at all is done, and nothing returned, if
    /// that would mean to wait for another thread, another process or the disk.
    pub(crate) fn try_append(&self, batch: &[Append]) -> Option<Vec<Result<u64, AppendError>>> {
        match &self.backend {
            Backend::Memory(it) => Some(it.append(batch)),
            Backend::Sqlite(it) => it.try_append(batch),
            // To wait for a server is to wait.
            Backend::Nats(_) => None,
        }
    }

    /// The events after this number, in order: at least one if there is one, then as many as both
    /// limits allow. An empty answer means the end of the stream, or that there is no such stream.
    ///
    /// A damaged record ends the answer before it; the read that starts at it is the error.
    pub fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        match &self.backend {
            Backend::Memory(it) => Ok(it.read(stream, after, events_max, bytes_max)),
            Backend::Sqlite(it) => it.read(stream, after, events_max, bytes_max),
            Backend::Nats(it) => it.read(stream, after, events_max, bytes_max),
        }
    }

    /// Every stream, by name.
    pub fn streams(&self) -> Result<Vec<Stream>, ReadError> {
        let mut streams = Vec::new();
        self.each_stream(|it| streams.push(it))?;
        Ok(streams)
    }

    /// The same one by one: all summaries at once may be much. The journal is not to be used
    /// meanwhile.
    pub fn each_stream(&self, mut take: impl FnMut(Stream)) -> Result<(), ReadError> {
        match &self.backend {
            Backend::Memory(it) => it.streams().into_iter().for_each(take),
            Backend::Sqlite(it) => it.each_stream(&mut take)?,
            Backend::Nats(it) => it.streams()?.into_iter().for_each(take),
        }
        Ok(())
    }

    /// Removes a stream and its events. Whoever held it is fenced.
    pub fn delete(&self, stream: &str) -> Result<(), AppendError> {
        match &self.backend {
            Backend::Memory(it) => it.delete(stream),
            Backend::Sqlite(it) => it.delete(stream),
            Backend::Nats(it) => it.delete(stream),
        }
    }

    /// Housekeeping, due every few hundred appends: work that would otherwise slow down each of
    /// them. A [`Port`](crate::Port) does it by itself, on a thread of its own.
    pub fn upkeep(&self) -> Result<(), UpkeepError> {
        match &self.backend {
            Backend::Memory(_) | Backend::Nats(_) => Ok(()),
            Backend::Sqlite(it) => it.upkeep(),
        }
    }

    pub(crate) fn as_nats(&self) -> Option<&Arc<Nats>> {
        match &self.backend {
            Backend::Nats(it) => Some(it),
            Backend::Memory(_) | Backend::Sqlite(_) => None,
        }
    }

    pub(crate) fn upkeep_is_due(&self) -> bool {
        match &self.backend {
            Backend::Memory(_) | Backend::Nats(_) => false,
            Backend::Sqlite(it) => it.upkeep_is_due(),
        }
    }
}
