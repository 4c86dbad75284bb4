//! What is not kept: sessions that nobody has used for long, and the oldest where there is too much.
//!
//! The list of streams is ordered by their last change, so whatever is to go is found at its front. Two hosts
//! may do it at once: a deletion follows the very message that was judged, so nothing goes that somebody has
//! claimed in between.

use super::{
    Cell, Store,
    curator::Fellows,
    log::{NOTHING, Tail},
    message,
    servers::{Stored, Trouble},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long and how much. Neither: everything is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// A stream that nobody has written to or claimed for so long is deleted.
    pub age: Option<Duration>,
    /// The oldest are deleted until archive and logs have no more than this, one copy counted.
    pub bytes: Option<u64>,
}

/// What was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    pub streams: Vec<Arc<str>>,
    /// What archive and logs have now; only where that was asked about.
    pub bytes: Option<u64>,
}

/// How much there is.
struct Stock {
    archived: BTreeMap<String, u64>,
    logs: Vec<u64>,
}

impl Stock {
    fn bytes(&self) -> u64 {
        self.archived.values().sum::<u64>() + self.logs.iter().sum::<u64>()
    }
}

impl Store {
    pub(super) async fn retain(
        &self,
        wish: Retention,
        fellows: &Fellows,
    ) -> Result<Expired, Trouble> {
        let mut expired = Expired::default();
        let mut stock = match wish.bytes {
            Some(_) => Some(self.stock().await?),
            None => None,
        };
        let mut place = 0;
        'list: loop {
            let found = self.summaries_from(place + 1).await?;
            if found.is_empty() {
                break;
            }
            for summary in found {
                let is_too_much = stock.as_ref().is_some_and(|it| wish.bytes < Some(it.bytes()));
                let is_old = |it: &Stored| wish.age.is_some_and(|age| it.is_older_than(age));
                if !is_too_much && !is_old(&summary) {
                    break 'list;
                }
                place = summary.at;
                let Some(name) = self.cell.named_by_summary(&summary.subject) else { continue };
                let stream: Arc<str> = name.into();
                let may_go = |last: &Stored| is_too_much || is_old(last);
                if self.expire(&stream, may_go, fellows).await? {
                    if let Some(stock) = &mut stock {
                        self.deduct(&stream, stock).await?;
                    }
                    expired.streams.push(stream);
                }
            }
        }
        expired.bytes = stock.map(|it| it.bytes());
        Ok(expired)
    }

    /// Deletes a stream that nobody living has, unless its last message says that it should stay.
    async fn expire(
        &self,
        stream: &Arc<str>,
        may_go: impl Fn(&Stored) -> bool,
        fellows: &Fellows,
    ) -> Result<bool, Trouble> {
        let last = self.servers.last(&self.cell.log(stream), &self.cell.subject(stream)).await?;
        let Some(last) = last else {
            // Listed, and not claimed yet, or never.
            return Ok(false);
        };
        let tail = Tail::of(&last).unwrap_or(NOTHING);
        let owner = message::owner(&last.headers).filter(|_| !tail.released);
        let is_had = tail.exists && owner.is_some_and(|it| (fellows.is_alive)(it));
        if tail == NOTHING || is_had || !may_go(&last) {
            return Ok(false);
        }
        match self.delete_after(stream, tail).await {
            Ok(()) => Ok(true),
            // Somebody has just claimed it.
            Err(Trouble::Stale | Trouble::Busy) => Ok(false),
            Err(why) => Err(why),
        }
    }

    async fn stock(&self) -> Result<Stock, Trouble> {
        let archived = match self.archive.get() {
            Some(archive) => archive.sizes().await?,
            None => BTreeMap::new(),
        };
        let mut logs = Vec::new();
        for shard in 0..self.cell.shards {
            logs.push(self.servers.extent(&self.cell.shard_log(shard)).await?.bytes);
        }
        Ok(Stock { archived, logs })
    }

    async fn deduct(&self, stream: &str, stock: &mut Stock) -> Result<(), Trouble> {
        stock.archived.remove(&Cell::folder(stream));
        let extent = self.servers.extent(&self.cell.log(stream)).await?;
        stock.logs[usize::from(self.cell.shard(stream))] = extent.bytes;
        Ok(())
    }
}
