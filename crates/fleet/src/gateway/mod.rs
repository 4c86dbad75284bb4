//! The gateway: clients in front, hosts behind, and each frame on its way to the owner of its session.
//!
//! Read in this order: [`GatewayConfig`], [`GatewayInput`], [`GatewayOutput`], then `client` (a client spoke),
//! `opening` and `place` (what goes to a host that is chosen), `session` and `search` (what goes to
//! the owner of a session, and who that is), `home` (who may be), `host connection` (a host spoke), `heard` (what was said before is
//! not said again), `ask`, `merge` (what every host is asked), `tenant` (who knows of what), `deed` (what is
//! told of clients), `flow`, `stop`.
//!
//! - **Invariant:** a request is answered exactly once, under the id the client gave it: by the host
//!   that served it last, or by the gateway with the reason why not.
//! - **Invariant:** what a client hears of a session comes once and in order, however often the
//!   session moves and whatever is lost on the way.
//! - **Invariant:** a host sees ids of ours only, so an answer to what was asked there before, and
//!   has been asked elsewhere since, is nobody's.
//! - **Invariant:** a client that is bound to a tenant is told of sessions of that tenant only.
//! - **Invariant:** nothing grows without bound, and what is over a bound is told.

mod absent;
mod ask;
mod client;
mod config;
mod deed;
mod flow;
mod gauges;
mod heard;
mod home;
mod host_connection;
mod input;
mod key;
mod merge;
mod opening;
mod output;
mod place;
mod placed;
mod search;
mod session;
mod stop;
mod tenant;
#[cfg(test)]
mod tests;

pub use config::{GatewayConfig, GatewayLimits, Host, HostId};
pub use deed::ClientAction;
pub use gauges::{GatewayCounters, GatewayGauges};
pub use home::PlacementNeeds;
pub use input::{GatewayInput, ListedSession, SessionPage};
pub use output::{GatewayNote, GatewayOutput};

use absent::LogReading;
use client::Client;
use host_connection::HostConnection;
use jackfield_hub::{ConnId, SessionId, Time, timer::Timers};
use merge::Merge;
use placed::PlacedSessions;
use search::Search;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

/// One client's connection to one host, for as long as it is open.
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
    /// Hosts that a host connection was lost to, and that have said nothing since.
    doubted: BTreeSet<HostId>,
    /// Sessions whose owner is looked for.
    searches: BTreeMap<SessionId, Search>,
    /// What every host was asked.
    merges: BTreeMap<u64, Merge>,
    /// Logs that are read from the journal, because no host may have their sessions.
    readings: BTreeMap<u64, LogReading>,
    timers: Timers<Timer>,
    outputs: VecDeque<GatewayOutput>,
    counters: GatewayCounters,
    stopping: bool,
    next_host_conn: u64,
    next_id: u64,
    next_key: u64,
}

/// One that has become pointless is left to fire and does nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The pause before this session is looked for again is over.
    Seek(SessionId),
    /// What waits for this session may have waited too long.
    Lost(ConnId, SessionId),
    /// The pause before a host is chosen again for this client is over.
    Place(ConnId),
    /// What waits for any host may have waited too long.
    Unplaced(ConnId),
    /// Every host has had its time to answer.
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
            doubted: BTreeSet::new(),
            searches: BTreeMap::new(),
            merges: BTreeMap::new(),
            readings: BTreeMap::new(),
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
            GatewayInput::ClientOpened { conn } => self.on_opened(conn),
            GatewayInput::ClientSpoke { conn, frame } => self.on_client(conn, &frame),
            GatewayInput::ClientSentInvalidFrame { conn, fault } => {
                self.on_invalid_frame(conn, &fault);
            }
            GatewayInput::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            GatewayInput::ClientFinished { conn } => self.on_finished(conn),
            GatewayInput::ClientGone { conn } => self.on_client_gone(conn),
            GatewayInput::HostConnectionOpened { host_conn } => self.on_host_conn_opened(host_conn),
            GatewayInput::HostSentFrame { host_conn, frame } => {
                self.on_host_conn(host_conn, &frame);
            }
            GatewayInput::HostConnectionWrote { host_conn, bytes } => {
                self.on_host_conn_wrote(host_conn, bytes);
            }
            GatewayInput::HostConnectionGone { host_conn, why } => {
                self.on_host_conn_gone(host_conn, &why);
            }
            GatewayInput::Hosts(hosts) => self.on_hosts(hosts),
            GatewayInput::Located { session, owner } => self.on_located(&session, owner),
            GatewayInput::SessionsListed { token, page } => self.on_listed(token, page),
            GatewayInput::LogRead { token, events } => self.on_log_read(token, events),
            GatewayInput::Tick => self.on_tick(),
            GatewayInput::Stop => self.on_stop(),
        }
    }

    pub fn poll_output(&mut self) -> Option<GatewayOutput> {
        self.outputs.pop_front()
    }

    /// When the gateway wants [`GatewayInput::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::Seek(session) => self.seek_again(&session),
                Timer::Lost(conn, session) => self.on_waited(conn, &session),
                Timer::Place(conn) => self.place_waiting(conn),
                Timer::Unplaced(conn) => self.on_unplaced_long(conn),
                Timer::Merge(token) => self.on_merge_due(token),
            }
        }
    }

    fn note(&mut self, note: GatewayNote) {
        self.outputs.push_back(GatewayOutput::Note(note));
    }

    /// For a request of ours to a host: no two have the same.
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}
