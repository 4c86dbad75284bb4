//! Requests of a client without a response.

use super::host_connection::HostConnection;
use crate::gateway::host_connection_id::HostConnectionId;
use jackfield_hub::{SessionId, Time};
use jackfield_protocol::{Frame, acp::Method};
use std::collections::BTreeMap;

/// Requests without a response, by the client's id.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    by_id: BTreeMap<Box<str>, PendingRequest>,
}

/// A request without a response. The frame is retained, to be sent again when its host is lost.
#[derive(Debug)]
pub(super) struct PendingRequest {
    frame: Frame,
    target: RequestTarget,
    /// The order of arrival.
    order: u64,
    /// The connection it was sent on, and the gateway's id for it.
    sent: Option<(HostConnectionId, u64)>,
    /// How often a host refused it.
    refusals: u32,
    /// The client cancelled it; the next host it is sent to receives a cancellation, too.
    is_cancelled: bool,
    /// Since when it waits for a responsive host, if one is chosen for it.
    waiting_since: Option<Time>,
}

/// Which host serves a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// The owner of this session.
    Session(SessionId),
    /// A host that is chosen for a new session.
    NewSession,
    DefaultHost,
    /// Every host that serves the client; the response of the default host is forwarded.
    Handshake,
    /// All hosts.
    AllHosts,
}

/// Requests in a session that were sent on a lost connection.
#[derive(Debug, Default)]
pub(super) struct UnansweredRequests {
    /// In the order of arrival.
    pub(super) repeatable: Vec<Box<str>>,
    /// They may have been executed and are not idempotent.
    pub(super) not_repeatable: Vec<Box<str>>,
}

impl PendingRequests {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<&PendingRequest> {
        self.by_id.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut PendingRequest> {
        self.by_id.get_mut(id)
    }

    pub(super) fn add_request(&mut self, id: &str, request: PendingRequest) {
        let known = self.by_id.insert(id.into(), request);
        assert!(known.is_none(), "`check_request` refuses an id that is in use");
    }

    pub(super) fn remove_request(&mut self, id: &str) -> Option<PendingRequest> {
        self.by_id.remove(id)
    }

    pub(super) fn ids(&self) -> Vec<Box<str>> {
        self.by_id.keys().cloned().collect()
    }

    pub(super) fn handshake_ids(&self) -> Vec<Box<str>> {
        let handshakes = self.by_id.iter().filter(|(_, it)| it.target == RequestTarget::Handshake);
        handshakes.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn has_request_in(&self, session: &SessionId) -> bool {
        self.by_id.values().any(|it| it.is_in(session))
    }

    /// Marks sent prompts as cancelled, so that they are cancelled again wherever they are sent
    /// again.
    pub(super) fn mark_prompts_cancelled(&mut self, session: &SessionId) {
        for request in self.by_id.values_mut().filter(|it| it.is_in(session)) {
            request.is_cancelled |=
                request.sent.is_some() && request.frame.is_method(Method::SessionPrompt);
        }
    }

    /// Marks the requests in a session that were sent to its lost owner as not sent, and returns
    /// them. `host_conn` is the connection to this owner, if it still exists.
    pub(super) fn take_sent_in(
        &mut self,
        session: &SessionId,
        mut host_conn: Option<&mut HostConnection>,
    ) -> UnansweredRequests {
        let mut not_repeatable = Vec::new();
        let mut repeatable = Vec::new();
        for (id, request) in self.by_id.iter_mut().filter(|(_, it)| it.is_in(session)) {
            let Some((_, host_request_id)) = request.sent.take() else { continue };
            // A late response is discarded. A request whose response has come was not executed.
            let is_undone = host_conn
                .as_deref_mut()
                .is_some_and(|it| it.take_sent_request(host_request_id).is_none());
            if !is_undone && request.frame.is_method(Method::SessionFork) {
                not_repeatable.push(id.clone());
            } else {
                repeatable.push((request.order, id.clone()));
            }
        }
        repeatable.sort_unstable();
        let repeatable = repeatable.into_iter().map(|(_, id)| id).collect();
        UnansweredRequests { repeatable, not_repeatable }
    }
}

impl PendingRequest {
    pub(super) fn new(frame: Frame, target: RequestTarget, order: u64) -> PendingRequest {
        PendingRequest {
            frame,
            target,
            order,
            sent: None,
            refusals: 0,
            is_cancelled: false,
            waiting_since: None,
        }
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(super) fn target(&self) -> &RequestTarget {
        &self.target
    }

    fn is_in(&self, session: &SessionId) -> bool {
        matches!(&self.target, RequestTarget::Session(of) if of == session)
    }

    pub(super) fn sent(&self) -> Option<(HostConnectionId, u64)> {
        self.sent
    }

    pub(super) fn set_sent(&mut self, host_conn: HostConnectionId, host_request_id: u64) {
        self.sent = Some((host_conn, host_request_id));
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    pub(super) fn set_cancelled(&mut self) {
        self.is_cancelled = true;
    }

    /// How often a host refused it.
    pub(super) fn refusals(&self) -> u32 {
        self.refusals
    }

    pub(super) fn count_refusal(&mut self) {
        self.refusals += 1;
    }

    pub(super) fn clear_sent(&mut self) {
        self.sent = None;
    }

    /// The connection that the request was sent on is lost. If the host was responsive, the wait
    /// for a host begins anew.
    pub(super) fn on_connection_lost(&mut self, host_was_responsive: bool) {
        self.sent = None;
        self.waiting_since.take_if(|_| host_was_responsive);
    }

    /// Since when the request waits for a host; from now on if it did not.
    pub(super) fn start_waiting(&mut self, now: Time) -> Time {
        *self.waiting_since.get_or_insert(now)
    }
}
