//! The journal: named streams of lines that survive the process.
//!
//! A stream is a log of *events*. An event is one line of bytes, numbered from 1 without a gap.
//! Consecutive events travel and rest together as one *record*, because that is what makes storage
//! fast. The crate knows nothing of what a line means.
//!
//! Reading order: [`Append`] and [`Event`] (`record.rs`, the shapes and the checksum), [`Journal`]
//! (`journal.rs`, what every backend promises), `memory.rs` (the promise in its plainest form),
//! `sqlite/` (schema, write, claim, tail, read, upkeep), `nats/` (for many hosts), `archive/` (where events of
//! many hosts go that are cold), [`Port`] (`port/`, the threads),
//! `contract/` (one test suite for every backend).
//!
//! **Invariant:** the events of a stream are numbered 1, 2, 3, …; a gap is never written and never
//! skipped while reading.
//!
//! **Invariant:** a writer *claims* a stream, which raises its epoch. An append of an older epoch
//! is refused for ever, also after the stream was deleted and made anew.
//!
//! **Invariant:** when an append returns `Ok`, its events survive the process, and with
//! [`Durability::Power`] a power cut.
//!
//! **Invariant:** a record is never changed once written. Every record carries a checksum; a bad
//! one is reported with its place.
//!
//! **Invariant:** nobody who uses this crate needs an async runtime, and there is nothing of ACP here. The
//! connection to NATS has a runtime to itself, on a thread of its own.

mod archive;
mod error;
mod inspect;
mod journal;
mod memory;
mod nats;
mod port;
mod record;
mod sqlite;

#[cfg(test)]
mod contract;

pub use error::{
    AppendError, CareError, Cause, CopyError, Damage, FileChange, Invalid, JournalFileChanged,
    OpenError, ReadError, StorageFault, UpkeepError,
};
pub use inspect::{DamagedEvents, Inspection};
pub use journal::{Claim, Durability, Journal, LostRecords, Stream};
pub use nats::{
    Address, AdoptError, Adopted, ArchiveGauges, Cell, Curator, Expired, Fellows, Moved, Owners,
    Page, Retention, Writer, fnv1a,
};
pub use port::{Done, Port, Translate};
pub use record::{
    APPEND_BYTES_MAX, Append, Event, NAME_BYTES_MAX, RECORD_BYTES_MAX, SEQ_MAX, STREAMS_MAX,
};
