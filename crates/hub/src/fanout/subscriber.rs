//! How far one client has received the events of one session, and whether it is live or catches up.

use crate::{Seq, budget::ByteCharge};
use bytes::Bytes;
use jackfield_protocol::is_planted;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A read of the journal is pending. Live events are skipped, because the journal has them.
    CatchingUp,
    /// It has all durable events; new ones are sent at once.
    Live,
    /// Its outbox is full. It catches up when there is space again.
    Behind,
}

#[derive(Debug)]
pub(crate) struct EventSubscriber {
    pub(crate) heard: Seq,
    pub(crate) phase: Phase,
    /// It gets no requests.
    pub(crate) observer: bool,
    /// It gets events as the log has them, and nothing else of the session.
    pub(crate) facts: bool,
    /// It continues behind events that cannot be read.
    pub(crate) skips_damaged: bool,
    /// Turns that this client started, with the request ids that wait for them: it may have sent the same prompt more than
    /// once.
    pub(crate) owed: BTreeMap<u64, Vec<Box<str>>>,
    /// Messages that must not overtake the events before them.
    deferred: VecDeque<(Seq, Bytes, ByteCharge)>,
}

impl EventSubscriber {
    pub(crate) fn new(heard: Seq, phase: Phase) -> EventSubscriber {
        EventSubscriber {
            heard,
            phase,
            observer: false,
            facts: false,
            skips_damaged: false,
            owed: BTreeMap::new(),
            deferred: VecDeque::new(),
        }
    }

    /// Starts again at `from`, as after a second `session/load`. Events that it has not received yet are still delivered,
    /// because answers wait for them; so this never skips events.
    pub(crate) fn rewind(&mut self, from: Seq) {
        self.heard = if is_planted("skip-own-turn-end") { from } else { self.heard.min(from) };
    }

    /// Whether it waits for this read. Otherwise the result is outdated.
    pub(crate) fn awaits_read(&self, after: Seq) -> bool {
        self.phase == Phase::CatchingUp && (self.heard == after || is_planted("deliver-stale-read"))
    }

    /// Keeps a message until the client has received all events up to `seq`.
    pub(crate) fn defer(&mut self, seq: Seq, text: Bytes, charge: ByteCharge) {
        self.deferred.push_back((seq, text, charge));
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Messages that will not be delivered in order.
    pub(crate) fn into_deferred(self) -> impl Iterator<Item = Bytes> {
        self.deferred.into_iter().map(|(_, text, _)| text)
    }

    pub(crate) fn must_wait(&self, seq: Seq) -> bool {
        self.heard < seq || !self.deferred.is_empty()
    }

    pub(crate) fn next_due(&mut self) -> Option<Bytes> {
        let heard = self.heard;
        self.deferred.pop_front_if(|(seq, ..)| *seq <= heard).map(|(_, text, _)| text)
    }
}
