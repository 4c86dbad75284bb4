//! The sessions that a client uses.

use super::{pending_requests::PendingRequests, session::ClientSession};
use crate::gateway::{
    frame_fields::{AttachOptions, session_of},
    host_connection_id::HostConnectionId,
};
use jackfield_hub::SessionId;
use jackfield_hub_client::log_head;
use jackfield_protocol::{Fault, Frame, acp::Method};
use std::collections::BTreeMap;

/// Methods that attach the client to an existing session.
const ATTACH_METHODS: [Method; 3] =
    [Method::SessionLoad, Method::SessionResume, Method::ControlAttach];

#[derive(Debug, Default)]
pub(super) struct ClientSessions {
    by_id: BTreeMap<SessionId, ClientSession>,
}

impl ClientSessions {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.by_id.contains_key(session)
    }

    pub(super) fn get(&self, session: &SessionId) -> Option<&ClientSession> {
        self.by_id.get(session)
    }

    pub(super) fn get_mut(&mut self, session: &SessionId) -> Option<&mut ClientSession> {
        self.by_id.get_mut(session)
    }

    /// A session whose owner is not known.
    pub(super) fn get_unbound(&mut self, session: &SessionId) -> Option<&mut ClientSession> {
        self.by_id.get_mut(session).filter(|it| it.host_conn().is_none())
    }

    /// The session, which is added if the client did not use it.
    pub(super) fn get_or_add(&mut self, session: &SessionId) -> &mut ClientSession {
        self.by_id.entry(session.clone()).or_default()
    }

    pub(super) fn remove(&mut self, session: &SessionId) {
        self.by_id.remove(session);
    }

    pub(super) fn clear(&mut self) {
        self.by_id.clear();
    }

    /// The sessions that this connection serves.
    pub(super) fn bound_to(&self, host_conn: HostConnectionId) -> Vec<SessionId> {
        let bound = self.by_id.iter().filter(|(_, it)| it.host_conn() == Some(host_conn));
        bound.map(|(id, _)| id.clone()).collect()
    }

    /// The session, if this connection serves it.
    pub(super) fn get_bound(
        &mut self,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) -> Option<&mut ClientSession> {
        self.by_id.get_mut(session).filter(|it| it.host_conn() == Some(host_conn))
    }

    pub(super) fn check_waiting_limit(
        &self,
        session: &SessionId,
        waiting_max: usize,
    ) -> Result<(), Fault> {
        let waiting = self.by_id.get(session).map_or(0, ClientSession::waiting_count);
        if waiting < waiting_max {
            return Ok(());
        }
        let what = format!(
            "{waiting} messages wait for the owner of session `{session}`, which is the limit"
        );
        Err(Fault::Overloaded { what })
    }

    /// Removes a session without subscription and pending requests; its owner is searched again on
    /// the next use.
    pub(super) fn remove_unused(&mut self, session: &SessionId, requests: &PendingRequests) {
        let is_unused = self.by_id.get(session).is_some_and(ClientSession::is_unused);
        if is_unused && !requests.has_request_in(session) {
            self.by_id.remove(session);
        }
    }

    /// A frame of a session arrived on this connection. Returns whether the client has not received
    /// it yet.
    pub(super) fn accept_frame(
        &mut self,
        session: &SessionId,
        host_conn: HostConnectionId,
        seq: Option<u64>,
    ) -> bool {
        let Some(it) = self.by_id.get_mut(session) else {
            // The frame precedes the response that names the session.
            if let Some(seq) = seq {
                let added = ClientSession::from_first_frame(host_conn, seq);
                self.by_id.insert(session.clone(), added);
            }
            return true;
        };
        it.host_conn() == Some(host_conn) && it.accept_frame(seq)
    }

    /// Applies a response: the client is attached to a session that was opened or loaded.
    pub(super) fn apply_response(
        &mut self,
        host_conn: HostConnectionId,
        request: &Frame,
        answer: &Frame,
    ) {
        let (method, session) = (request.known_method(), session_of(request));
        if let Some(it) = session.as_ref().and_then(|it| self.by_id.get_mut(it)) {
            it.mark_served();
            if method.is_some_and(|it| ATTACH_METHODS.contains(&it)) {
                it.on_attach_response(answer);
            }
        }
        if answer.result().is_none() {
            return;
        }
        match (method, session) {
            (Some(Method::ControlImport), _) => {
                if let Some(named) = session_of(answer) {
                    self.get_or_add(&named).start_import(host_conn);
                }
            }
            (Some(method @ (Method::SessionNew | Method::SessionFork)), _) => {
                if let Some(named) = session_of(answer) {
                    let head = log_head(answer).or((method == Method::SessionNew).then_some(0));
                    self.get_or_add(&named).on_opened(host_conn, head);
                }
            }
            (Some(Method::SessionDelete), Some(session)) => {
                if let Some(it) = self.by_id.get_mut(&session) {
                    it.on_deleted();
                }
            }
            (Some(method), Some(session)) if ATTACH_METHODS.contains(&method) => {
                self.get_or_add(&session).set_attached(AttachOptions::parse(request));
            }
            _ => {}
        }
    }
}
