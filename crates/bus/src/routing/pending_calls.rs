//! Requests without a response. Recipients see ids of the bus, so equal ids of two senders do not
//! collide.

use super::WorkerId;
use jackfield_hub::ConnId;
use std::{collections::BTreeMap, sync::Arc};

/// A sender or recipient of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPeer {
    Client(ConnId),
    Worker(WorkerId),
    /// The bus itself, for health checks.
    Bus,
}

/// The pending requests of one peer. Each request is listed at its sender and at its recipient.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    /// Requests that the peer sent, by its own id and the bus's id: it may use its own id twice.
    sent: BTreeMap<(Arc<str>, u64), CallPeer>,
    /// Requests that the peer must answer, by the bus's id.
    received: BTreeMap<u64, PendingCall>,
}

/// A request that a peer must answer.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) caller: CallPeer,
    /// The sender's id, as JSON text.
    pub(super) id: Arc<str>,
    /// What the response means to the bus.
    pub(super) kind: CallKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallKind {
    Plain,
    /// It opens a session whose id is not known yet.
    Opens,
    /// A successful response ends this session.
    Closes(Arc<str>),
}

impl PendingCalls {
    pub(super) fn add_sent(&mut self, id: Arc<str>, callee: CallPeer, bus_id: u64) {
        self.sent.insert((id, bus_id), callee);
    }

    pub(super) fn add_received(&mut self, bus_id: u64, call: PendingCall) {
        self.received.insert(bus_id, call);
    }

    /// Takes the request that the peer answers; `None` if it is not pending.
    pub(super) fn take_received(&mut self, bus_id: u64) -> Option<PendingCall> {
        self.received.remove(&bus_id)
    }

    /// The request was answered, or will not be.
    pub(super) fn remove_sent(&mut self, id: &Arc<str>, bus_id: u64) {
        self.sent.remove(&(Arc::clone(id), bus_id));
    }

    /// The recipient and the bus's id of the last request that the peer sent under this id.
    pub(super) fn find_sent(&self, id: &str) -> Option<(CallPeer, u64)> {
        let id: Arc<str> = id.into();
        let newest = self.sent.range((Arc::clone(&id), 0)..=(id, u64::MAX)).next_back();
        newest.map(|((_, bus_id), callee)| (*callee, *bus_id))
    }

    /// The request that the peer must answer under this id of the bus.
    pub(super) fn get_received(&self, bus_id: u64) -> Option<&PendingCall> {
        self.received.get(&bus_id)
    }

    pub(super) fn received_count(&self) -> usize {
        self.received.len()
    }

    /// Whether the peer must answer a request of a matching sender.
    pub(super) fn has_received_from(&self, is_match: impl Fn(CallPeer) -> bool) -> bool {
        self.received.values().any(|it| is_match(it.caller))
    }

    pub(super) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    pub(super) fn take_all_received(&mut self) -> BTreeMap<u64, PendingCall> {
        std::mem::take(&mut self.received)
    }

    pub(super) fn take_all_sent(&mut self) -> BTreeMap<(Arc<str>, u64), CallPeer> {
        std::mem::take(&mut self.sent)
    }
}
