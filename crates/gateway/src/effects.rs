//! Carrying out what the gateway asks. Clients and legs are the same kind of edge: a leg is a socket pair of
//! which the fleet has the other end.

use crate::seek::{Seeker, Wanted};
use bytes::Bytes;
use jackfield_clients::{ClientEvent, ClientHandle, ClientStream};
use jackfield_core::{
    ConnId,
    gateway::{Deed, GatewayInput, GatewayOutput, HostId, LegId},
};
use jackfield_fleet::{AuditEvent, AuditLog};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::{net::UnixStream, sync::mpsc::Sender};

/// The longest message of a host: pages of a log and lists are longer than what clients send.
pub(crate) const HOST_FRAME_BYTES_MAX: usize = 64 << 20;

/// The hands of the loop.
pub(crate) struct Effects {
    conns: BTreeMap<ConnId, ClientHandle>,
    legs: BTreeMap<LegId, ClientHandle>,
    dirty_conns: BTreeSet<ConnId>,
    dirty_legs: BTreeSet<LegId>,
    leg_events: Sender<(LegId, ClientEvent)>,
    pub(crate) seeker: Seeker,
    trail: AuditLog,
    /// What carrying out an output made happen at once.
    pub(crate) inputs: VecDeque<GatewayInput>,
    pub(crate) stopped: bool,
}

impl Effects {
    pub(crate) fn new(
        leg_events: Sender<(LegId, ClientEvent)>,
        seeker: Seeker,
        trail: AuditLog,
    ) -> Effects {
        Effects {
            conns: BTreeMap::new(),
            legs: BTreeMap::new(),
            dirty_conns: BTreeSet::new(),
            dirty_legs: BTreeSet::new(),
            leg_events,
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

    pub(crate) fn remove_leg(&mut self, leg: LegId) {
        self.legs.remove(&leg);
    }

    pub(crate) fn carry_out(&mut self, output: GatewayOutput) {
        match output {
            GatewayOutput::ToClient { conn, text } => {
                send(&mut self.conns, &mut self.dirty_conns, conn, text);
            }
            GatewayOutput::ToLeg { leg, text } => {
                send(&mut self.legs, &mut self.dirty_legs, leg, text);
            }
            GatewayOutput::CloseClient { conn } => {
                with(&mut self.conns, conn, ClientHandle::close_after_flush);
            }
            GatewayOutput::OpenLeg { leg, host } => self.open_leg(leg, host),
            GatewayOutput::CloseLeg { leg } => drop(self.legs.remove(&leg)),
            GatewayOutput::PauseClient { conn } => with(&mut self.conns, conn, ClientHandle::pause),
            GatewayOutput::ResumeClient { conn } => {
                with(&mut self.conns, conn, ClientHandle::resume);
            }
            GatewayOutput::PauseLeg { leg } => with(&mut self.legs, leg, ClientHandle::pause),
            GatewayOutput::ResumeLeg { leg } => with(&mut self.legs, leg, ClientHandle::resume),
            GatewayOutput::Locate { session, avoid } => self.seeker.locate(session, avoid),
            GatewayOutput::List { token, cursor, cwd, tenant } => {
                self.seeker.list(token, cursor, Wanted { cwd, tenant });
            }
            GatewayOutput::ReadLog { token, session, after } => {
                self.seeker.read_log(token, session, after);
            }
            GatewayOutput::Deed(deed) => self.tell(deed),
            GatewayOutput::Note(note) => tracing::info!("{note}"),
            GatewayOutput::Stopped => self.stopped = true,
        }
    }

    fn tell(&mut self, deed: Deed) {
        let Deed { conn, tenant, client, method, session, answer, refused } = deed;
        let (conn, session) = (Some(conn.to_string()), session.map(|it| it.to_string()));
        let word = AuditEvent::new(self.trail.gateway(), method);
        self.trail.record(AuditEvent { tenant, client, conn, session, answer, refused, ..word });
    }

    /// What is said on it before the host has taken it waits in the socket.
    fn open_leg(&mut self, leg: LegId, host: HostId) {
        let (ours, theirs) = match UnixStream::pair() {
            Ok(pair) => pair,
            Err(error) => {
                let why = error.to_string();
                return self.inputs.push_back(GatewayInput::LegGone { leg, why });
            }
        };
        let events = self.leg_events.clone();
        let handle = jackfield_clients::open_connection(
            ClientStream::from(ours),
            leg,
            events,
            HOST_FRAME_BYTES_MAX,
        );
        self.legs.insert(leg, handle);
        self.seeker.open_leg(leg, host, theirs);
    }

    /// Writes out what the turn produced.
    pub(crate) fn flush(&mut self) {
        for conn in std::mem::take(&mut self.dirty_conns) {
            let bytes = self.conns.get_mut(&conn).map_or(0, ClientHandle::flush);
            if bytes != 0 {
                self.inputs.push_back(GatewayInput::ClientWrote { conn, bytes });
            }
        }
        for leg in std::mem::take(&mut self.dirty_legs) {
            let bytes = self.legs.get_mut(&leg).map_or(0, ClientHandle::flush);
            if bytes != 0 {
                self.inputs.push_back(GatewayInput::LegWrote { leg, bytes });
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
