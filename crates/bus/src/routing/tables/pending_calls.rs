//! Requests without a response. Recipients see ids of the bus, so equal ids of two senders do not
//! collide.

use super::super::ids::WorkerId;
use jackfield_hub::ConnId;
use jackfield_protocol::Frame;
use std::{collections::BTreeMap, sync::Arc};

/// A sender or recipient of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum CallPeer {
    Client(ConnId),
    Worker(WorkerId),
    /// The bus itself, for health checks.
    Bus,
}

/// The pending requests of all peers.
#[derive(Debug, Default)]
pub(in super::super) struct PendingCalls {
    /// By recipient and the bus's id.
    received: BTreeMap<(CallPeer, u64), PendingCall>,
    /// The recipients, by sender, the sender's id and the bus's id: a sender may use its own id
    /// twice. Without the health checks of the bus.
    sent: BTreeMap<(CallPeer, Arc<str>, u64), CallPeer>,
    /// The bus's id of the last request.
    last_id: u64,
}

/// A request that a peer must answer.
#[derive(Debug)]
pub(in super::super) struct PendingCall {
    pub(in super::super) caller: CallPeer,
    /// The sender's id, as JSON text.
    pub(in super::super) id: Arc<str>,
    /// What the response means to the bus.
    pub(in super::super) kind: CallKind,
    /// The `sessionId` beside `params` that was removed from the request.
    pub(in super::super) outer_id: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum CallKind {
    Plain,
    /// It opens a session whose id is not known yet.
    Opens,
    /// A successful response ends this session.
    Closes(Arc<str>),
}

impl PendingCalls {
    /// Adds a request and returns the bus's id for it.
    pub(in super::super) fn add_call(&mut self, callee: CallPeer, call: PendingCall) -> u64 {
        self.last_id += 1;
        let bus_id = self.last_id;
        if call.caller != CallPeer::Bus {
            self.sent.insert((call.caller, Arc::clone(&call.id), bus_id), callee);
        }
        self.received.insert((callee, bus_id), call);
        bus_id
    }

    /// Takes the request that the peer answers; `None` if it is not pending.
    pub(in super::super) fn take_answered(
        &mut self,
        callee: CallPeer,
        response: &Frame,
    ) -> Option<PendingCall> {
        let bus_id = response.id()?.parse().ok()?;
        self.take_received(callee, bus_id)
    }

    /// Takes the request that the peer was sent under this id of the bus.
    pub(in super::super) fn take_received(
        &mut self,
        callee: CallPeer,
        bus_id: u64,
    ) -> Option<PendingCall> {
        let call = self.received.remove(&(callee, bus_id))?;
        if call.caller != CallPeer::Bus {
            self.sent.remove(&(call.caller, Arc::clone(&call.id), bus_id));
        }
        Some(call)
    }

    /// Takes the oldest request that the peer must answer.
    pub(in super::super) fn take_next_received(&mut self, callee: CallPeer) -> Option<PendingCall> {
        let ((_, bus_id), _) = self.received_range(callee).next()?;
        let bus_id = *bus_id;
        self.take_received(callee, bus_id)
    }

    /// Takes the next request that the peer sent, with its recipient and the bus's id.
    pub(in super::super) fn take_next_sent(
        &mut self,
        caller: CallPeer,
    ) -> Option<(CallPeer, u64, PendingCall)> {
        let ((_, _, bus_id), callee) = self.sent_range(caller).next()?;
        let (bus_id, callee) = (*bus_id, *callee);
        let call = self.take_received(callee, bus_id)?;
        Some((callee, bus_id, call))
    }

    /// The recipient and the bus's id of the last request that the peer sent under this id.
    pub(in super::super) fn find_sent(
        &self,
        caller: CallPeer,
        id: &str,
    ) -> Option<(CallPeer, u64)> {
        let id: Arc<str> = id.into();
        let keys = (caller, Arc::clone(&id), 0)..=(caller, id, u64::MAX);
        let newest = self.sent.range(keys).next_back();
        newest.map(|((_, _, bus_id), callee)| (*callee, *bus_id))
    }

    /// The request that the peer must answer under this id of the bus.
    pub(in super::super) fn find_received(
        &self,
        callee: CallPeer,
        bus_id: u64,
    ) -> Option<&PendingCall> {
        self.received.get(&(callee, bus_id))
    }

    /// The requests that the peer must answer.
    pub(in super::super) fn received_by(
        &self,
        callee: CallPeer,
    ) -> impl Iterator<Item = &PendingCall> {
        self.received_range(callee).map(|(_, call)| call)
    }

    pub(in super::super) fn has_sent(&self, caller: CallPeer) -> bool {
        self.sent_range(caller).next().is_some()
    }

    /// The number of all requests without the health checks of the bus.
    pub(in super::super) fn pending_count(&self) -> usize {
        self.sent.len()
    }

    fn received_range(
        &self,
        callee: CallPeer,
    ) -> impl Iterator<Item = (&(CallPeer, u64), &PendingCall)> {
        self.received.range((callee, 0)..=(callee, u64::MAX))
    }

    fn sent_range(
        &self,
        caller: CallPeer,
    ) -> impl Iterator<Item = (&(CallPeer, Arc<str>, u64), &CallPeer)> {
        let first = (caller, Arc::default(), 0);
        self.sent.range(first..).take_while(move |((it, ..), _)| *it == caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: CallPeer = CallPeer::Client(ConnId(1));
    const WORKER: CallPeer = CallPeer::Worker(WorkerId(1));

    fn call(caller: CallPeer, id: &str) -> PendingCall {
        PendingCall { caller, id: id.into(), kind: CallKind::Plain, outer_id: None }
    }

    #[test]
    fn request_that_is_taken_is_pending_at_no_peer() {
        let mut calls = PendingCalls::default();
        let bus_id = calls.add_call(WORKER, call(CLIENT, "7"));
        assert_eq!(calls.find_sent(CLIENT, "7"), Some((WORKER, bus_id)));
        assert!(calls.take_received(CLIENT, bus_id).is_none(), "only its recipient can answer it");
        assert_eq!(*calls.take_received(WORKER, bus_id).unwrap().id, *"7");
        assert!(!calls.has_sent(CLIENT) && calls.take_received(WORKER, bus_id).is_none());
        assert_eq!((calls.pending_count(), calls.received_by(WORKER).count()), (0, 0));
    }

    #[test]
    fn sender_may_use_an_id_twice() {
        let mut calls = PendingCalls::default();
        let first = calls.add_call(WORKER, call(CLIENT, "7"));
        let second = calls.add_call(WORKER, call(CLIENT, "7"));
        assert_eq!(calls.find_sent(CLIENT, "7"), Some((WORKER, second)));
        calls.take_received(WORKER, second);
        assert_eq!(calls.find_sent(CLIENT, "7"), Some((WORKER, first)));
    }

    #[test]
    fn requests_of_one_peer_are_taken_one_after_the_other() {
        let mut calls = PendingCalls::default();
        let other = CallPeer::Client(ConnId(2));
        for caller in [CLIENT, other, CLIENT] {
            calls.add_call(WORKER, call(caller, "1"));
        }
        for _ in 0..2 {
            assert!(calls.take_next_sent(CLIENT).is_some_and(|(callee, ..)| callee == WORKER));
        }
        assert!(calls.take_next_sent(CLIENT).is_none());
        assert!(calls.take_next_received(WORKER).is_some_and(|it| it.caller == other));
    }

    #[test]
    fn health_checks_are_not_counted() {
        let mut calls = PendingCalls::default();
        let bus_id = calls.add_call(WORKER, call(CallPeer::Bus, "null"));
        assert_eq!((calls.pending_count(), calls.received_by(WORKER).count()), (0, 1));
        assert!(calls.take_received(WORKER, bus_id).is_some());
    }
}
