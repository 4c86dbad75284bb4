//! Flow control. A client that does not read is not read, and neither are its host connections. A
//! host that does not read slows its clients. Each host connection has one client, so no other
//! client is affected.

use super::{Gateway, GatewayOutput, HostConnectionId};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::{Frame, is_planted};

impl Gateway {
    /// Sends a frame that the gateway created.
    pub(super) fn send_own_frame(&mut self, conn: ConnId, frame: &Frame) {
        self.send_to_client(conn, frame.bytes().clone(), None);
    }

    pub(super) fn send_to_client(
        &mut self,
        conn: ConnId,
        text: Bytes,
        from: Option<HostConnectionId>,
    ) {
        let Some(client) = self.clients.get_mut(&conn).filter(|it| !it.closing) else { return };
        self.counters.count_sent(text.len());
        client.unwritten += text.len();
        let is_over = self.config.limits.outbox_bytes_max < client.unwritten;
        self.outputs.push_back(GatewayOutput::SendToClient { conn, text });
        if is_over
            && let Some(host_conn) = from
            && let Some(it) = self.host_conns.get_mut(&host_conn).filter(|it| !it.paused)
        {
            it.paused = true;
            self.outputs.push_back(GatewayOutput::PauseHostConnection { host_conn });
        }
        self.update_client_pause(conn);
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
        self.update_client_pause(conn);
    }

    pub(super) fn send_to_host(&mut self, host_conn: HostConnectionId, text: Bytes) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
        self.counters.count_sent(text.len());
        it.unwritten += text.len();
        let conn = it.conn;
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        client.unwritten_to_hosts += text.len();
        self.outputs.push_back(GatewayOutput::SendToHost { host_conn, text });
        self.update_client_pause(conn);
    }

    pub(super) fn on_host_conn_wrote(&mut self, host_conn: HostConnectionId, bytes: usize) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else { return };
        let written = bytes.min(it.unwritten);
        it.unwritten -= written;
        let conn = it.conn;
        self.clients.get_mut(&conn).expect("a host connection has a client").unwritten_to_hosts -=
            written;
        self.update_client_pause(conn);
    }

    /// Pauses or resumes reading the client, by the bytes that are not yet written to it and to its
    /// hosts.
    pub(super) fn update_client_pause(&mut self, conn: ConnId) {
        let (outbox_threshold, unsent_max) =
            (self.config.limits.outbox_bytes_max / 2, self.config.limits.unsent_bytes_max);
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let is_over = outbox_threshold < client.unwritten || unsent_max < client.unwritten_to_hosts;
        let is_low =
            client.unwritten <= outbox_threshold / 2 && client.unwritten_to_hosts <= unsent_max / 2;
        if !client.paused && is_over {
            client.paused = true;
            self.outputs.push_back(GatewayOutput::PauseClient { conn });
        } else if client.paused && is_low {
            client.paused = false;
            self.outputs.push_back(GatewayOutput::ResumeClient { conn });
        }
    }
}
