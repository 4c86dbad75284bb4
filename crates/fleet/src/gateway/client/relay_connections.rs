//! The connection of a client and its connections to hosts, with their flow control. A client that
//! does not read is not read, and neither are its host connections. A host that does not read slows
//! its clients. Each host connection has one client, so no other client is affected.

use super::{
    handshake::{ClientHandshake, HandshakeStep},
    host_connection::{HostConnection, SentRequest},
};
use crate::gateway::{
    config::HostId,
    context::GatewayContext,
    host_connection_id::{HostConnectionId, HostConnectionOwners},
    output::GatewayOutput,
};
use bytes::Bytes;
use jackfield_hub::{ConnId, cancel_notice};
use jackfield_protocol::{Frame, Kind, acp::Method};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct RelayConnections {
    conn: ConnId,
    by_id: BTreeMap<HostConnectionId, HostConnection>,
    /// One connection per host.
    by_host: BTreeMap<HostId, HostConnectionId>,
    /// Receives messages that concern no session.
    default_id: Option<HostConnectionId>,
    /// The client has opened a session: the next one need not be on the default host.
    has_opened_session: bool,
    /// Bytes that were sent to the client and are not yet written.
    unwritten: usize,
    /// Bytes of the client that are not yet written to hosts.
    unwritten_to_hosts: usize,
    /// The client's socket is not read at the moment.
    is_paused: bool,
    /// The gateway is closing the client; further frames are ignored.
    is_closing: bool,
}

impl RelayConnections {
    pub(super) fn new(conn: ConnId) -> RelayConnections {
        RelayConnections {
            conn,
            by_id: BTreeMap::new(),
            by_host: BTreeMap::new(),
            default_id: None,
            has_opened_session: false,
            unwritten: 0,
            unwritten_to_hosts: 0,
            is_paused: false,
            is_closing: false,
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Bytes that were sent to the client and are not yet written.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// Bytes that were sent to the client or to hosts and are not yet written.
    pub(super) fn all_unwritten(&self) -> usize {
        self.unwritten + self.by_id.values().map(HostConnection::unwritten).sum::<usize>()
    }

    pub(super) fn get(&self, host_conn: HostConnectionId) -> Option<&HostConnection> {
        self.by_id.get(&host_conn)
    }

    pub(super) fn get_mut(&mut self, host_conn: HostConnectionId) -> Option<&mut HostConnection> {
        self.by_id.get_mut(&host_conn)
    }

    pub(super) fn has_host_connections(&self) -> bool {
        !self.by_host.is_empty()
    }

    pub(super) fn default_id(&self) -> Option<HostConnectionId> {
        self.default_id
    }

    /// The first host that serves the client becomes its default host.
    pub(super) fn set_default_if_none(&mut self, host_conn: HostConnectionId) {
        self.default_id.get_or_insert(host_conn);
    }

    /// Unsets the default host if it is on this connection. Returns whether it was.
    pub(super) fn clear_default(&mut self, host_conn: HostConnectionId) -> bool {
        let was_default = self.default_id.take_if(|it| *it == host_conn).is_some();
        if was_default {
            self.has_opened_session = false;
        }
        was_default
    }

    pub(super) fn mark_session_opened(&mut self) {
        self.has_opened_session = true;
    }

    /// The host for the first session of the client.
    pub(super) fn preferred_host(&self) -> Option<&HostId> {
        let default_id = self.default_id.filter(|_| !self.has_opened_session)?;
        self.by_id.get(&default_id).map(HostConnection::host)
    }

    /// The connection to this host, if there is one.
    pub(super) fn connection_to(&self, host: &HostId) -> Option<HostConnectionId> {
        self.by_host.get(host).copied()
    }

    /// Opens a connection to a host. `binding` binds it to the tenant of the client.
    pub(super) fn open_connection(
        &mut self,
        cx: &mut GatewayContext,
        owners: &mut HostConnectionOwners,
        host: &HostId,
        incarnation: Option<u64>,
        binding: Option<&Frame>,
    ) -> HostConnectionId {
        let host_conn = owners.add_connection(self.conn);
        self.by_host.insert(host.clone(), host_conn);
        self.by_id.insert(host_conn, HostConnection::new(host_conn, host.clone(), incarnation));
        cx.push_output(GatewayOutput::OpenHostConnection { host_conn, host: host.clone() });
        let relay = Frame::notification(Method::ControlRelay.name(), "{}");
        self.send_to_host(cx, host_conn, relay.into_bytes());
        if let Some(binding) = binding {
            self.send_to_host(cx, host_conn, binding.bytes().clone());
        }
        host_conn
    }

    /// Removes a connection that has ended.
    pub(super) fn remove_connection(
        &mut self,
        owners: &mut HostConnectionOwners,
        host_conn: HostConnectionId,
    ) -> Option<HostConnection> {
        let removed = self.by_id.remove(&host_conn)?;
        owners.remove_connection(host_conn);
        self.by_host.remove(removed.host());
        self.unwritten_to_hosts -= removed.unwritten();
        Some(removed)
    }

    /// Closes the connection of the client. Returns whether it was open.
    pub(super) fn close_client(&mut self, cx: &mut GatewayContext) -> bool {
        let was_open = !std::mem::replace(&mut self.is_closing, true);
        if was_open {
            cx.push_output(GatewayOutput::CloseClient { conn: self.conn });
        }
        was_open
    }

    pub(super) fn close_host_connections(
        &mut self,
        cx: &mut GatewayContext,
        owners: &mut HostConnectionOwners,
    ) {
        (self.default_id, self.unwritten_to_hosts) = (None, 0);
        self.by_id.clear();
        for host_conn in std::mem::take(&mut self.by_host).into_values() {
            owners.remove_connection(host_conn);
            cx.push_output(GatewayOutput::CloseHostConnection { host_conn });
        }
    }

    /// Sends a frame to the client. If it comes from a host and the client does not read, the
    /// connection to this host is paused.
    pub(super) fn send_to_client(
        &mut self,
        cx: &mut GatewayContext,
        text: Bytes,
        from: Option<HostConnectionId>,
    ) {
        if self.is_closing {
            return;
        }
        cx.count_sent(text.len());
        self.unwritten += text.len();
        cx.push_output(GatewayOutput::SendToClient { conn: self.conn, text });
        if cx.limits().outbox_bytes_max < self.unwritten
            && let Some(host_conn) = from.and_then(|it| self.by_id.get_mut(&it))
        {
            host_conn.pause_reading(cx);
        }
        self.update_pause(cx);
    }

    /// The client has read this many bytes.
    pub(super) fn subtract_unwritten(&mut self, cx: &mut GatewayContext, bytes: usize) {
        self.unwritten = self.unwritten.saturating_sub(bytes);
        if self.unwritten <= cx.limits().outbox_bytes_max / 2 {
            for id in self.by_host.values() {
                if let Some(host_conn) = self.by_id.get_mut(id) {
                    host_conn.resume_reading(cx);
                }
            }
        }
    }

    pub(super) fn send_to_host(
        &mut self,
        cx: &mut GatewayContext,
        host_conn: HostConnectionId,
        text: Bytes,
    ) {
        let Some(it) = self.by_id.get_mut(&host_conn) else { return };
        cx.count_sent(text.len());
        it.add_unwritten(text.len());
        self.unwritten_to_hosts += text.len();
        cx.push_output(GatewayOutput::SendToHost { host_conn, text });
        self.update_pause(cx);
    }

    /// The host has read this many bytes.
    pub(super) fn on_host_conn_wrote(
        &mut self,
        cx: &mut GatewayContext,
        host_conn: HostConnectionId,
        bytes: usize,
    ) {
        let Some(it) = self.by_id.get_mut(&host_conn) else { return };
        self.unwritten_to_hosts -= it.subtract_unwritten(bytes);
        self.update_pause(cx);
    }

    /// Sends a request to a host under an id of the gateway, which is returned.
    pub(super) fn send_request(
        &mut self,
        cx: &mut GatewayContext,
        host_conn: HostConnectionId,
        request: SentRequest,
        frame: &Frame,
    ) -> u64 {
        let host_request_id = cx.next_id();
        if let Some(it) = self.by_id.get_mut(&host_conn) {
            it.add_sent_request(host_request_id, request);
        }
        let text = frame.with_id(&host_request_id.to_string()).into_bytes();
        self.send_to_host(cx, host_conn, text);
        host_request_id
    }

    pub(super) fn cancel_request(
        &mut self,
        cx: &mut GatewayContext,
        host_conn: HostConnectionId,
        host_request_id: u64,
    ) {
        self.send_to_host(cx, host_conn, cancel_notice(host_request_id));
    }

    /// The client has sent a frame of the handshake: sends it to the hosts that must receive it.
    pub(super) fn resend_handshake(
        &mut self,
        cx: &mut GatewayContext,
        handshake: &ClientHandshake,
        step: HandshakeStep,
    ) {
        for host_conn in self.by_host.values().copied().collect::<Vec<_>>() {
            let it = self.by_id.get_mut(&host_conn);
            if it.is_some_and(|it| it.handshake_mut().reset_step(step)) {
                self.send_handshake(cx, handshake, host_conn);
            }
        }
    }

    /// Sends the frames of the client's handshake that this connection has not sent yet.
    pub(super) fn send_handshake(
        &mut self,
        cx: &mut GatewayContext,
        handshake: &ClientHandshake,
        host_conn: HostConnectionId,
    ) {
        // A hub starts an agent when `connect` precedes `initialize`. Only the default host should.
        let mut order = [HandshakeStep::Initialize, HandshakeStep::Connect];
        if self.default_id == Some(host_conn) {
            order.reverse();
        }
        for step in order {
            let Some(it) = self.by_id.get_mut(&host_conn) else { return };
            it.handshake_mut().mark_required();
            let Some(frame) = handshake.frame(step) else { continue };
            if !it.handshake_mut().mark_sent(step) {
                continue;
            }
            match frame.kind() {
                Kind::Request => {
                    let request = SentRequest::Handshake(step);
                    _ = self.send_request(cx, host_conn, request, frame);
                }
                _ => self.send_to_host(cx, host_conn, frame.bytes().clone()),
            }
        }
    }

    /// Pauses or resumes reading the client, by the bytes that are not yet written to it and to its
    /// hosts.
    pub(super) fn update_pause(&mut self, cx: &mut GatewayContext) {
        let conn = self.conn;
        let (outbox_threshold, unsent_max) =
            (cx.limits().outbox_bytes_max / 2, cx.limits().unsent_bytes_max);
        let is_over = outbox_threshold < self.unwritten || unsent_max < self.unwritten_to_hosts;
        let is_low =
            self.unwritten <= outbox_threshold / 2 && self.unwritten_to_hosts <= unsent_max / 2;
        if !self.is_paused && is_over {
            self.is_paused = true;
            cx.push_output(GatewayOutput::PauseClient { conn });
        } else if self.is_paused && is_low {
            self.is_paused = false;
            cx.push_output(GatewayOutput::ResumeClient { conn });
        }
    }
}
