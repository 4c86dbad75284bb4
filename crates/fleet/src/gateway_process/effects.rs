//! Carries out the outputs of the gateway. A host connection is handled like a client: it is a
//! socket pair whose other end belongs to the fleet.

use super::session_locator::{SessionFilter, SessionLocator};
use crate::gateway::{ClientAction, GatewayInput, GatewayOutput, HostConnectionId, HostId};
use crate::{AuditEvent, AuditLog};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::HUB_FRAME_BYTES_MAX;
use jackfield_transport::{ClientEvent, ClientHandle, ClientStream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::{net::UnixStream, sync::mpsc::Sender};

/// Connections and lookups of the loop.
pub(crate) struct GatewayEffects {
    conns: BTreeMap<ConnId, ClientHandle>,
    host_conns: BTreeMap<HostConnectionId, ClientHandle>,
    dirty_conns: BTreeSet<ConnId>,
    dirty_host_conns: BTreeSet<HostConnectionId>,
    host_conn_events: Sender<(HostConnectionId, ClientEvent)>,
    pub(crate) locator: SessionLocator,
    audit_log: AuditLog,
    /// Inputs that result from an output at once.
    pub(crate) inputs: VecDeque<GatewayInput>,
    pub(crate) stopped: bool,
}

impl GatewayEffects {
    pub(crate) fn new(
        host_conn_events: Sender<(HostConnectionId, ClientEvent)>,
        locator: SessionLocator,
        audit_log: AuditLog,
    ) -> GatewayEffects {
        GatewayEffects {
            conns: BTreeMap::new(),
            host_conns: BTreeMap::new(),
            dirty_conns: BTreeSet::new(),
            dirty_host_conns: BTreeSet::new(),
            host_conn_events,
            locator,
            audit_log,
            inputs: VecDeque::new(),
            stopped: false,
        }
    }

    pub(crate) fn add_conn(&mut self, conn: ConnId, handle: ClientHandle) {
        self.conns.insert(conn, handle);
    }

    pub(crate) fn remove_conn(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    pub(crate) fn remove_host_conn(&mut self, host_conn: HostConnectionId) {
        self.host_conns.remove(&host_conn);
    }

    pub(crate) fn carry_out(&mut self, output: GatewayOutput) {
        match output {
            GatewayOutput::SendToClient { conn, text } => {
                send(&mut self.conns, &mut self.dirty_conns, conn, text);
            }
            GatewayOutput::SendToHost { host_conn, text } => {
                send(&mut self.host_conns, &mut self.dirty_host_conns, host_conn, text);
            }
            GatewayOutput::CloseClient { conn } => {
                apply_to(&mut self.conns, conn, ClientHandle::close_after_flush);
            }
            GatewayOutput::OpenHostConnection { host_conn, host } => {
                self.open_host_conn(host_conn, host);
            }
            GatewayOutput::CloseHostConnection { host_conn } => {
                drop(self.host_conns.remove(&host_conn));
            }
            GatewayOutput::PauseClient { conn } => {
                apply_to(&mut self.conns, conn, ClientHandle::pause);
            }
            GatewayOutput::ResumeClient { conn } => {
                apply_to(&mut self.conns, conn, ClientHandle::resume);
            }
            GatewayOutput::PauseHostConnection { host_conn } => {
                apply_to(&mut self.host_conns, host_conn, ClientHandle::pause);
            }
            GatewayOutput::ResumeHostConnection { host_conn } => {
                apply_to(&mut self.host_conns, host_conn, ClientHandle::resume);
            }
            GatewayOutput::LocateSession { session, avoid } => {
                self.locator.locate_session(session, avoid);
            }
            GatewayOutput::ListSessions { token, cursor, cwd, tenant } => {
                self.locator.list_sessions(token, cursor, SessionFilter { cwd, tenant });
            }
            GatewayOutput::ReadLog { token, session, after } => {
                self.locator.read_log(token, session, after);
            }
            GatewayOutput::ClientAction(action) => self.record_action(action),
            GatewayOutput::Note(note) => tracing::info!("{note}"),
            GatewayOutput::Stopped => self.stopped = true,
        }
    }

    fn record_action(&mut self, action: ClientAction) {
        let ClientAction { conn, tenant, client, method, session, answer, refused } = action;
        let (conn, session) = (Some(conn.to_string()), session.map(|it| it.to_string()));
        let event = AuditEvent::new(self.audit_log.gateway(), method);
        self.audit_log.record(AuditEvent {
            tenant,
            client,
            conn,
            session,
            answer,
            refused,
            ..event
        });
    }

    /// Frames that are sent before the host accepts the connection wait in the socket.
    fn open_host_conn(&mut self, host_conn: HostConnectionId, host: HostId) {
        let (local, remote) = match UnixStream::pair() {
            Ok(pair) => pair,
            Err(error) => {
                let reason = error.to_string();
                return self
                    .inputs
                    .push_back(GatewayInput::HostConnectionGone { host_conn, reason });
            }
        };
        let events = self.host_conn_events.clone();
        let handle = jackfield_transport::open_connection(
            ClientStream::from(local),
            host_conn,
            events,
            HUB_FRAME_BYTES_MAX,
        );
        self.host_conns.insert(host_conn, handle);
        self.locator.open_host_conn(host_conn, host, remote);
    }

    /// Writes the frames that this iteration of the loop produced.
    pub(crate) fn flush(&mut self) {
        for conn in std::mem::take(&mut self.dirty_conns) {
            let bytes = self.conns.get_mut(&conn).map_or(0, ClientHandle::flush);
            if bytes != 0 {
                self.inputs.push_back(GatewayInput::ClientWrote { conn, bytes });
            }
        }
        for host_conn in std::mem::take(&mut self.dirty_host_conns) {
            let bytes = self.host_conns.get_mut(&host_conn).map_or(0, ClientHandle::flush);
            if bytes != 0 {
                self.inputs.push_back(GatewayInput::HostConnectionWrote { host_conn, bytes });
            }
        }
    }
}

fn send<K: Ord + Copy>(
    handles: &mut BTreeMap<K, ClientHandle>,
    dirty: &mut BTreeSet<K>,
    key: K,
    text: Bytes,
) {
    let Some(handle) = handles.get_mut(&key) else { return };
    handle.send(text);
    dirty.insert(key);
}

fn apply_to<K: Ord + Copy>(
    handles: &mut BTreeMap<K, ClientHandle>,
    key: K,
    apply: impl FnOnce(&mut ClientHandle),
) {
    if let Some(handle) = handles.get_mut(&key) {
        apply(handle);
    }
}
