//! From a log to the archive: the messages of a log that are cold become segments, and when the archive has
//! these, the messages are removed.
//!
//! Anybody may do it, and two may do it at once: events do not change, so both write the same. Only the last
//! message of a log is never moved. It is the lock.

#[cfg(test)]
mod tests;

use super::{
    Cell, Store,
    curator::Moved,
    message::{Heading, Kind},
    servers::{BATCH, BATCH_BYTES, Stored, Trouble},
};
use crate::{
    archive::{Archive, Sheaf},
    record::{Piece, Reference},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

/// A log on its way to the archive.
struct Move<'a> {
    archive: &'a Archive,
    stream: &'a Arc<str>,
    folder: String,
    /// What the next segment will have.
    sheaf: Sheaf,
    /// The last message that is in it, or was in one before.
    place: u64,
    /// The last event that the archive had before; asked for with the first event of the log.
    archived: Option<u64>,
    moved: Moved,
}

impl Store {
    pub(super) fn archive(&self) -> Result<&Archive, Trouble> {
        self.archive.get().ok_or_else(|| Trouble::Refused("there is no archive".to_owned()))
    }

    /// If the first message of a log is as old as that, it and all that are half as old are moved: so a
    /// session that never rests is moved in some large pieces, not in many small ones.
    pub(super) async fn move_cold(
        &self,
        stream: &Arc<str>,
        after: Duration,
    ) -> Result<Moved, Trouble> {
        let (archive, folder) = (self.archive()?, Cell::folder(stream));
        let (sheaf, moved) = Default::default();
        let mut it = Move { archive, stream, folder, sheaf, place: 0, archived: None, moved };
        let tail = self.look(stream).await?;
        if tail.exists {
            self.check_archive().await?;
            self.gather_all(&mut it, tail.at, after).await?;
            self.ship(&mut it).await?;
        }
        Ok(it.moved)
    }

    async fn gather_all(
        &self,
        it: &mut Move<'_>,
        tail: u64,
        after: Duration,
    ) -> Result<(), Trouble> {
        let (log, subject) = (self.cell.log(it.stream), self.cell.subject(it.stream));
        let (mut place, mut age) = (0, after);
        loop {
            let found = self.servers.batch(&log, &subject, place + 1, BATCH, BATCH_BYTES).await?;
            if found.is_empty() {
                return Ok(());
            }
            for stored in found {
                if tail <= stored.at {
                    return Ok(());
                }
                if !stored.is_older_than(age) {
                    it.moved.left = Some(stored.age());
                    return Ok(());
                }
                age = after / 2;
                self.gather(it, &stored).await?;
                place = stored.at;
            }
        }
    }

    /// Adds the events of a message to the next segment.
    async fn gather(&self, it: &mut Move<'_>, stored: &Stored) -> Result<(), Trouble> {
        let stream = it.stream;
        let damaged = |what: String| {
            Trouble::Refused(format!("{what} of stream `{stream}`: it stays where it is"))
        };
        let Some(heading) = Heading::parse(&stored.headers) else {
            return Err(damaged(format!("message {} is not one", stored.at)));
        };
        let archived = match it.archived {
            Some(archived) => archived,
            None => archived_before(it, heading.first).await?,
        };
        it.archived = Some(archived);
        if heading.count != 0 && archived < heading.head() {
            let Some(lines) = self.lines(stream, &heading, stored).await? else {
                return Err(damaged(format!("event {} is damaged in the log", heading.first)));
            };
            if it.sheaf.is_full_with(lines.len()) {
                self.ship(it).await?;
            }
            if !it.sheaf.push(heading.first, heading.head(), &lines) {
                return Err(damaged(format!("there is no event before {}", heading.first)));
            }
        }
        it.place = stored.at;
        Ok(())
    }

    /// The lines of a message, a large event in full; none if they are not what was written.
    async fn lines(
        &self,
        stream: &str,
        heading: &Heading,
        stored: &Stored,
    ) -> Result<Option<Bytes>, Trouble> {
        let piece = Piece { first: heading.first, count: heading.count, body: stored.body.clone() };
        if !heading.fits(stream, &piece) {
            return Ok(None);
        }
        if heading.kind != Kind::Reference {
            return Ok(Some(piece.body));
        }
        match Reference::parse(&piece.body) {
            Some(reference) => self.blob(stream, heading.epoch, heading.first, reference).await,
            None => Ok(None),
        }
    }

    /// Puts the segment, and then removes what is in it from the log.
    async fn ship(&self, it: &mut Move<'_>) -> Result<(), Trouble> {
        if let Some(segment) = it.sheaf.take() {
            let (span, raw) = (segment.span(), segment.body.len() as u64);
            let stored = it.archive.put(&it.folder, segment).await?;
            // Whoever deleted it meanwhile may have looked into the archive too early.
            if !self.look(it.stream).await?.exists {
                it.archive.take_back(&it.folder, span).await?;
                return Ok(());
            }
            it.moved.count(raw, stored);
            self.care.count(raw, stored);
        }
        if it.place == 0 {
            return Ok(());
        }
        // Its storage may have gone while the segment was written.
        self.check_archive().await?;
        let log = self.cell.log(it.stream);
        self.servers.purge_upto(&log, &self.cell.subject(it.stream), it.place).await?;
        // The parts of a large event stand between the message before it and its own.
        self.servers.purge_upto(&log, &self.cell.blobs_subject(it.stream), it.place).await
    }
}

/// The last event before this one, or behind it, that the archive has without a gap. It has all that the log
/// has not; if not, nothing more may be removed.
async fn archived_before(it: &Move<'_>, first: u64) -> Result<u64, Trouble> {
    let end = it.archive.end(&it.folder, (first - 1).max(1)).await?;
    match end {
        Some(end) => Ok(end),
        None if first == 1 => Ok(0),
        None => {
            let (stream, before) = (it.stream, first - 1);
            let why =
                format!("event {before} of stream `{stream}` is neither in the log nor there");
            Err(Trouble::Refused(why))
        }
    }
}
