//! Who waits for whom. A client that does not read is not read, and neither are its legs; a host that
//! does not read slows those who speak to it. Legs have one client each, so nobody else waits.

use super::{Gateway, GatewayOutput, LegId};
use crate::ConnId;
use bytes::Bytes;
use jackfield_wire::Frame;

impl Gateway {
    /// Something of our own.
    pub(super) fn say(&mut self, conn: ConnId, frame: &Frame) {
        self.tell_client(conn, frame.bytes().clone(), None);
    }

    pub(super) fn tell_client(&mut self, conn: ConnId, text: Bytes, from: Option<LegId>) {
        let Some(client) = self.clients.get_mut(&conn).filter(|it| !it.closing) else { return };
        self.counters.sent(text.len());
        client.unwritten += text.len();
        let over = self.config.limits.outbox_bytes_max < client.unwritten;
        self.outputs.push_back(GatewayOutput::ToClient { conn, text });
        if over
            && let Some(leg) = from
            && let Some(it) = self.legs.get_mut(&leg).filter(|it| !it.paused)
        {
            it.paused = true;
            self.outputs.push_back(GatewayOutput::PauseLeg { leg });
        }
        self.pace(conn);
    }

    pub(super) fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.unwritten = client.unwritten.saturating_sub(bytes);
        if client.unwritten <= self.config.limits.outbox_bytes_max / 2 {
            for leg in client.legs.values() {
                let it = self.legs.get_mut(leg).expect("a client's leg");
                if std::mem::take(&mut it.paused) {
                    self.outputs.push_back(GatewayOutput::ResumeLeg { leg: *leg });
                }
            }
        }
        self.resume_readings(conn);
        self.pace(conn);
    }

    pub(super) fn tell_leg(&mut self, leg: LegId, text: Bytes) {
        let Some(it) = self.legs.get_mut(&leg) else { return };
        self.counters.sent(text.len());
        it.unwritten += text.len();
        let conn = it.conn;
        let client = self.clients.get_mut(&conn).expect("a leg has a client");
        client.untaken += text.len();
        self.outputs.push_back(GatewayOutput::ToLeg { leg, text });
        self.pace(conn);
    }

    pub(super) fn on_leg_wrote(&mut self, leg: LegId, bytes: usize) {
        let Some(it) = self.legs.get_mut(&leg) else { return };
        let taken = bytes.min(it.unwritten);
        it.unwritten -= taken;
        let conn = it.conn;
        self.clients.get_mut(&conn).expect("a leg has a client").untaken -= taken;
        self.pace(conn);
    }

    /// Whether this client is read, by what it has not taken and what was not taken of it.
    pub(super) fn pace(&mut self, conn: ConnId) {
        let (half, most) =
            (self.config.limits.outbox_bytes_max / 2, self.config.limits.untaken_bytes_max);
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let over = half < client.unwritten || most < client.untaken;
        let eased = client.unwritten <= half / 2 && client.untaken <= most / 2;
        if !client.paused && over {
            client.paused = true;
            self.outputs.push_back(GatewayOutput::PauseClient { conn });
        } else if client.paused && eased {
            client.paused = false;
            self.outputs.push_back(GatewayOutput::ResumeClient { conn });
        }
    }
}
