//! Summaries beside the logs, and the list of streams, which is the list of summaries.
//!
//! A summary follows its events and is not stored with them in one go. One that is missing or old costs
//! the reading of events, nothing else.

use super::{
    Store,
    log::{POISONED, Patience},
    message::number,
    servers::{BATCH_BYTES, Stored, Trouble},
};
use crate::{error::ReadError, journal::Stream, record::Append};
use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The last event that the summary knows of.
const UPTO: &str = "S";

/// Summaries asked for at once.
pub(super) const BATCH: usize = 1024;
/// What a server need not count: with any other pattern it goes over all subjects for each batch.
const EVERY_SUBJECT: &str = ">";
/// Logs whose ends are asked for at once.
const LOOKS: usize = 128;

/// Some streams, and where those before them are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Names and summaries.
    pub streams: Vec<(Arc<str>, Bytes)>,
    pub before: Option<u64>,
    /// Summaries that are written after the first page was read are at this place or behind it.
    pub end: u64,
}

/// Which summary is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    /// The place of its message; 0 if there is none.
    at: u64,
    upto: u64,
}

impl Kept {
    fn of(stored: &Stored) -> Kept {
        Kept { at: stored.at, upto: number(&stored.headers, UPTO).unwrap_or(0) }
    }
}

impl Store {
    /// A stream that is new is listed before it can be written to, or nobody would find it.
    pub(super) async fn introduce(&self, stream: &Arc<str>) -> Result<(), Trouble> {
        let kept = self.kept(stream).await?;
        if kept.at == 0 {
            self.put_summary(stream, 0, Bytes::new(), kept).await?;
        }
        Ok(())
    }

    /// Keeps the summary that came with an append, unless there is a later one.
    pub(super) async fn summarize(&self, append: &Append, summary: Bytes) -> Result<(), Trouble> {
        let (stream, upto) = (&append.stream, append.last());
        let mut known = self.summaries.lock().expect(POISONED).get(stream).copied();
        let patience = Patience::new();
        loop {
            let kept = match known.take() {
                Some(kept) => kept,
                None => self.kept(stream).await?,
            };
            if upto < kept.upto {
                return Ok(());
            }
            match self.put_summary(stream, upto, summary.clone(), kept).await {
                Ok(()) => return Ok(()),
                Err(why) => patience.or_give_up(why).await?,
            }
        }
    }

    async fn put_summary(
        &self,
        stream: &Arc<str>,
        upto: u64,
        summary: Bytes,
        before: Kept,
    ) -> Result<(), Trouble> {
        let mut headers = HeaderMap::new();
        headers.insert(UPTO, upto.to_string());
        let subject = self.cell.summary_subject(stream);
        let at = self.servers.publish(subject, headers, summary, Some(before.at)).await?;
        self.summaries.lock().expect(POISONED).insert(stream.clone(), Kept { at, upto });
        Ok(())
    }

    async fn last_summary(&self, stream: &str) -> Result<Option<Stored>, Trouble> {
        self.servers.last(&self.cell.summaries(), &self.cell.summary_subject(stream)).await
    }

    async fn kept(&self, stream: &str) -> Result<Kept, Trouble> {
        Ok(self.last_summary(stream).await?.as_ref().map(Kept::of).unwrap_or_default())
    }

    pub(super) async fn is_listed(&self, stream: &str) -> Result<bool, Trouble> {
        Ok(self.last_summary(stream).await?.is_some())
    }

    /// The summary that is kept beside a log; empty if there is none.
    pub(super) async fn summary(&self, stream: &str) -> Result<Bytes, Trouble> {
        Ok(self.last_summary(stream).await?.map(|it| it.body).unwrap_or_default())
    }

    pub(super) async fn unlist(&self, stream: &str) -> Result<(), Trouble> {
        self.servers.purge(&self.cell.summaries(), &self.cell.summary_subject(stream), 0).await
    }

    /// Some of the summaries from a place on, those that were written first before the others.
    pub(super) async fn summaries_from(&self, place: u64) -> Result<Vec<Stored>, Trouble> {
        let log = self.cell.summaries();
        self.servers.batch(&log, EVERY_SUBJECT, place, BATCH, BATCH_BYTES).await
    }

    pub(super) async fn page(&self, before: Option<u64>, count: usize) -> Result<Page, ReadError> {
        let page = || self.try_page(before, count);
        Patience::new().keep_trying(page).await.map_err(not_listed)
    }

    /// Only the last summary of each stream is kept, so places are missing between those that are there:
    /// what is looked at grows until enough were found.
    async fn try_page(&self, before: Option<u64>, count: usize) -> Result<Page, Trouble> {
        let log = self.cell.summaries();
        let end = match before {
            Some(before) => before,
            None => self.servers.extent(&log).await?.last + 1,
        };
        let (mut from, mut width) = (end, count.max(1) as u64);
        let mut found: VecDeque<Stored> = VecDeque::new();
        while found.len() < count && 1 < from {
            let until = from;
            from = from.saturating_sub(width).max(1);
            width = (width * 4).min(BATCH as u64);
            let part = self.summaries_from(from).await?;
            for stored in part.into_iter().rev().filter(|it| it.at < until) {
                found.push_front(stored);
            }
        }
        let surplus = found.len().saturating_sub(count);
        let rest = found.split_off(surplus);
        let before =
            rest.front().map(|it| it.at).filter(|it| 1 < *it && (surplus != 0 || 1 < from));
        let named = |it: Stored| self.named(it);
        Ok(Page { streams: rest.into_iter().rev().filter_map(named).collect(), before, end })
    }

    fn named(&self, summary: Stored) -> Option<(Arc<str>, Bytes)> {
        let name = self.cell.named_by_summary(&summary.subject)?;
        Some((Arc::from(name), summary.body))
    }

    /// Streams whose summaries were written at a place or behind it, by name.
    pub(super) async fn since(&self, place: u64) -> Result<BTreeMap<Arc<str>, Bytes>, ReadError> {
        let since = || self.try_since(place);
        Patience::new().keep_trying(since).await.map_err(not_listed)
    }

    async fn try_since(&self, mut place: u64) -> Result<BTreeMap<Arc<str>, Bytes>, Trouble> {
        let mut found = BTreeMap::new();
        loop {
            let part = self.summaries_from(place).await?;
            let Some(last) = part.last() else { return Ok(found) };
            place = last.at + 1;
            found.extend(part.into_iter().filter_map(|it| self.named(it)));
        }
    }

    /// Every stream, by name, each with the end of its log.
    pub(crate) async fn streams(&self) -> Result<Vec<Stream>, ReadError> {
        let listed = || self.try_list();
        let listed = Patience::new().keep_trying(listed).await.map_err(not_listed)?;
        let look = |(name, (kept, summary)): (String, (Kept, Bytes))| async move {
            let tail = self.look(&name).await?;
            let (epoch, head) = (tail.epoch, tail.head);
            let (name, summary_upto) = (name.into(), kept.upto);
            let found = Stream { name, epoch, head, summary, summary_upto };
            Ok::<_, Trouble>(tail.exists.then_some(found))
        };
        let found = stream::iter(listed).map(look).buffered(LOOKS);
        let found = found.try_filter_map(async |it| Ok(it));
        found.try_collect().await.map_err(not_listed)
    }

    /// The list as it was at some moment after it was asked for: no server may leave out the latest.
    async fn try_list(&self) -> Result<BTreeMap<String, (Kept, Bytes)>, Trouble> {
        let wanted = self.servers.extent(&self.cell.summaries()).await?;
        let mut listed = BTreeMap::new();
        let mut place = 0;
        loop {
            let found = self.summaries_from(place + 1).await?;
            let Some(last) = found.last() else { break };
            place = last.at;
            for stored in found {
                if let Some(name) = self.cell.named_by_summary(&stored.subject) {
                    listed.insert(name, (Kept::of(&stored), stored.body));
                }
            }
        }
        if place < wanted.last && (listed.len() as u64) < wanted.messages {
            return Err(Trouble::Unknown("a server is behind its leader".to_owned()));
        }
        Ok(listed)
    }
}

pub(super) fn not_listed(why: Trouble) -> ReadError {
    ReadError::ListFailed { source: Arc::new(why) }
}
