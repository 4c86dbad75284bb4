//! The limits of names, appends and records.

/// The maximum length of a record's body. A longer single event is stored beside the log as a blob.
/// The limit is large enough to pack many events and small enough to check and copy at once.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;

/// Far above the frame limit and far below the maximum size of a SQLite value.
pub const APPEND_BYTES_MAX: usize = 512 * 1024 * 1024;

pub const NAME_BYTES_MAX: usize = 512;

/// The SQLite index packs a stream number and a sequence number into one 63-bit integer.
pub(crate) const SEQ_BITS: u32 = 36;
pub const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
pub const STREAMS_MAX: u64 = (1 << (63 - SEQ_BITS)) - 1;
