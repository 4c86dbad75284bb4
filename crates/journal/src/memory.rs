//! Streams in memory: the simplest implementation of the contract, for tests and for hubs without a
//! journal file.

use crate::{
    error::{AppendError, InvalidAppend},
    limits::STREAMS_MAX,
    record::{AppendRequest, EventBatch, StoredEvent, validate_name},
    stream::{StreamClaim, StreamInfo},
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

#[derive(Default)]
pub(crate) struct MemoryJournal {
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    streams: BTreeMap<Arc<str>, MemoryStream>,
    /// The highest epoch of any deleted stream. A stream that is created again starts above it.
    epoch_floor: u64,
}

#[derive(Default)]
struct MemoryStream {
    epoch: u64,
    head: u64,
    /// The first sequence number and the body of each record, in order.
    records: Vec<(u64, Bytes)>,
    summary: Bytes,
    summary_upto: u64,
}

impl MemoryJournal {
    pub(crate) fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        validate_name(stream).map_err(|source| invalid_append(stream.into(), source))?;
        let mut state = self.lock();
        let epoch_floor = state.epoch_floor;
        if !state.streams.contains_key(stream) {
            if STREAMS_MAX <= state.streams.len() as u64 {
                return Err(invalid_append(stream.into(), InvalidAppend::TooManyStreams));
            }
            let stored = MemoryStream { epoch: epoch_floor, ..MemoryStream::default() };
            state.streams.insert(stream.into(), stored);
        }
        let stored = state.streams.get_mut(stream).expect("inserted if it was not there");
        stored.epoch += 1;
        Ok(StreamClaim { epoch: stored.epoch, head: stored.head })
    }

    pub(crate) fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        let mut state = self.lock();
        batch.iter().map(|append| append_one(&mut state, append)).collect()
    }

    pub(crate) fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Vec<StoredEvent> {
        let state = self.lock();
        let mut batch = EventBatch::new(after, events_max, bytes_max);
        let Some(stored) = state.streams.get(stream).filter(|it| after < it.head) else {
            return Vec::new();
        };
        let start = stored.records.partition_point(|(first, _)| *first <= batch.next_seq()) - 1;
        for (first, body) in &stored.records[start..] {
            if !batch.push_record(*first, body) {
                break;
            }
        }
        batch.into_events()
    }

    pub(crate) fn list_streams(&self) -> Vec<StreamInfo> {
        let state = self.lock();
        let streams = state.streams.iter();
        streams
            .map(|(name, stored)| StreamInfo {
                name: Arc::clone(name),
                epoch: stored.epoch,
                head: stored.head,
                summary: stored.summary.clone(),
                summary_upto: stored.summary_upto,
            })
            .collect()
    }

    pub(crate) fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        validate_name(stream).map_err(|source| invalid_append(stream.into(), source))?;
        let mut state = self.lock();
        if let Some(stored) = state.streams.remove(stream) {
            state.epoch_floor = state.epoch_floor.max(stored.epoch);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().expect("nothing panics while it holds the streams")
    }
}

fn append_one(state: &mut MemoryState, append: &AppendRequest) -> Result<u64, AppendError> {
    let stream = &append.stream;
    append.validate().map_err(|source| invalid_append(Arc::clone(stream), source))?;
    let stored = state.streams.get_mut(stream);
    let actual = stored.as_ref().map_or(0, |it| it.epoch);
    let Some(stored) = stored.filter(|it| it.epoch == append.epoch) else {
        return Err(AppendError::Fenced { stream: stream.clone(), epoch: append.epoch, actual });
    };
    if stored.head + 1 < append.first {
        let (first, head) = (append.first, stored.head);
        return Err(AppendError::Gap { stream: stream.clone(), first, head });
    }
    if let Some((first, body)) = append.missing_after(stored.head) {
        stored.records.push((first, body));
        stored.head = append.last_seq();
    }
    if let Some(summary) = &append.summary
        && stored.summary_upto <= append.last_seq()
    {
        stored.summary = summary.clone();
        stored.summary_upto = append.last_seq();
    }
    Ok(stored.head)
}

fn invalid_append(stream: Arc<str>, source: InvalidAppend) -> AppendError {
    AppendError::Invalid { stream, source }
}
