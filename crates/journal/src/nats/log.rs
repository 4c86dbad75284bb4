//! Writing a log: claim, append, delete.

use super::{
    Cell, PATIENCE, PAUSE, Store,
    message::{self, Heading, Kind},
    servers::{Stored, Trouble},
};
use crate::{
    error::{AppendError, Invalid},
    journal::Claim,
    record::{Append, Piece, check_name, pieces},
};
use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Logs of one batch that are written to at the same time.
const STREAMS_AT_ONCE: usize = 256;

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// The place of its last message; 0 if there is none.
    pub(super) at: u64,
    pub(super) epoch: u64,
    /// The number of the last event.
    pub(super) head: u64,
    /// There is a stream, and it was not deleted.
    pub(super) exists: bool,
    /// Its writer has let go of it.
    pub(super) released: bool,
}

pub(super) const NOTHING: Tail = Tail { at: 0, epoch: 0, head: 0, exists: false, released: false };

impl Tail {
    pub(super) fn of(stored: &Stored) -> Option<Tail> {
        let heading = Heading::parse(&stored.headers)?;
        let (exists, released) = (heading.kind != Kind::Gone, heading.kind == Kind::Release);
        let (epoch, head) = (heading.epoch, heading.head());
        Some(Tail { at: stored.at, epoch, head, exists, released })
    }
}

/// Where a log ends, and whose hand that is.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) tail: Tail,
    pub(super) writer: Option<String>,
    /// If the writer has claimed the log and written nothing: who had it before.
    pub(super) taken_from: Option<String>,
}

impl Store {
    /// Where a log ends, as the leader knows it.
    pub(super) async fn look(&self, stream: &str) -> Result<Tail, Trouble> {
        Ok(self.look_closely(stream).await?.tail)
    }

    pub(super) async fn look_closely(&self, stream: &str) -> Result<Last, Trouble> {
        let last = self.servers.last(&self.cell.log(stream), &self.cell.subject(stream)).await?;
        let Some(last) = last else {
            return Ok(Last { tail: NOTHING, writer: None, taken_from: None });
        };
        let foreign = || Trouble::Refused("its last message is not one of ours".to_owned());
        let tail = Tail::of(&last).ok_or_else(foreign)?;
        let writer = message::owner(&last.headers).map(str::to_owned);
        let taken_from = message::taken_from(&last.headers).map(str::to_owned);
        Ok(Last { tail, writer, taken_from })
    }

    fn known(&self, stream: &str) -> Option<Tail> {
        self.tails.lock().expect(POISONED).get(stream).copied()
    }

    fn remember(&self, stream: &Arc<str>, tail: Tail) {
        self.tails.lock().expect(POISONED).insert(stream.clone(), tail);
        if self.archive.get().is_some() {
            self.care.written(stream);
        }
    }

    /// This stream is written elsewhere, or nowhere.
    pub(crate) fn forget(&self, stream: &str) {
        self.tails.lock().expect(POISONED).remove(stream);
        self.summaries.lock().expect(POISONED).remove(stream);
    }

    pub(crate) async fn claim(&self, stream: &Arc<str>) -> Result<Claim, AppendError> {
        check_name(stream).map_err(|source| invalid(stream, source))?;
        let failed = |why: Trouble| AppendError::ClaimFailed {
            stream: stream.clone(),
            source: Arc::new(why),
        };
        Patience::new().keep_trying(|| self.try_claim(stream)).await.map_err(failed)
    }

    /// A claim whose outcome is unknown is simply made again: it costs an epoch.
    async fn try_claim(&self, stream: &Arc<str>) -> Result<Claim, Trouble> {
        let tail = self.look(stream).await?;
        self.claim_after(stream, tail, None).await
    }

    /// Becomes the writer of a log that ends there, perhaps in the place of somebody who has not let go.
    pub(super) async fn claim_after(
        &self,
        stream: &Arc<str>,
        tail: Tail,
        from: Option<&str>,
    ) -> Result<Claim, Trouble> {
        let head = if tail.exists { tail.head } else { 0 };
        let epoch = tail.epoch + 1;
        if !tail.exists {
            // Its name has been used before, and whoever deleted it may have been cut short.
            if tail != NOTHING {
                self.clear(stream).await?;
            }
            self.introduce(stream).await?;
        }
        self.enter(stream).await?;
        let mut headers = Heading::fact(stream, epoch, head + 1, Kind::Claim).to_headers();
        if let Some(from) = from {
            message::take_from(&mut headers, from);
        }
        let at = self.put_signed(stream, headers, Bytes::new(), tail.at).await?;
        self.remember(stream, Tail { at, epoch, head, exists: true, released: false });
        Ok(Claim { epoch, head })
    }

    pub(super) async fn put(
        &self,
        stream: &str,
        heading: Heading,
        body: Bytes,
        after: u64,
    ) -> Result<u64, Trouble> {
        self.put_signed(stream, heading.to_headers(), body, after).await
    }

    async fn put_signed(
        &self,
        stream: &str,
        mut headers: HeaderMap,
        body: Bytes,
        after: u64,
    ) -> Result<u64, Trouble> {
        if let Some(owner) = &self.owner {
            message::sign(&mut headers, owner);
        }
        self.servers.publish(self.cell.subject(stream), headers, body, Some(after)).await
    }

    /// Those of one stream one after the other, the streams side by side.
    pub(crate) async fn append_all(&self, batch: Vec<Append>) -> Vec<Result<u64, AppendError>> {
        let mut streams: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, append) in batch.iter().enumerate() {
            streams.entry(append.stream.clone()).or_default().push(index);
        }
        let batch = &batch;
        let one_by_one = |indices: Vec<usize>| async move {
            let mut outcomes = Vec::with_capacity(indices.len());
            for index in indices {
                outcomes.push((index, self.append(&batch[index]).await));
            }
            outcomes
        };
        let streams = stream::iter(streams.into_values()).map(one_by_one);
        let done: Vec<_> = streams.buffer_unordered(STREAMS_AT_ONCE).collect().await;
        let mut outcomes: Vec<_> = done.into_iter().flatten().collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// At most one append of a stream at a time: the second would find the first in its way.
    pub(crate) async fn append(&self, append: &Append) -> Result<u64, AppendError> {
        append.check().map_err(|source| invalid(&append.stream, source))?;
        let failed = |why: Trouble| AppendError::Unavailable {
            stream: append.stream.clone(),
            count: append.count,
            source: Arc::new(why),
        };
        let patience = Patience::new();
        let head = loop {
            match self.try_append(append).await {
                Ok(head) => break head?,
                Err(why) => {
                    self.tails.lock().expect(POISONED).remove(&append.stream);
                    patience.or_give_up(why).await.map_err(failed)?;
                }
            }
        };
        if let Some(summary) = &append.summary {
            self.summarize(append, summary.clone()).await.map_err(failed)?;
        }
        Ok(head)
    }

    /// What is known of the log's end may be old. Then the server refuses, or what is known says no; in
    /// both cases the leader is asked before anything is said.
    async fn try_append(&self, append: &Append) -> Result<Result<u64, AppendError>, Trouble> {
        let stream = &append.stream;
        let known = self.known(stream).filter(|it| judge(append, it).is_ok());
        let mut tail = match known {
            Some(tail) => tail,
            None => self.look(stream).await?,
        };
        if let Err(error) = judge(append, &tail) {
            self.forget(stream);
            return Ok(Err(error));
        }
        if let Some((first, body)) = append.missing_after(tail.head) {
            for piece in pieces(first, append.last(), body) {
                tail = self.put_piece(append, piece, tail).await?;
            }
        }
        self.remember(stream, tail);
        Ok(Ok(tail.head))
    }

    async fn put_piece(&self, append: &Append, piece: Piece, tail: Tail) -> Result<Tail, Trouble> {
        let (stream, epoch) = (&append.stream, append.epoch);
        let (piece, kind) = if piece.is_large() {
            (self.put_blob(stream, epoch, &piece).await?, Kind::Reference)
        } else {
            (piece, Kind::Events)
        };
        let heading = Heading::of(stream, epoch, &piece, kind);
        let at = self.put(stream, heading, piece.body, tail.at).await?;
        Ok(Tail { at, epoch, head: heading.head(), exists: true, released: false })
    }

    pub(crate) async fn delete(&self, stream: &Arc<str>) -> Result<(), AppendError> {
        check_name(stream).map_err(|source| invalid(stream, source))?;
        let failed = |why: Trouble| AppendError::DeleteFailed {
            stream: stream.clone(),
            source: Arc::new(why),
        };
        Patience::new().keep_trying(|| self.try_delete(stream)).await.map_err(failed)
    }

    async fn try_delete(&self, stream: &Arc<str>) -> Result<(), Trouble> {
        let tail = self.look(stream).await?;
        self.delete_after(stream, tail).await?;
        self.leave(stream).await
    }

    /// Deletes a stream whose log ends there. Whatever is cut short is done by whoever deletes, adopts or
    /// claims it next.
    ///
    /// An archive that does not answer is noticed before anything is done. The writer is fenced, then what
    /// there was is removed, and the archive once more: what somebody put there meanwhile either is found,
    /// or its writer sees that the stream is gone.
    pub(super) async fn delete_after(&self, stream: &Arc<str>, tail: Tail) -> Result<(), Trouble> {
        if tail == NOTHING {
            return Ok(());
        }
        if tail.exists {
            if let Some(archive) = self.archive.get() {
                self.check_used_archive().await?;
                archive.remove(&Cell::folder(stream)).await?;
            }
            let heading = Heading::fact(stream, tail.epoch + 1, 1, Kind::Gone);
            self.put(stream, heading, Bytes::new(), tail.at).await?;
        }
        self.forget(stream);
        self.clear(stream).await?;
        self.unlist(stream).await
    }

    /// Removes what is left of a stream that was deleted, all but the message that says so.
    async fn clear(&self, stream: &str) -> Result<(), Trouble> {
        let log = self.cell.log(stream);
        self.servers.purge(&log, &self.cell.subject(stream), 1).await?;
        self.servers.purge(&log, &self.cell.blobs_subject(stream), 0).await?;
        if let Some(archive) = self.archive.get() {
            archive.remove(&Cell::folder(stream)).await?;
        }
        Ok(())
    }
}

/// What the contract says of an append to a log that ends there.
fn judge(append: &Append, tail: &Tail) -> Result<(), AppendError> {
    let stream = append.stream.clone();
    if append.epoch != tail.epoch || !tail.exists || tail.released {
        let actual = if tail.exists { tail.epoch } else { 0 };
        return Err(AppendError::Fenced { stream, epoch: append.epoch, actual });
    }
    if tail.head + 1 < append.first {
        return Err(AppendError::Gap { stream, first: append.first, head: tail.head });
    }
    Ok(())
}

pub(super) fn invalid(stream: &Arc<str>, source: Invalid) -> AppendError {
    AppendError::Invalid { stream: stream.clone(), source }
}

/// How long something that may yet succeed is tried.
pub(super) struct Patience {
    since: Instant,
    lasts: Duration,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience::of(PATIENCE)
    }

    pub(super) fn of(lasts: Duration) -> Patience {
        Patience { since: Instant::now(), lasts }
    }

    /// Does something until it is done, or there is no more patience.
    pub(super) async fn keep_trying<T, F: Future<Output = Result<T, Trouble>>>(
        &self,
        step: impl Fn() -> F,
    ) -> Result<T, Trouble> {
        loop {
            match step().await {
                Ok(done) => return Ok(done),
                Err(why) => self.or_give_up(why).await?,
            }
        }
    }

    /// Waits a little before the next try, or says why there is none.
    pub(super) async fn or_give_up(&self, why: Trouble) -> Result<(), Trouble> {
        if matches!(why, Trouble::Refused(_)) || self.lasts < self.since.elapsed() {
            return Err(why);
        }
        // Somebody else was faster; that is no reason to wait.
        if !matches!(why, Trouble::Stale) {
            tokio::time::sleep(PAUSE.min(self.since.elapsed() + PAUSE / 10)).await;
        }
        Ok(())
    }
}

pub(super) const POISONED: &str = "nothing panics while it holds what is known";
