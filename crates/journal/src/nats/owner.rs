//! Whose a log is. Writers that have a name sign what they write, so the last message of a log says who owns
//! it, and a release says that nobody does. Beside the logs there is a list of what each owner has, because
//! when one dies others must find it; the list may have too much, never too little.

use super::{
    Nats, Store,
    log::{Last, Patience, invalid},
    message::{Heading, Kind},
    servers::Trouble,
    summary::{BATCH, Page, not_listed},
};
use crate::{
    error::{AppendError, ReadError},
    journal::Claim,
    record::{Event, check_name},
};
use async_nats::HeaderMap;
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};

const BATCH_BYTES: usize = 1 << 20;

/// What can be asked about the owners of streams. Each call waits for the servers.
#[derive(Clone)]
pub struct Owners(Arc<Nats>);

impl Owners {
    pub(crate) fn new(nats: Arc<Nats>) -> Owners {
        Owners(nats)
    }

    /// Claims a stream that exists, unless `is_alive` says that its owner lives.
    pub fn adopt(
        &self,
        stream: &str,
        is_alive: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Adopted, AdoptError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.wait(async move { store.adopt(&stream, &is_alive).await })
    }

    /// Lets go of a stream that is ours under this epoch; one that is not is left alone.
    pub fn release(&self, stream: &str, epoch: u64) -> Result<(), AppendError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.wait(async move { store.release(&stream, epoch).await })
    }

    pub fn last_writer(&self, stream: &str) -> Result<Writer, AdoptError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.wait(async move { store.last_writer(&stream).await })
    }

    /// Summaries of all streams, those that were written last first: `count` of them, before a place.
    pub fn page(&self, before: Option<u64>, count: usize) -> Result<Page, ReadError> {
        let store = self.0.store.clone();
        self.0.wait(async move { store.page(before, count).await })
    }

    /// Summaries that were written at a place or behind it, by the names of their streams.
    pub fn since(&self, place: u64) -> Result<BTreeMap<Arc<str>, Bytes>, ReadError> {
        let store = self.0.store.clone();
        self.0.wait(async move { store.since(place).await })
    }

    /// The summary of a stream; empty if there is none.
    pub fn summary(&self, stream: &str) -> Result<Bytes, ReadError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.wait(async move {
            let summary = || store.summary(&stream);
            Patience::new().keep_trying(summary).await.map_err(not_listed)
        })
    }

    /// Events of a stream after this one, so many at most; none if there are no more. The stream stays whose it is.
    pub fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        self.0.read(stream, after, events_max, bytes_max)
    }

    /// The streams that an owner has, and perhaps some that it had. Owners may have a family name, as in
    /// `NAME/LIFE`; that alone asks for what all of them have.
    pub fn owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, ReadError> {
        let (store, owner) = (self.0.store.clone(), owner.to_owned());
        self.0.wait(async move { store.owned_by(&owner).await })
    }
}

/// Who wrote to a stream last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// None, if it has no name.
    pub name: Option<String>,
    /// It has let go of the stream.
    pub released: bool,
}

impl Writer {
    /// Whoever has not let go.
    pub fn owner(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| !self.released)
    }
}

/// A stream that was claimed for good reasons only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    pub claim: Claim,
    /// The last that wrote to it, if it did not let go. Whoever has claimed it since and written nothing
    /// does not count.
    pub from: Option<String>,
    pub summary: Bytes,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum AdoptError {
    #[error("stream `{stream}` belongs to {owner}, which lives")]
    Owned { stream: Arc<str>, owner: String },

    #[error("there is no stream `{stream}`")]
    Missing { stream: Arc<str> },

    #[error(transparent)]
    Claim(#[from] AppendError),
}

impl Store {
    async fn adopt(
        &self,
        stream: &Arc<str>,
        is_alive: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Adopted, AdoptError> {
        check_name(stream).map_err(|source| invalid(stream, source))?;
        let adopted = || self.try_adopt(stream, is_alive);
        Patience::new().keep_trying(adopted).await.map_err(|it| failed(stream, it))?
    }

    async fn last_writer(&self, stream: &Arc<str>) -> Result<Writer, AdoptError> {
        let looked = || self.look_closely(stream);
        let looked = Patience::new().keep_trying(looked).await;
        let last = looked.map_err(|it| failed(stream, it))?;
        if !last.tail.exists {
            return Err(AdoptError::Missing { stream: stream.clone() });
        }
        Ok(Writer { name: last.writer, released: last.tail.released })
    }

    async fn try_adopt(
        &self,
        stream: &Arc<str>,
        is_alive: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Result<Adopted, AdoptError>, Trouble> {
        let Last { tail, writer, taken_from } = self.look_closely(stream).await?;
        if !tail.exists {
            // A deletion was cut short, if it is still listed.
            if self.is_listed(stream).await? {
                self.delete_after(stream, tail).await?;
            }
            return Ok(Err(AdoptError::Missing { stream: stream.clone() }));
        }
        let owner = writer.filter(|_| !tail.released);
        if let Some(owner) = owner.as_deref().filter(|it| is_alive(it)) {
            return Ok(Err(AdoptError::Owned { stream: stream.clone(), owner: owner.to_owned() }));
        }
        let not_ours = |it: &String| Some(it) != self.owner.as_ref();
        let from = taken_from.or_else(|| owner.clone()).filter(not_ours);
        let claim = self.claim_after(stream, tail, from.as_deref()).await?;
        if let Some(dead) = owner.filter(not_ours) {
            // If that fails, its list has too much.
            let _kept = self.strike(&dead, stream).await;
        }
        let summary = self.summary(stream).await?;
        Ok(Ok(Adopted { claim, from, summary }))
    }

    pub(crate) async fn release(&self, stream: &Arc<str>, epoch: u64) -> Result<(), AppendError> {
        let released = || self.try_release(stream, epoch);
        Patience::new().keep_trying(released).await.map_err(|it| failed(stream, it))
    }

    async fn try_release(&self, stream: &Arc<str>, epoch: u64) -> Result<(), Trouble> {
        let tail = self.look(stream).await?;
        if tail.exists && !tail.released && tail.epoch == epoch {
            let heading = Heading::fact(stream, epoch, tail.head + 1, Kind::Release);
            self.put(stream, heading, Bytes::new(), tail.at).await?;
        }
        self.forget(stream);
        self.leave(stream).await
    }

    /// Puts a stream on our list, before it is ours.
    pub(super) async fn enter(&self, stream: &str) -> Result<(), Trouble> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let subject = self.cell.owned_subject(owner, stream);
        self.servers.publish(subject, HeaderMap::new(), Bytes::new(), None).await.map(drop)
    }

    /// Takes it off, when it is no longer.
    pub(super) async fn leave(&self, stream: &str) -> Result<(), Trouble> {
        let Some(owner) = &self.owner else { return Ok(()) };
        self.strike(owner, stream).await
    }

    async fn strike(&self, owner: &str, stream: &str) -> Result<(), Trouble> {
        let subject = self.cell.owned_subject(owner, stream);
        self.servers.purge(&self.cell.owned(), &subject, 0).await
    }

    async fn owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, ReadError> {
        let names = || self.try_owned_by(owner);
        Patience::new().keep_trying(names).await.map_err(not_listed)
    }

    async fn try_owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, Trouble> {
        let (log, all) = (self.cell.owned(), self.cell.all_owned(owner));
        // A server that is late would leave out the latest.
        let last = self.servers.last(&log, &all).await?.map_or(0, |it| it.at);
        let (mut names, mut place) = (Vec::new(), 0);
        while place < last {
            let found = self.servers.batch(&log, &all, place + 1, BATCH, BATCH_BYTES).await?;
            let Some(end) = found.last() else {
                return Err(Trouble::Unknown("a server is behind its leader".to_owned()));
            };
            place = end.at;
            let found = found.iter().filter_map(|it| super::Cell::named_by_entry(&it.subject));
            names.extend(found.map(Arc::from));
        }
        Ok(names)
    }
}

fn failed(stream: &Arc<str>, why: Trouble) -> AppendError {
    AppendError::ClaimFailed { stream: stream.clone(), source: Arc::new(why) }
}
