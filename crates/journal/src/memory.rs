//! Streams in memory: the contract in its plainest form, for tests and for those who want no file.

use crate::{
    error::{AppendError, Invalid},
    journal::{Claim, Stream},
    record::{Answer, Append, Event, STREAMS_MAX, check_name},
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

#[derive(Default)]
pub(crate) struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    streams: BTreeMap<Arc<str>, Kept>,
    /// The highest epoch of any deleted stream: a stream made anew starts above it.
    epoch_floor: u64,
}

#[derive(Default)]
struct Kept {
    epoch: u64,
    head: u64,
    /// First seq and body, in order.
    records: Vec<(u64, Bytes)>,
    summary: Bytes,
    summary_upto: u64,
}

impl Memory {
    pub(crate) fn claim(&self, stream: &str) -> Result<Claim, AppendError> {
        check_name(stream).map_err(|source| invalid(stream.into(), source))?;
        let mut state = self.lock();
        let epoch_floor = state.epoch_floor;
        if !state.streams.contains_key(stream) {
            if STREAMS_MAX <= state.streams.len() as u64 {
                return Err(invalid(stream.into(), Invalid::TooManyStreams));
            }
            let kept = Kept { epoch: epoch_floor, ..Kept::default() };
            state.streams.insert(stream.into(), kept);
        }
        let kept = state.streams.get_mut(stream).expect("inserted if it was not there");
        kept.epoch += 1;
        Ok(Claim { epoch: kept.epoch, head: kept.head })
    }

    pub(crate) fn append(&self, batch: &[Append]) -> Vec<Result<u64, AppendError>> {
        let mut state = self.lock();
        batch.iter().map(|append| append_one(&mut state, append)).collect()
    }

    pub(crate) fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Vec<Event> {
        let state = self.lock();
        let mut answer = Answer::new(after, events_max, bytes_max);
        let Some(kept) = state.streams.get(stream).filter(|it| after < it.head) else {
            return Vec::new();
        };
        let start = kept.records.partition_point(|(first, _)| *first <= answer.next()) - 1;
        for (first, body) in &kept.records[start..] {
            if !answer.unpack(*first, body) {
                break;
            }
        }
        answer.into_events()
    }

    pub(crate) fn streams(&self) -> Vec<Stream> {
        let state = self.lock();
        let streams = state.streams.iter();
        streams
            .map(|(name, kept)| Stream {
                name: Arc::clone(name),
                epoch: kept.epoch,
                head: kept.head,
                summary: kept.summary.clone(),
                summary_upto: kept.summary_upto,
            })
            .collect()
    }

    pub(crate) fn delete(&self, stream: &str) -> Result<(), AppendError> {
        check_name(stream).map_err(|source| invalid(stream.into(), source))?;
        let mut state = self.lock();
        if let Some(kept) = state.streams.remove(stream) {
            state.epoch_floor = state.epoch_floor.max(kept.epoch);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the streams")
    }
}

fn append_one(state: &mut State, append: &Append) -> Result<u64, AppendError> {
    let stream = &append.stream;
    append.check().map_err(|source| invalid(Arc::clone(stream), source))?;
    let kept = state.streams.get_mut(stream);
    let actual = kept.as_ref().map_or(0, |it| it.epoch);
    let Some(kept) = kept.filter(|it| it.epoch == append.epoch) else {
        return Err(AppendError::Fenced { stream: stream.clone(), epoch: append.epoch, actual });
    };
    if kept.head + 1 < append.first {
        let (first, head) = (append.first, kept.head);
        return Err(AppendError::Gap { stream: stream.clone(), first, head });
    }
    if let Some((first, body)) = append.missing_after(kept.head) {
        kept.records.push((first, body));
        kept.head = append.last();
    }
    if let Some(summary) = &append.summary
        && kept.summary_upto <= append.last()
    {
        kept.summary = summary.clone();
        kept.summary_upto = append.last();
    }
    Ok(kept.head)
}

fn invalid(stream: Arc<str>, source: Invalid) -> AppendError {
    AppendError::Invalid { stream, source }
}
