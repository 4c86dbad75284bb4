//! The journal: named, durable streams of lines.
//!
//! A stream is a log of *events*. An event is one line of bytes; events are numbered from 1 without
//! gaps. Consecutive events are sent and stored together as one *record*, which makes storage fast.
//! The crate does not interpret the lines.
//!
//! Reading order: `limits.rs`, [`AppendRequest`] and [`StoredEvent`] (`record.rs`, the storage
//! format and the checksum), [`StreamClaim`] and [`StreamInfo`] (`stream.rs`), [`DurabilityLevel`]
//! (`durability.rs`), [`Journal`] (`journal.rs`, the contract of every backend), `memory.rs` (the
//! simplest implementation of the contract), `sqlite/` (schema, write, claim, tail, read, upkeep),
//! `nats/` (a journal that many hosts share), `archive/` (the object store for cold events of a
//! shared journal), [`NonBlockingJournal`] (`non_blocking/`, the threads), `contract/` (one test
//! suite for every backend).
//!
//! **Invariant:** the events of a stream are numbered 1, 2, 3, …; a gap is never written and never
//! skipped while reading.
//!
//! **Invariant:** a writer *claims* a stream, which raises its epoch. An append with an older epoch
//! is always refused, even after the stream was deleted and created again.
//!
//! **Invariant:** when an append returns `Ok`, its events survive the end of the process, and with
//! [`DurabilityLevel::Power`] also a power failure.
//!
//! **Invariant:** a record is never changed after it was written. Every record carries a checksum;
//! a read reports a damaged record with its position.
//!
//! **Invariant:** users of this crate need no async runtime, and the crate does not depend on ACP.
//! The connection to NATS runs on a runtime and a thread of its own.

mod archive;
mod durability;
mod error;
mod inspect;
mod journal;
mod limits;
mod memory;
mod nats;
mod non_blocking;
mod record;
mod sqlite;
mod stream;

#[cfg(test)]
mod contract;

pub use durability::{DurabilityLevel, LostRecords};
pub use error::{
    AppendError, CopyError, FileChange, InvalidAppend, JournalFileChanged, JournalStorageFault,
    LogMaintenanceError, OpenError, ReadError, RecordDamage, SharedError, UpkeepError,
};
pub use inspect::{DamagedEvents, JournalInspection};
pub use journal::Journal;
pub use limits::{APPEND_BYTES_MAX, NAME_BYTES_MAX, RECORD_BYTES_MAX, SEQ_MAX, STREAMS_MAX};
pub use nats::{
    AdoptError, AdoptedStream, ArchiveGauges, ArchivingReport, CellAddress, CellConfig,
    ExpiredStreams, LastWriter, PeerHosts, RetentionLimits, StreamArchiver, StreamOwnership,
    StreamPage, fnv1a_hash,
};
pub use non_blocking::{JournalCompletion, LineTranslator, NonBlockingJournal};
pub use record::{AppendRequest, StoredEvent};
pub use stream::{StreamClaim, StreamInfo};
