//! A stream as callers and backends see it: the right to write to it, and its properties.

use crate::{error::AppendError, record::AppendRequest};
use bytes::Bytes;
use std::sync::Arc;

/// The right to write to a stream. It is valid until another writer claims the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamClaim {
    pub epoch: u64,
    /// The sequence number of the last event; 0 if the stream is empty.
    pub head: u64,
}

impl StreamClaim {
    /// The epoch for an append that starts right after the head. Otherwise another writer has
    /// appended, and the append is fenced.
    pub(crate) fn epoch_for(self, append: &AppendRequest) -> Result<u64, AppendError> {
        if self.head + 1 == append.first {
            return Ok(self.epoch);
        }
        Err(AppendError::Fenced { stream: append.stream.clone(), epoch: 0, actual: self.epoch })
    }
}

/// The properties of a stream that are known without reading its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    pub name: Arc<str>,
    pub epoch: u64,
    pub head: u64,
    /// The latest summary that an append carried; empty if there was none.
    pub summary: Bytes,
    /// The sequence number of the last event of that append.
    pub summary_upto: u64,
}
