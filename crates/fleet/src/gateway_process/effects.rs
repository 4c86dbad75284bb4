//! Carrying out what the gateway asks. Clients and host connections are the same kind of edge: a host connection is a socket pair of
//! which the fleet has the other end.

use super::seek::{Seeker, Wanted};
use crate::gateway::{ClientAction, GatewayInput, GatewayOutput, HostConnectionId, HostId};
use crate::{AuditEvent, AuditLog};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_transport::{ClientEvent, ClientHandle, ClientStream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::{net::UnixStream, sync::mpsc::Sender};

/// The longest message of a host: pages of a log and lists are longer than what clients send.
pub(crate) const HOST_FRAME_BYTES_MAX: usize = 64 << 20;

/// The hands of the loop.
pub(crate) struct Effects {
    conns: BTreeMap<ConnId, ClientHandle>,
    host_conns: BTreeMap<HostConnectionId, ClientHandle>,
    dirty_conns: BTreeSet<ConnId>,
    dirty_host_conns: BTreeSet<HostConnectionId>,
    host_conn_events: Sender<(HostConnectionId, ClientEvent)>,
    pub(crate) seeker: Seeker,
    trail: AuditLog,
    /// What carrying out an output made happen at once.
    pub(crate) inputs: VecDeque<GatewayInput>,
    pub(crate) stopped: bool,
}

impl Effects {
    pub(crate) fn new(
        host_conn_events: Sender<(HostConnectionId, ClientEvent)>,
        seeker: Seeker,
        trail: AuditLog,
    ) -> Effects {
        Effects {
            conns: BTreeMap::new(),
            host_conns: BTreeMap::new(),
            dirty_conns: BTreeSet::new(),
            dirty_host_conns: BTreeSet::new(),
            host_conn_events,
            seeker,
            trail,
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
            GatewayOutput::ToClient { conn, text } => {
                send(&mut self.conns, &mut self.dirty_conns, conn, text);
            }
            GatewayOutput::ToHost { host_conn, text } => {
                send(&mut self.host_conns, &mut self.dirty_host_conns, host_conn, text);
            }
            GatewayOutput::CloseClient { conn } => {
                with(&mut self.conns, conn, ClientHandle::close_after_flush);
            }
            GatewayOutput::OpenHostConnection { host_conn, host } => {
                self.open_host_conn(host_conn, host);
            }
            GatewayOutput::CloseHostConnection { host_conn } => {
                drop(self.host_conns.remove(&host_conn));
            }
            GatewayOutput::PauseClient { conn } => with(&mut self.conns, conn, ClientHandle::pause),
            GatewayOutput::ResumeClient { conn } => {
                with(&mut self.conns, conn, ClientHandle::resume);
            }
            GatewayOutput::PauseHostConnection { host_conn } => {
                with(&mut self.host_conns, host_conn, ClientHandle::pause);
            }
            GatewayOutput::ResumeHostConnection { host_conn } => {
                with(&mut self.host_conns, host_conn, ClientHandle::resume);
            }
            GatewayOutput::Locate { session, avoid } => self.seeker.locate(session, avoid),
            GatewayOutput::List { token, cursor, cwd, tenant } => {
                self.seeker.list(token, cursor, Wanted { cwd, tenant });
            }
            GatewayOutput::ReadLog { token, session, after } => {
                self.seeker.read_log(token, session, after);
            }
            GatewayOutput::ClientAction(deed) => self.tell(deed),
            GatewayOutput::Note(note) => tracing::info!("{note}"),
            GatewayOutput::Stopped => self.stopped = true,
        }
    }

    fn tell(&mut self, deed: ClientAction) {
        let ClientAction { conn, tenant, client, method, session, answer, refused } = deed;
        let (conn, session) = (Some(conn.to_string()), session.map(|it| it.to_string()));
        let word = AuditEvent::new(self.trail.gateway(), method);
        self.trail.record(AuditEvent { tenant, client, conn, session, answer, refused, ..word });
    }

    /// What is said on it before the host has taken it waits in the socket.
    fn open_host_conn(&mut self, host_conn: HostConnectionId, host: HostId) {
        let (ours, theirs) = match UnixStream::pair() {
            Ok(pair) => pair,
            Err(error) => {
                let why = error.to_string();
                return self.inputs.push_back(GatewayInput::HostConnectionGone { host_conn, why });
            }
        };
        let events = self.host_conn_events.clone();
        let handle = jackfield_transport::open_connection(
            ClientStream::from(ours),
            host_conn,
            events,
            HOST_FRAME_BYTES_MAX,
        );
        self.host_conns.insert(host_conn, handle);
        self.seeker.open_host_conn(host_conn, host, theirs);
    }

    /// Writes out what the turn produced.
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
    edges: &mut BTreeMap<K, ClientHandle>,
    dirty: &mut BTreeSet<K>,
    key: K,
    text: Bytes,
) {
    let Some(handle) = edges.get_mut(&key) else { return };
    handle.send(text);
    dirty.insert(key);
}

fn with<K: Ord + Copy>(
    edges: &mut BTreeMap<K, ClientHandle>,
    key: K,
    act: impl FnOnce(&mut ClientHandle),
) {
    if let Some(handle) = edges.get_mut(&key) {
        act(handle);
    }
}
