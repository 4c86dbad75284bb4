//! The connection of one client to one host: the requests that the host has not answered, and the
//! bytes that are not written.

use super::handshake::{HandshakeProgress, HandshakeStep};
use crate::gateway::{
    config::HostId, context::GatewayContext, host_connection_id::HostConnectionId,
    output::GatewayOutput,
};
use jackfield_hub::SessionId;
use jackfield_protocol::is_planted;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct HostConnection {
    id: HostConnectionId,
    host: HostId,
    /// The incarnation of the host when the connection was opened.
    incarnation: Option<u64>,
    handshake: HandshakeProgress,
    /// Requests that the host has not answered, by the gateway's id.
    sent_requests: BTreeMap<u64, SentRequest>,
    /// Bytes that were sent on it and are not yet written.
    unwritten: usize,
    /// It is not read at the moment.
    is_paused: bool,
    /// The host has sent at least one frame on it.
    has_received: bool,
}

/// What a response from a host belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SentRequest {
    /// A request of the client, by the client's id.
    Client(Box<str>),
    /// A handshake frame, which is sent on every host connection.
    Handshake(HandshakeStep),
    /// The gateway attached the client to this session.
    Attach(SessionId),
    /// A request to all hosts.
    Merge(u64),
}

impl HostConnection {
    pub(super) fn new(
        id: HostConnectionId,
        host: HostId,
        incarnation: Option<u64>,
    ) -> HostConnection {
        HostConnection {
            id,
            host,
            incarnation,
            handshake: HandshakeProgress::default(),
            sent_requests: BTreeMap::new(),
            unwritten: 0,
            is_paused: false,
            has_received: false,
        }
    }

    pub(super) fn host(&self) -> &HostId {
        &self.host
    }

    pub(super) fn incarnation(&self) -> Option<u64> {
        self.incarnation
    }

    pub(super) fn handshake(&self) -> &HandshakeProgress {
        &self.handshake
    }

    pub(super) fn handshake_mut(&mut self) -> &mut HandshakeProgress {
        &mut self.handshake
    }

    pub(super) fn has_received(&self) -> bool {
        self.has_received
    }

    pub(super) fn mark_received(&mut self) {
        self.has_received = true;
    }

    pub(super) fn add_sent_request(&mut self, host_request_id: u64, request: SentRequest) {
        self.sent_requests.insert(host_request_id, request);
    }

    /// Removes a request that was answered, or whose response is no longer wanted.
    pub(super) fn take_sent_request(&mut self, host_request_id: u64) -> Option<SentRequest> {
        self.sent_requests.remove(&host_request_id)
    }

    pub(super) fn sent_request(&self, host_request_id: u64) -> Option<&SentRequest> {
        self.sent_requests.get(&host_request_id)
    }

    pub(super) fn into_sent_requests(self) -> impl Iterator<Item = SentRequest> {
        self.sent_requests.into_values()
    }

    pub(super) fn unwritten(&self) -> usize {
        self.unwritten
    }

    pub(super) fn add_unwritten(&mut self, bytes: usize) {
        self.unwritten += bytes;
    }

    /// Returns how many of these bytes were counted.
    pub(super) fn subtract_unwritten(&mut self, bytes: usize) -> usize {
        let written = bytes.min(self.unwritten);
        self.unwritten -= written;
        written
    }

    /// Stops reading the connection.
    pub(super) fn pause_reading(&mut self, cx: &mut GatewayContext) {
        if !self.is_paused {
            self.is_paused = true;
            cx.push_output(GatewayOutput::PauseHostConnection { host_conn: self.id });
        }
    }

    pub(super) fn resume_reading(&mut self, cx: &mut GatewayContext) {
        if std::mem::take(&mut self.is_paused) && !is_planted("gateway-never-resumes-reading") {
            cx.push_output(GatewayOutput::ResumeHostConnection { host_conn: self.id });
        }
    }
}
