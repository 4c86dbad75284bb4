//! What hosts ask clients. Two hosts may use the same id: clients see ids of ours.

use super::{Gateway, HostConnectionId, host_connection::Call};
use jackfield_hub::{ConnId, SessionId, cancel_notice};
use jackfield_protocol::{
    Fault, Frame, Splice,
    acp::{Audience, Method},
    is_planted,
};

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) host_conn: HostConnectionId,
    /// The host's id for it, as JSON text.
    id: Box<str>,
    pub(super) session: Option<SessionId>,
    method: Box<str>,
    /// Nobody else is asked.
    passing: bool,
}

impl Gateway {
    pub(super) fn ask_client(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let it = &self.host_conns[&host_conn];
        let conn = it.conn;
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        if let Some(session) = &session
            && client.sessions.get(session).is_some_and(|it| it.host_conn != Some(host_conn))
        {
            // The session has moved since: its owner asks again.
            self.counters.stray += 1;
            return;
        }
        let method = frame.method().expect("a request has a method");
        let everyone =
            Method::from_name(&method).is_some_and(|it| it.row().audience == Audience::Everyone);
        let id = frame.id().expect("a request has an id");
        if client.finished || client.closing {
            if everyone {
                // Somebody else may answer it.
                self.counters.stray += 1;
            } else {
                self.refuse(host_conn, id);
            }
            return;
        }
        // It may be about a request instead of a session.
        let about = frame.request_id().and_then(|it| it.parse().ok());
        let about = about.and_then(|it: u64| match self.host_conns[&host_conn].calls.get(&it) {
            Some(Call::Client(id)) => Some(id.clone()),
            _ => None,
        });
        client.next_ask += 1;
        let is_kept = is_planted("gateway-keeps-host-request-id");
        let ours = if is_kept { id.parse().unwrap_or_default() } else { client.next_ask };
        let method = (&*method).into();
        let asked = Asked { host_conn, id: id.into(), session, method, passing: !everyone };
        client.asked.insert(ours, asked);
        let ours = ours.to_string();
        let splice = Splice { id: Some(&ours), request_id: about.as_deref(), ..Splice::default() };
        self.tell_client(conn, frame.spliced(splice).into_bytes(), Some(host_conn));
    }

    /// A client answers what it was asked: by the way it came.
    pub(super) fn on_client_answers(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        let ours = frame.id().and_then(|it| it.parse::<u64>().ok());
        match ours.and_then(|it| client.asked.remove(&it)) {
            Some(Asked { host_conn, id, session, method, passing }) => {
                if !passing {
                    self.on_chosen(conn, &method, session, frame);
                }
                self.send_to_host(host_conn, frame.with_id(&id).into_bytes());
            }
            None => self.counters.stray += 1,
        }
    }

    /// A host takes back what it asked.
    pub(super) fn on_ask_withdrawn(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let conn = self.host_conns[&host_conn].conn;
        let Some(id) = frame.request_id() else { return };
        self.withdraw_asks(conn, |it| it.host_conn == host_conn && *it.id == *id);
    }

    /// Tells the client that it need not answer these any more.
    pub(super) fn withdraw_asks(&mut self, conn: ConnId, which: impl Fn(&Asked) -> bool) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let taken = client.asked.extract_if(.., |_, it| which(it));
        for (ours, asked) in taken.collect::<Vec<_>>() {
            self.tell_client(conn, cancel_notice(ours), Some(asked.host_conn));
        }
    }

    /// The client can answer nothing any more: who asked nobody else is told.
    pub(super) fn refuse_passing(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let asked = std::mem::take(&mut client.asked);
        for it in asked.into_values().filter(|it| it.passing) {
            self.refuse(it.host_conn, &it.id);
        }
    }

    fn refuse(&mut self, host_conn: HostConnectionId, id: &str) {
        let fault = Fault::NoClient { why: "the one that was asked is gone".to_owned() };
        self.send_to_host(host_conn, Frame::error_for(id, &fault).into_bytes());
    }
}
