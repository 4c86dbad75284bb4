//! The gateway relays the frames of clients to the hosts that own the sessions.
//!
//! Read in this order: [`GatewayConfig`], [`GatewayInput`], [`GatewayOutput`], then `client` (frames
//! from clients), `handshake` and `placement` (requests for which a host is chosen), `session` and
//! `session_search` (requests for the owner of a session, and finding it), `placement_needs` (which
//! hosts may own a session), `host_connection` (frames from hosts), `replay_position` (suppressing
//! duplicates), `forwarded_request`, `merge` (requests that all hosts answer), `tenant` (session
//! visibility), `client_action` (audit), `flow`, `stop`.
//!
//! - **Invariant:** a request is answered exactly once, under the id the client gave it: by the host
//!   that served it last, or by the gateway with the reason why it failed.
//! - **Invariant:** a client receives the frames of a session once and in order, however often the
//!   session moves and whatever connection is lost.
//! - **Invariant:** a host sees only request ids of the gateway, so a response to a request that was
//!   since sent to another host is discarded.
//! - **Invariant:** a client that is bound to a tenant sees only the sessions of that tenant.
//! - **Invariant:** every buffer is bounded, and exceeding a bound is reported.

mod absent;
mod client;
mod client_action;
mod config;
mod flow;
mod forwarded_request;
mod gauges;
mod handshake;
mod host_connection;
mod input;
mod key;
mod merge;
mod output;
mod placed;
mod placement;
mod placement_needs;
mod replay_position;
mod session;
mod session_frames;
mod session_search;
mod stop;
mod tenant;
#[cfg(test)]
mod tests;

pub use client_action::ClientAction;
pub use config::{GatewayConfig, GatewayLimits, Host, HostId};
pub use gauges::{GatewayCounters, GatewayGauges};
pub use input::{GatewayInput, ListedSession, SessionPage};
pub use output::{GatewayNote, GatewayOutput};
pub use placement_needs::PlacementNeeds;

use absent::LogReading;
use client::Client;
use host_connection::HostConnection;
use jackfield_hub::{ConnId, SessionId, Time, timer::Timers};
use merge::PendingMerge;
use placed::PlacedSessions;
use session_search::SessionSearch;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

/// One client's connection to one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostConnectionId(pub u64);

impl fmt::Display for HostConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l-{}", self.0)
    }
}

#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    now: Time,
    clients: BTreeMap<ConnId, Client>,
    host_conns: BTreeMap<HostConnectionId, HostConnection>,
    hosts: BTreeMap<HostId, Host>,
    placed: PlacedSessions,
    /// Hosts whose connection was lost and that have sent nothing since.
    suspect_hosts: BTreeSet<HostId>,
    /// Sessions whose owner is being searched.
    searches: BTreeMap<SessionId, SessionSearch>,
    /// Requests that every host answers.
    merges: BTreeMap<u64, PendingMerge>,
    /// Logs that are read from the journal, because no host may own their sessions.
    log_readings: BTreeMap<u64, LogReading>,
    timers: Timers<Timer>,
    outputs: VecDeque<GatewayOutput>,
    counters: GatewayCounters,
    stopping: bool,
    next_host_conn: u64,
    next_id: u64,
    next_key: u64,
}

/// A timer that is no longer needed still fires and has no effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Search the owner of this session again.
    RetrySearch(SessionId),
    /// Messages that wait for the owner of this session may have expired.
    SessionWait(ConnId, SessionId),
    /// Choose a host for this client's queued requests again.
    RetryPlacement(ConnId),
    /// Requests that wait for a host may have expired.
    PlacementWait(ConnId),
    /// The time for hosts to answer is over.
    Merge(u64),
}

impl Gateway {
    pub fn new(config: GatewayConfig, now: Time) -> Gateway {
        Gateway {
            config,
            now,
            clients: BTreeMap::new(),
            host_conns: BTreeMap::new(),
            hosts: BTreeMap::new(),
            placed: PlacedSessions::default(),
            suspect_hosts: BTreeSet::new(),
            searches: BTreeMap::new(),
            merges: BTreeMap::new(),
            log_readings: BTreeMap::new(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counters: GatewayCounters::default(),
            stopping: false,
            next_host_conn: 0,
            next_id: 0,
            next_key: 0,
        }
    }

    pub fn handle(&mut self, now: Time, input: GatewayInput) {
        assert!(self.outputs.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        match input {
            GatewayInput::ClientOpened { conn } => self.on_client_opened(conn),
            GatewayInput::ClientSentFrame { conn, frame } => self.on_client_frame(conn, &frame),
            GatewayInput::ClientSentInvalidFrame { conn, fault } => {
                self.on_invalid_frame(conn, &fault);
            }
            GatewayInput::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            GatewayInput::ClientFinished { conn } => self.on_client_finished(conn),
            GatewayInput::ClientGone { conn } => self.on_client_gone(conn),
            GatewayInput::HostConnectionOpened { host_conn } => self.on_host_conn_opened(host_conn),
            GatewayInput::HostSentFrame { host_conn, frame } => {
                self.on_host_frame(host_conn, &frame);
            }
            GatewayInput::HostConnectionWrote { host_conn, bytes } => {
                self.on_host_conn_wrote(host_conn, bytes);
            }
            GatewayInput::HostConnectionGone { host_conn, reason } => {
                self.on_host_conn_gone(host_conn, &reason);
            }
            GatewayInput::HostsChanged(hosts) => self.on_hosts(hosts),
            GatewayInput::SessionLocated { session, owner } => {
                self.on_session_located(&session, owner);
            }
            GatewayInput::SessionsListed { token, page } => self.on_sessions_listed(token, page),
            GatewayInput::LogRead { token, events } => self.on_log_read(token, events),
            GatewayInput::Tick => self.on_tick(),
            GatewayInput::Stop => self.on_stop(),
        }
    }

    pub fn poll_output(&mut self) -> Option<GatewayOutput> {
        self.outputs.pop_front()
    }

    /// The latest time at which the gateway needs [`GatewayInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::RetrySearch(session) => self.retry_search(&session),
                Timer::SessionWait(conn, session) => self.expire_waiting(conn, &session),
                Timer::RetryPlacement(conn) => self.place_queued(conn),
                Timer::PlacementWait(conn) => self.expire_unplaced(conn),
                Timer::Merge(token) => self.expire_merge(token),
            }
        }
    }

    fn note(&mut self, note: GatewayNote) {
        self.outputs.push_back(GatewayOutput::Note(note));
    }

    /// A unique id for a request to a host.
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}
