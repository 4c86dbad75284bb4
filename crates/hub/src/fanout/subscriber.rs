//! How far one client has read one session, and whether it reads live or catches up.

use crate::{Seq, budget::ByteCharge};
use bytes::Bytes;
use jackfield_protocol::is_planted;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A journal read is under way; live events are skipped, the journal has them.
    CatchingUp,
    /// Everything durable has been sent; new events go straight through.
    Live,
    /// Its outbox is full. When there is room again it catches up.
    Behind,
}

#[derive(Debug)]
pub(crate) struct EventSubscriber {
    pub(crate) heard: Seq,
    pub(crate) phase: Phase,
    /// Looks on only: is not asked anything.
    pub(crate) observer: bool,
    /// Hears every event as the log has it, and nothing else of the session.
    pub(crate) facts: bool,
    /// Wants to hear on behind an event that the journal cannot give back.
    pub(crate) skips_damaged: bool,
    /// Turns this client began, and the request ids under which it waits for each: it may have said
    /// the same prompt more than once.
    pub(crate) owed: BTreeMap<u64, Vec<Box<str>>>,
    /// Answers that must not overtake the events before them.
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

    /// Starts over at `from`, as after a second `session/load`. What it has not heard yet it still
    /// hears, because what is owed to it comes with that; so this never goes forward.
    pub(crate) fn rewind(&mut self, from: Seq) {
        self.heard = if is_planted("skip-own-turn-end") { from } else { self.heard.min(from) };
    }

    /// Whether it waits for a read after `after`; if not, that is the answer to an older read.
    pub(crate) fn awaits_read(&self, after: Seq) -> bool {
        self.phase == Phase::CatchingUp && (self.heard == after || is_planted("deliver-stale-read"))
    }

    /// Keeps a message until the client has heard everything up to `seq`.
    pub(crate) fn defer(&mut self, seq: Seq, text: Bytes, charge: ByteCharge) {
        self.deferred.push_back((seq, text, charge));
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// What it will never hear in its place.
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
