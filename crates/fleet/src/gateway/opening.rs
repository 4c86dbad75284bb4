//! What a client begins with, `_jackfield/connect` and `initialize`: it is said again on each of its
//! host connections, and the answers from home are the client's.

use super::{Gateway, HostConnectionId, client::To, host_connection::Call};
use jackfield_hub::ConnId;
use jackfield_protocol::{Frame, Kind};

#[derive(Debug, Default)]
pub(super) struct Opening {
    /// By which of the two.
    pub(super) frames: [Option<Frame>; 2],
    /// The client's id for it, while it has no answer.
    asked: [Option<Box<str>>; 2],
    /// A session was opened for it already: the next one need not be at home.
    pub(super) settled: bool,
}

/// How far a host connection is with it.
#[derive(Debug, Default)]
pub(super) struct Introduced {
    said: [bool; 2],
    told: [Option<Frame>; 2],
    /// Hears what the client says to begin with: it carries more than questions for every host.
    used: bool,
}

impl Opening {
    pub(super) const CONNECT: usize = 0;
    pub(super) const HELLO: usize = 1;

    /// The client may use this id for something else now.
    pub(super) fn answered(&mut self, id: &str) {
        for asked in &mut self.asked {
            asked.take_if(|it| **it == *id);
        }
    }
}

impl Gateway {
    /// Whether an `initialize` is the first. Any other is the hub's to refuse.
    pub(super) fn begins(&self, conn: ConnId) -> bool {
        let client = &self.clients[&conn];
        client.home.is_none() || client.opening.frames[Opening::HELLO].is_none()
    }

    pub(super) fn on_opening(&mut self, conn: ConnId, frame: &Frame, which: usize) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        client.opening.frames[which] = Some(frame.clone());
        let host_conns: Vec<HostConnectionId> = client.host_conns.values().copied().collect();
        let id = frame.id().filter(|_| frame.kind() == Kind::Request);
        if let Some(id) = id {
            client.opening.asked[which] = Some(id.into());
            self.begin(conn, frame.clone(), To::Opening);
        }
        for host_conn in host_conns {
            let it = &mut self
                .host_conns
                .get_mut(&host_conn)
                .expect("a client's host connection")
                .introduced;
            (it.said[which], it.told[which]) = (false, None);
            if it.used {
                self.introduce(host_conn);
            }
        }
        if let Some(id) = id {
            self.place(conn, id);
        }
    }

    /// Says on a host connection what its client has begun with, as far as it does not know.
    pub(super) fn introduce(&mut self, host_conn: HostConnectionId) {
        let it = self.host_conns.get_mut(&host_conn).expect("the caller found it");
        it.introduced.used = true;
        let client = &self.clients[&it.conn];
        // A hub starts an agent for a client that says first which one it wants. One is enough.
        let mut order = [Opening::HELLO, Opening::CONNECT];
        if client.home == Some(host_conn) {
            order.reverse();
        }
        let frames = client.opening.frames.clone();
        for which in order {
            let it = self.host_conns.get_mut(&host_conn).expect("found above");
            let Some(frame) = &frames[which] else { continue };
            if std::mem::replace(&mut it.introduced.said[which], true) {
                continue;
            }
            let text = match frame.kind() {
                Kind::Request => self.call(host_conn, Call::Opening(which), frame),
                _ => frame.bytes().clone(),
            };
            self.send_to_host(host_conn, text);
        }
    }

    pub(super) fn on_introduced(
        &mut self,
        host_conn: HostConnectionId,
        which: usize,
        answer: &Frame,
    ) {
        let it = self.host_conns.get_mut(&host_conn).expect("it spoke");
        it.introduced.told[which] = Some(answer.clone());
        let conn = it.conn;
        self.settle_opening(conn);
    }

    /// Answers the client with what home has said.
    pub(super) fn settle_opening(&mut self, conn: ConnId) {
        for which in [Opening::CONNECT, Opening::HELLO] {
            let Some(client) = self.clients.get_mut(&conn) else { return };
            let Some(home) = client.home else { return };
            let Some(told) = &self.host_conns[&home].introduced.told[which] else { continue };
            let Some(id) = &client.opening.asked[which] else { continue };
            let answer = told.with_id(id);
            self.finish(conn, &answer, Some(home));
        }
    }
}
