//! Reading a log: how far it goes is asked of the leader, the events come from any server, or from the
//! archive if the log begins behind them.

use super::{
    Cell, Store,
    log::{POISONED, Patience},
    message::{Heading, Kind},
    servers::{BATCH, BATCH_BYTES, Stored, Trouble},
};
use crate::{
    error::{Damage, ReadError},
    record::{Answer, Event, Piece, Reference},
};
use bytes::Bytes;
use std::sync::Arc;

/// A read of so many logs may begin where the last one ended; beyond that it begins at the start.
const HINTS_MAX: usize = 10_000;

/// The message with the event `next` comes after this place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint {
    next: u64,
    after: u64,
}

/// Why an answer ends before the log does.
enum Stop {
    Full,
    Damaged(Damage),
    /// Not where it was looked for.
    Misplaced,
}

impl Store {
    pub(crate) async fn read(
        &self,
        stream: &Arc<str>,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let patience = Patience::new();
        loop {
            let mut answer = Answer::new(after, events_max, bytes_max);
            match self.try_read(stream, &mut answer).await {
                Ok(Some(damage)) if answer.is_empty() => {
                    let (stream, first) = (stream.clone(), answer.next());
                    return Err(ReadError::Damaged { stream, first, damage });
                }
                Ok(_) => return Ok(answer.into_events()),
                Err(why) => patience.or_give_up(why).await.map_err(|why| {
                    let (stream, source) = (stream.clone(), Arc::new(why));
                    ReadError::Unavailable { stream, after, source }
                })?,
            }
        }
    }

    /// Fills the answer; says what is broken if that is why it ends.
    async fn try_read(
        &self,
        stream: &Arc<str>,
        answer: &mut Answer,
    ) -> Result<Option<Damage>, Trouble> {
        let tail = self.look(stream).await?;
        if !tail.exists || tail.head < answer.next() {
            return Ok(None);
        }
        let hint = self.hint(stream, answer.next());
        let mut place = hint.unwrap_or(0);
        let mut is_hinted = hint.is_some();
        loop {
            let (log, subject) = (self.cell.log(stream), self.cell.subject(stream));
            let found = self.servers.batch(&log, &subject, place + 1, BATCH, BATCH_BYTES).await?;
            if found.is_empty() {
                if is_hinted {
                    (is_hinted, place) = (false, 0);
                    continue;
                }
                // The leader has it: this server will.
                return Err(Trouble::Unknown("a server is behind its leader".to_owned()));
            }
            for stored in found {
                match self.unpack(stream, &stored, answer).await? {
                    Ok(()) => place = stored.at,
                    Err(Stop::Misplaced) if is_hinted => {
                        (is_hinted, place) = (false, 0);
                        break;
                    }
                    Err(Stop::Full) => return Ok(None),
                    Err(stop) => match self.read_cold(stream, stop, answer).await? {
                        // This message, or the next one, may be what follows now.
                        Ok(()) => break,
                        Err(Stop::Damaged(damage)) => return Ok(Some(damage)),
                        Err(Stop::Full | Stop::Misplaced) => return Ok(None),
                    },
                }
                self.set_hint(stream, Hint { next: answer.next(), after: place });
                if tail.head < answer.next() {
                    return Ok(None);
                }
            }
        }
    }

    /// Adds the events of a message.
    async fn unpack(
        &self,
        stream: &str,
        stored: &Stored,
        answer: &mut Answer,
    ) -> Result<Result<(), Stop>, Trouble> {
        let damaged = |damage| Ok(Err(Stop::Damaged(damage)));
        let Some(heading) = Heading::parse(&stored.headers) else {
            return damaged(Damage::Checksum);
        };
        // Also a message without events says which one comes next.
        if answer.next() < heading.first {
            return Ok(Err(Stop::Misplaced));
        }
        if heading.head() < answer.next() {
            return Ok(Ok(()));
        }
        let piece = Piece { first: heading.first, count: heading.count, body: stored.body.clone() };
        if !heading.fits(stream, &piece) {
            return damaged(Damage::Checksum);
        }
        let body = match heading.kind {
            Kind::Reference => match self.large(stream, &heading, &piece.body, answer).await? {
                Ok(body) => body,
                Err(stop) => return Ok(Err(stop)),
            },
            _ => piece.body,
        };
        let all = answer.unpack(heading.first, &body);
        Ok(if all { Ok(()) } else { Err(Stop::Full) })
    }

    async fn large(
        &self,
        stream: &str,
        heading: &Heading,
        line: &[u8],
        answer: &Answer,
    ) -> Result<Result<Bytes, Stop>, Trouble> {
        let Some(reference) = Reference::parse(line) else {
            return Ok(Err(Stop::Damaged(Damage::Blob)));
        };
        if !answer.has_room_for(reference.bytes) {
            return Ok(Err(Stop::Full));
        }
        let blob = self.blob(stream, heading.epoch, heading.first, reference).await?;
        Ok(blob.ok_or(Stop::Damaged(Damage::Blob)))
    }

    /// What is not in the log, or not any more, may be in the archive: adds a segment of it.
    async fn read_cold(
        &self,
        stream: &str,
        stop: Stop,
        answer: &mut Answer,
    ) -> Result<Result<(), Stop>, Trouble> {
        let (absent, is_moved) = match stop {
            Stop::Misplaced if self.archive.get().is_none() => (Damage::Archived, false),
            Stop::Misplaced => (Damage::Missing, true),
            // It was moved after its reference was read.
            Stop::Damaged(Damage::Blob) => (Damage::Blob, true),
            Stop::Damaged(damage) => (damage, false),
            Stop::Full => return Ok(Err(Stop::Full)),
        };
        let Some(archive) = self.archive.get().filter(|_| is_moved) else {
            return Ok(Err(Stop::Damaged(absent)));
        };
        match archive.with(&Cell::folder(stream), answer.next()).await? {
            Ok(Some(segment)) => {
                let all = answer.unpack(segment.first, &segment.body);
                Ok(if all { Ok(()) } else { Err(Stop::Full) })
            }
            Ok(None) => {
                // An archive that is not there, or not ours, says nothing about the event.
                self.check_used_archive().await?;
                Ok(Err(Stop::Damaged(absent)))
            }
            Err(damage) => Ok(Err(Stop::Damaged(damage))),
        }
    }

    fn hint(&self, stream: &str, next: u64) -> Option<u64> {
        let hints = self.hints.lock().expect(POISONED);
        hints.get(stream).filter(|it| it.next <= next).map(|it| it.after)
    }

    fn set_hint(&self, stream: &Arc<str>, hint: Hint) {
        let mut hints = self.hints.lock().expect(POISONED);
        if HINTS_MAX <= hints.len() {
            hints.clear();
        }
        hints.insert(stream.clone(), hint);
    }
}
