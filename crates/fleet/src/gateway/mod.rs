//! The gateway relays the frames of clients to the hosts that own the sessions.
//!
//! `Gateway` only routes inputs: to a client (`client`), which has its host connections, sessions
//! and pending requests, or to one of the parts that all clients share (`parts`): the hosts
//! (`host_directory`, `placed_sessions`), the searches for owners of sessions (`owner_searches`),
//! requests that all hosts answer (`pending_merges`), logs that are read from the journal
//! (`log_readings`). Each part owns its state. A method belongs to the part whose state it changes;
//! what it needs beyond that is an argument.
//!
//! - **Invariant:** a request is answered exactly once, under the id the client gave it: by the host
//!   that served it last, or by the gateway with the reason why it failed.
//! - **Invariant:** a client receives the frames of a session once and in order, however often the
//!   session moves and whatever connection is lost.
//! - **Invariant:** a host sees only request ids of the gateway, so a response to a request that was
//!   since sent to another host is discarded.
//! - **Invariant:** a client that is bound to a tenant sees only the sessions of that tenant.
//! - **Invariant:** every buffer is bounded, and exceeding a bound is reported.

mod client;
mod client_action;
mod clients;
mod config;
mod context;
mod frame_fields;
mod gauges;
mod host_connection_id;
mod host_directory;
mod input;
mod log_readings;
mod merge_results;
mod output;
mod owner_searches;
mod parts;
mod pending_merges;
mod placed_sessions;
mod placement_needs;
mod placement_request;
mod retained_bytes;
mod tenant;
#[cfg(test)]
mod tests;

pub use client_action::ClientAction;
pub use config::{GatewayConfig, GatewayLimits, Host, HostId};
pub use gauges::{GatewayCounters, GatewayGauges};
pub use host_connection_id::HostConnectionId;
pub use input::{GatewayInput, ListedSession, SessionPage};
pub use output::{GatewayNote, GatewayOutput};
pub use placement_needs::PlacementNeeds;

use client::ClientConnection;
use clients::Clients;
use context::GatewayTimer;
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::Fault;
use owner_searches::SearchResult;
use parts::GatewayParts;
use pending_merges::PendingMerge;

#[derive(Debug)]
pub struct Gateway {
    clients: Clients,
    parts: GatewayParts,
    is_stopping: bool,
}

impl Gateway {
    pub fn new(config: GatewayConfig, now: Time) -> Gateway {
        Gateway {
            clients: Clients::default(),
            parts: GatewayParts::new(config, now),
            is_stopping: false,
        }
    }

    pub fn handle(&mut self, now: Time, input: GatewayInput) {
        self.parts.cx.begin_input(now);
        match input {
            GatewayInput::ClientOpened { conn } => self.on_client_opened(conn),
            GatewayInput::ClientSentFrame { conn, frame } => {
                self.with_client(conn, |it, parts| it.on_client_frame(parts, &frame));
            }
            GatewayInput::ClientSentInvalidFrame { conn, fault } => {
                self.parts.cx.count_refused();
                self.with_client(conn, |it, parts| it.answer_invalid_frame(parts, &fault));
            }
            GatewayInput::ClientWrote { conn, bytes } => {
                self.with_client(conn, |it, parts| it.on_client_wrote(parts, bytes));
            }
            GatewayInput::ClientFinished { conn } => {
                self.with_client(conn, ClientConnection::on_finished);
            }
            GatewayInput::ClientGone { conn } => self.on_client_gone(conn),
            GatewayInput::HostConnectionOpened { host_conn } => {
                self.with_client_of(host_conn, |it, parts| {
                    it.on_host_conn_opened(parts, host_conn);
                });
            }
            GatewayInput::HostSentFrame { host_conn, frame } => {
                if self.parts.host_conn_owners.client_of(host_conn).is_none() {
                    self.parts.cx.count_stray();
                }
                self.with_client_of(host_conn, |it, parts| {
                    it.on_host_frame(parts, host_conn, &frame);
                });
            }
            GatewayInput::HostConnectionWrote { host_conn, bytes } => {
                self.with_client_of(host_conn, |it, parts| {
                    it.on_host_conn_wrote(parts, host_conn, bytes);
                });
            }
            GatewayInput::HostConnectionGone { host_conn, reason } => {
                self.with_client_of(host_conn, |it, parts| {
                    it.on_host_conn_gone(parts, host_conn, &reason);
                });
            }
            GatewayInput::HostsChanged(hosts) => self.on_hosts_changed(hosts),
            GatewayInput::SessionLocated { session, owner } => {
                self.on_session_located(&session, owner);
            }
            GatewayInput::SessionsListed { token, page } => {
                self.with_merge(token, |it, parts| it.on_sessions_listed(parts, token, page));
            }
            GatewayInput::LogRead { token, events } => {
                if let Some(conn) = self.parts.log_readings.client_of(token) {
                    self.with_client(conn, |it, parts| it.on_log_read(parts, token, events));
                }
            }
            GatewayInput::Tick => self.on_tick(),
            GatewayInput::Stop => self.on_stop(),
        }
    }

    pub fn poll_output(&mut self) -> Option<GatewayOutput> {
        self.parts.cx.pop_output()
    }

    /// The latest time at which the gateway needs [`GatewayInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.parts.cx.next_timer_at()
    }

    pub fn gauges(&self) -> GatewayGauges {
        let clients = || self.clients.iter();
        GatewayGauges {
            counters: self.parts.cx.counters(),
            clients: self.clients.len(),
            host_conns: self.parts.host_conn_owners.len(),
            hosts: self.parts.hosts.len(),
            sessions: clients().map(ClientConnection::session_count).sum(),
            pending: clients().map(ClientConnection::pending_count).sum(),
            searches: self.parts.searches.len(),
            retained_bytes: self.parts.retained.total(),
            unwritten_bytes: clients().map(ClientConnection::unwritten_bytes).sum(),
        }
    }

    /// Runs `action` with a client, if it is connected.
    fn with_client(
        &mut self,
        conn: ConnId,
        action: impl FnOnce(&mut ClientConnection, &mut GatewayParts),
    ) {
        if let Some(client) = self.clients.get_mut(conn) {
            action(client, &mut self.parts);
        }
    }

    /// Runs `action` with the client of a host connection, if the connection is open.
    fn with_client_of(
        &mut self,
        host_conn: HostConnectionId,
        action: impl FnOnce(&mut ClientConnection, &mut GatewayParts),
    ) {
        if let Some(conn) = self.parts.host_conn_owners.client_of(host_conn) {
            self.with_client(conn, action);
        }
    }

    /// Runs `action` with the client of a request to all hosts, if the request is pending.
    fn with_merge(
        &mut self,
        token: u64,
        action: impl FnOnce(&mut ClientConnection, &mut GatewayParts),
    ) {
        if let Some(conn) = self.parts.merges.client_of(token) {
            self.with_client(conn, action);
        }
    }

    fn on_client_opened(&mut self, conn: ConnId) {
        self.parts.cx.count_client_opened();
        self.parts.client_counts.add_client();
        self.clients.add_client(conn, ClientConnection::new(conn));
        let connected = self.clients.len() - 1;
        if self.parts.cx.limits().clients_max <= connected {
            let what = format!("{connected} clients are connected, which is the limit");
            let fault = Fault::Overloaded { what };
            self.with_client(conn, |it, parts| it.refuse_client(parts, &fault));
        } else if self.is_stopping {
            self.with_client(conn, ClientConnection::close_client);
        }
    }

    fn on_client_gone(&mut self, conn: ConnId) {
        if let Some(client) = self.clients.remove_client(conn) {
            client.on_gone(&mut self.parts);
            self.finish_stop();
        }
    }

    fn on_hosts_changed(&mut self, hosts: Vec<Host>) {
        let parts = &mut self.parts;
        let known = parts.hosts.names();
        parts.hosts.apply_report(hosts, &mut parts.placed);
        if parts.hosts.names() != known {
            for client in self.clients.iter_mut() {
                client.restart_watch(&mut self.parts);
            }
        }
        for (host_conn, reason) in self.find_lost_connections() {
            self.parts.cx.push_output(GatewayOutput::CloseHostConnection { host_conn });
            self.with_client_of(host_conn, |it, parts| {
                it.on_host_conn_gone(parts, host_conn, reason);
            });
        }
        self.parts.hosts.remove_unlisted_suspects();
        for client in self.clients.iter_mut().filter(|it| it.has_unplaced_requests()) {
            client.place_queued(&mut self.parts);
        }
    }

    /// Connections to hosts that are gone or were restarted, with the reason.
    fn find_lost_connections(&self) -> Vec<(HostConnectionId, &'static str)> {
        let lost = self.parts.host_conn_owners.iter().filter_map(|(host_conn, conn)| {
            let (host, incarnation) = self.clients.get(conn)?.host_incarnation(host_conn)?;
            // A connection that was opened before its host was listed may be to an earlier
            // incarnation.
            match self.parts.hosts.incarnation_of(host) {
                current if current == incarnation => None,
                Some(_) => Some((host_conn, "the host was restarted")),
                None => Some((host_conn, "the host is gone")),
            }
        });
        lost.collect()
    }

    fn on_session_located(&mut self, session: &SessionId, owner: Result<HostId, Fault>) {
        let parts = &mut self.parts;
        let located = parts.searches.on_session_located(&mut parts.cx, session, owner);
        let Some((result, clients)) = located else { return };
        for conn in clients {
            self.with_client(conn, |it, parts| match &result {
                SearchResult::Found(host) => it.bind_owner(parts, session, host),
                SearchResult::Missing(fault) => it.on_session_missing(parts, session, fault),
                SearchResult::NoEligibleHost(why) => it.on_no_eligible_host(parts, session, why),
            });
        }
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.parts.cx.take_due_timer() {
            match timer {
                GatewayTimer::RetrySearch(session) => {
                    let uses_session = |conn| self.clients.uses_session(conn, &session);
                    self.parts.searches.retry_search(&mut self.parts.cx, &session, uses_session);
                }
                GatewayTimer::SessionWait(conn, session) => {
                    self.with_client(conn, |it, parts| it.expire_waiting(parts, &session));
                }
                GatewayTimer::RetryPlacement(conn) => {
                    self.with_client(conn, ClientConnection::place_queued);
                }
                GatewayTimer::PlacementWait(conn) => {
                    self.with_client(conn, ClientConnection::expire_unplaced);
                }
                GatewayTimer::RestartWatch(conn) => {
                    self.with_client(conn, ClientConnection::restart_watch);
                }
                GatewayTimer::Merge(token) => {
                    self.with_merge(token, |it, parts| {
                        it.update_merge(parts, token, PendingMerge::stop_waiting);
                    });
                }
            }
        }
    }

    /// Answers all pending requests and closes all clients. Their turns continue on the hosts, and
    /// the clients can reconnect through another gateway.
    fn on_stop(&mut self) {
        if std::mem::replace(&mut self.is_stopping, true) {
            return;
        }
        for client in self.clients.iter_mut() {
            client.stop_client(&mut self.parts);
        }
        self.finish_stop();
    }

    fn finish_stop(&mut self) {
        if self.is_stopping && self.clients.is_empty() {
            self.parts.cx.push_output(GatewayOutput::Stopped);
        }
    }
}
