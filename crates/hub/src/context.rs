//! What every part of the hub uses: the configuration, the time of the current input, timers, outputs and byte
//! budgets.

use crate::{
    ByteLimits, Config, ConnId, Note, Output, SessionId, Time,
    budget::ByteBudget,
    id::SessionNames,
    key_index::KeyIndex,
    limits,
    log::Texts,
    message::HubMessage,
    timer::{HubTimer, Timers},
};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct HubContext {
    pub(crate) config: Config,
    /// The time of the current input. It never goes back.
    pub(crate) now: Time,
    pub(crate) timers: Timers<HubTimer>,
    pub(crate) outputs: VecDeque<Output>,
    /// What sessions ask of the collection of all sessions, in order.
    pub(crate) messages: VecDeque<HubMessage>,
    /// Bytes of messages that sessions, agents and clients retain.
    pub(crate) retained_bytes: ByteBudget,
    /// Bytes of events that are not durable yet, in all sessions.
    pub(crate) pending_bytes: ByteBudget,
    /// Bytes that were sent to clients and are not written yet.
    pub(crate) outbox_bytes: ByteBudget,
    pub(crate) session_names: SessionNames,
    /// Which session has which request key.
    pub(crate) key_index: KeyIndex,
    /// Texts that many sleeping sessions have in common.
    pub(crate) shared_texts: Texts,
    /// The hub was asked to stop.
    pub(crate) is_stopping: bool,
}

impl HubContext {
    /// Reads the events for a client again later, after a temporary error.
    pub(crate) fn schedule_read_retry(&mut self, session: SessionId, conn: ConnId) {
        self.timers.set(self.now.plus(limits::APPEND_RETRY_MS), HubTimer::ReadRetry(session, conn));
    }

    pub(crate) fn new(config: Config, now: Time) -> HubContext {
        let limits = config.limits;
        let pending =
            ByteLimits { own_max: usize::MAX, own_min: 0, all_max: limits.held_bytes_all_max };
        let outboxes = ByteLimits {
            own_max: usize::MAX,
            own_min: limits::OUTBOX_BYTES_MIN.min(limits.outbox_bytes_low),
            all_max: limits.outbox_bytes_all_max,
        };
        HubContext {
            now,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            messages: VecDeque::new(),
            retained_bytes: ByteBudget::new(limits.kept),
            pending_bytes: ByteBudget::new(pending),
            outbox_bytes: ByteBudget::new(outboxes),
            session_names: SessionNames::new(config.seed),
            key_index: KeyIndex::default(),
            shared_texts: Texts::default(),
            is_stopping: false,
            config,
        }
    }

    /// Asks something of the collection of all sessions.
    pub(crate) fn post(&mut self, message: HubMessage) {
        self.messages.push_back(message);
    }

    /// Reports something to the operator.
    pub(crate) fn note(&mut self, note: Note) {
        self.outputs.push_back(Output::Note(note));
    }
}
