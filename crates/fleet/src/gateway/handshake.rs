//! The handshake of a client, `_jackfield/connect` and `initialize`. The gateway sends it on each
//! host connection and forwards the responses of the default host.

use super::{Gateway, HostConnectionId, client::RequestTarget, host_connection::SentRequest};
use jackfield_hub::ConnId;
use jackfield_protocol::{Frame, Kind};

/// The handshake of a client.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// The frames, by `CONNECT` and `INITIALIZE`.
    pub(super) frames: [Option<Frame>; 2],
    /// The client's ids of the frames that are not answered.
    pending_ids: [Option<Box<str>>; 2],
    /// The client has opened a session: the next one need not be on the default host.
    pub(super) has_opened_session: bool,
}

/// The handshake on one host connection.
#[derive(Debug, Default)]
pub(super) struct HandshakeProgress {
    sent: [bool; 2],
    responses: [Option<Frame>; 2],
    /// The host must receive the handshake: the connection carries more than requests to all hosts.
    is_required: bool,
}

impl Handshake {
    pub(super) const CONNECT: usize = 0;
    pub(super) const INITIALIZE: usize = 1;

    /// The client may use this id again.
    pub(super) fn release_id(&mut self, id: &str) {
        for pending in &mut self.pending_ids {
            pending.take_if(|it| **it == *id);
        }
    }
}

impl Gateway {
    /// Whether an `initialize` is the first one. The hub refuses any other.
    pub(super) fn is_first_initialize(&self, conn: ConnId) -> bool {
        let client = &self.clients[&conn];
        client.default_host_conn.is_none()
            || client.handshake.frames[Handshake::INITIALIZE].is_none()
    }

    pub(super) fn on_handshake(&mut self, conn: ConnId, frame: &Frame, which: usize) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        client.handshake.frames[which] = Some(frame.clone());
        let host_conns: Vec<HostConnectionId> = client.host_conns.values().copied().collect();
        let id = frame.id().filter(|_| frame.kind() == Kind::Request);
        if let Some(id) = id {
            client.handshake.pending_ids[which] = Some(id.into());
            self.register_request(conn, frame.clone(), RequestTarget::Handshake);
        }
        for host_conn in host_conns {
            let it = &mut self
                .host_conns
                .get_mut(&host_conn)
                .expect("a client's host connection")
                .handshake;
            (it.sent[which], it.responses[which]) = (false, None);
            if it.is_required {
                self.send_handshake(host_conn);
            }
        }
        if let Some(id) = id {
            self.place_request(conn, id);
        }
    }

    /// Sends the frames of the client's handshake that this connection has not sent yet.
    pub(super) fn send_handshake(&mut self, host_conn: HostConnectionId) {
        let it = self.host_conns.get_mut(&host_conn).expect("the caller found it");
        it.handshake.is_required = true;
        let client = &self.clients[&it.conn];
        // A hub starts an agent when `connect` precedes `initialize`. Only the default host should.
        let mut order = [Handshake::INITIALIZE, Handshake::CONNECT];
        if client.default_host_conn == Some(host_conn) {
            order.reverse();
        }
        let frames = client.handshake.frames.clone();
        for which in order {
            let it = self.host_conns.get_mut(&host_conn).expect("found above");
            let Some(frame) = &frames[which] else { continue };
            if std::mem::replace(&mut it.handshake.sent[which], true) {
                continue;
            }
            let text = match frame.kind() {
                Kind::Request => {
                    self.add_sent_request(host_conn, SentRequest::Handshake(which), frame)
                }
                _ => frame.bytes().clone(),
            };
            self.send_to_host(host_conn, text);
        }
    }

    pub(super) fn on_handshake_response(
        &mut self,
        host_conn: HostConnectionId,
        which: usize,
        answer: &Frame,
    ) {
        let it = self.host_conns.get_mut(&host_conn).expect("it sent a frame");
        it.handshake.responses[which] = Some(answer.clone());
        let conn = it.conn;
        self.answer_handshake(conn);
    }

    /// Forwards the responses of the default host to the client.
    pub(super) fn answer_handshake(&mut self, conn: ConnId) {
        for which in [Handshake::CONNECT, Handshake::INITIALIZE] {
            let Some(client) = self.clients.get_mut(&conn) else { return };
            let Some(default_host_conn) = client.default_host_conn else { return };
            let Some(response) = &self.host_conns[&default_host_conn].handshake.responses[which]
            else {
                continue;
            };
            let Some(id) = &client.handshake.pending_ids[which] else { continue };
            let answer = response.with_id(id);
            self.send_response(conn, &answer, Some(default_host_conn));
        }
    }
}
