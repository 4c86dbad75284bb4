//! Who waits for whom. A client that does not read is not read, and neither are its host connections; a host that
//! does not read slows those who speak to it. Host connections have one client each, so nobody else waits.

use super::{Gateway, GatewayOutput, HostConnectionId};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::{Frame, is_planted};

impl Gateway {
    /// Something of our own.
    pub(super) fn say(&mut self, conn: ConnId, frame: &Frame) {
        self.tell_client(conn, frame.bytes().clone(), None);
    }

    pub(super) fn tell_client(
        &mut self,
        conn: ConnId,
        text: Bytes,
        from: Option<HostConnectionId>,
    ) {
        let Some(client) = self.clients.get_mut(&conn).filter(|it| !it.closing) else { return };
        self.counters.sent(text.len());
        client.unwritten += text.len();
        let over = self.config.limits.outbox_bytes_max < client.unwritten;
        self.outputs.push_back(GatewayOutput::ToClient { conn, text });
        if over
            && let Some(host_conn) = from
            && let Some(it) = self.host_conns.get_mut(&host_conn).filter(|it| !it.paused)
        {
            it.paused = true;
            self.outputs.push_back(GatewayOutput::PauseHostConnection { host_conn });
        }
        self.pace(conn);
    }

    pub(super) fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.unwritten = client.unwritten.saturating_sub(bytes);
        if client.unwritten <= self.config.limits.outbox_bytes_max / 2 {
            for host_conn in client.host_conns.values() {
                let it = self.host_conns.get_mut(host_conn).expect("a client's host connection");
                if std::mem::take(&mut it.paused) && !is_planted("gateway-never-resumes-reading") {
                    self.outputs
                        .push_back(GatewayOutput::ResumeHostConnection { host_conn: *host_conn });
                }
            }
        }
        self.resume_readings(conn);
        self.pace(conn);
    }

    pub(super) fn send_to_host(&mut self, host_conn: HostConnectionId, text: Bytes) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
        self.counters.sent(text.len());
        it.unwritten += text.len();
        let conn = it.conn;
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        client.untaken += text.len();
        self.outputs.push_back(GatewayOutput::ToHost { host_conn, text });
        self.pace(conn);
    }

    pub(super) fn on_host_conn_wrote(&mut self, host_conn: HostConnectionId, bytes: usize) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
        let taken = bytes.min(it.unwritten);
        it.unwritten -= taken;
        let conn = it.conn;
        self.clients.get_mut(&conn).expect("a host connection has a client").untaken -= taken;
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
