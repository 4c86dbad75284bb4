//! Updates a client's sessions from the frames of hosts.

use super::{
    Gateway, HostConnectionId,
    replay_position::{ReplayPosition, log_head},
    session::{ATTACH_METHODS, AttachOptions, ClientSession, parse_attach_options},
};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::{Frame, acp::Method};

impl Gateway {
    /// Updates the sessions of a client from a response: the client is attached to a session that
    /// was opened or loaded.
    pub(super) fn apply_response(
        &mut self,
        conn: ConnId,
        host_conn: HostConnectionId,
        request: &Frame,
        answer: &Frame,
    ) {
        let method = request.known_method();
        let session = request.session_id().map(|it| SessionId::from(&*it));
        let client = self.clients.get_mut(&conn).expect("its host connection sent a frame");
        if let Some(it) = session.as_ref().and_then(|it| client.sessions.get_mut(it)) {
            it.unserved_since = None;
            if method.is_some_and(|it| ATTACH_METHODS.contains(&it)) {
                it.position.complete_replay(log_head(answer));
            }
        }
        self.update_placed(conn, request, answer);
        if answer.result().is_none() {
            return;
        }
        match (method, session) {
            (Some(Method::SessionNew | Method::SessionFork | Method::ControlImport), _) => {
                let Some(named) = answer.session_id().map(|it| SessionId::from(&*it)) else {
                    return;
                };
                let it = self.session_entry(conn, &named);
                if method == Some(Method::ControlImport) {
                    (it.host_conn, it.is_importing) = (Some(host_conn), true);
                } else if it.attached.is_none() {
                    let from =
                        log_head(answer).or((method == Some(Method::SessionNew)).then_some(0));
                    it.position = from.map_or_else(ReplayPosition::default, ReplayPosition::up_to);
                    (it.host_conn, it.attached) = (Some(host_conn), Some(AttachOptions::default()));
                }
            }
            (Some(Method::SessionDelete), Some(session)) => {
                let client = self.clients.get_mut(&conn).expect("its host connection sent a frame");
                if let Some(it) = client.sessions.get_mut(&session) {
                    (it.attached, it.is_importing) = (None, false);
                }
            }
            (Some(method), Some(session)) if ATTACH_METHODS.contains(&method) => {
                self.session_entry(conn, &session).attached = Some(parse_attach_options(request));
            }
            _ => {}
        }
    }

    pub(super) fn on_reattach_complete(&mut self, conn: ConnId, session: &SessionId, head: u64) {
        let it = self.session_entry(conn, session);
        it.unserved_since = None;
        it.position.complete_replay(Some(head));
    }

    /// Whether this connection serves the session for this client.
    pub(super) fn is_bound_to(
        &self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) -> bool {
        let it = self.clients.get(&conn).and_then(|it| it.sessions.get(session));
        it.is_some_and(|it| it.host_conn == Some(host_conn))
    }

    /// A frame of a session arrived on this connection. Returns whether the client has not received
    /// it yet.
    pub(super) fn should_deliver(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
        seq: Option<u64>,
    ) -> bool {
        let client = self.clients.get_mut(&conn).expect("its host connection sent a frame");
        let Some(it) = client.sessions.get_mut(session) else {
            // The frame precedes the response that names the session.
            if let Some(seq) = seq {
                let mut position = ReplayPosition::up_to(0);
                position.accept_frame(seq);
                let attached = Some(AttachOptions::default());
                let entry = ClientSession {
                    host_conn: Some(host_conn),
                    attached,
                    position,
                    ..ClientSession::default()
                };
                client.sessions.insert(session.clone(), entry);
            }
            return true;
        };
        if it.host_conn != Some(host_conn) {
            return false;
        }
        it.unserved_since = None;
        let Some(seq) = seq else { return true };
        it.attached.get_or_insert_default();
        it.position.accept_frame(seq)
    }
}
