//! The steps of a run around the gateway, and its end.

use super::log::{LogPosition, SessionLogs};
use crate::hub_sim::RunTally;
use bytes::Bytes;
use jackfield_events::HostId;
use jackfield_fleet::gateway::{
    Gateway, GatewayConfig, GatewayInput, GatewayLimits, Host, HostConnectionId, ListedSession,
    SessionPage,
};
use jackfield_hub::{ConnId, SessionId, Time, tenant_of};
use jackfield_protocol::Fault;
use jackfield_test_support::rng::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) struct GatewayWorld {
    pub(super) gateway: Gateway,
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) limits: GatewayLimits,
    pub(super) clients: BTreeMap<ConnId, GatewayClient>,
    pub(super) hosts: BTreeMap<HostId, SimulatedHost>,
    pub(super) host_conns: BTreeMap<HostConnectionId, HostConnection>,
    pub(super) logs: SessionLogs,
    /// Open lookups of the gateway.
    pub(super) locates: Vec<(SessionId, Option<HostId>)>,
    pub(super) lists: Vec<u64>,
    pub(super) tally: RunTally,
    pub(super) trace: VecDeque<String>,
    pub(super) traced: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    pub(super) next_number: u64,
}

#[derive(Default)]
pub(super) struct GatewayClient {
    /// The client's tenant; `None` is the operator.
    pub(super) tenant: Option<&'static str>,
    /// The lengths of unread messages.
    pub(super) queue: VecDeque<usize>,
    pub(super) paused: bool,
    pub(super) closing: bool,
    pub(super) finished: bool,
    pub(super) open_requests: BTreeMap<u64, OpenRequest>,
    pub(super) next_id: u64,
    /// Open asks by the gateway's request id.
    pub(super) open_asks: BTreeMap<u64, u64>,
    /// The sessions that it is subscribed to, and its position in each.
    pub(super) attached: BTreeSet<String>,
    pub(super) positions: BTreeMap<String, LogPosition>,
}

impl GatewayClient {
    pub(super) fn can_access(&self, session: &str) -> bool {
        self.tenant.is_none() || tenant_of(session) == self.tenant
    }
}

#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) token: u64,
    pub(super) method: &'static str,
    pub(super) session: Option<String>,
}

pub(super) struct SimulatedHost {
    pub(super) alive: bool,
    pub(super) incarnation: u64,
    pub(super) draining: bool,
    /// It refuses all requests and exits soon.
    pub(super) stopping: bool,
}

pub(super) struct HostConnection {
    pub(super) host: HostId,
    /// The tenant that the gateway bound the connection to.
    pub(super) tenant: Option<String>,
    pub(super) inbox: VecDeque<Bytes>,
    pub(super) outbox: VecDeque<Value>,
    pub(super) paused: bool,
    pub(super) has_started: bool,
    pub(super) subscriptions: BTreeSet<String>,
    /// Turns that it waits for: session and turn, and the request id.
    pub(super) waiting_turns: BTreeMap<(String, u64), Value>,
    pub(super) open_asks: BTreeMap<u64, (String, u64)>,
    pub(super) next_ask: u64,
}

impl HostConnection {
    pub(super) fn forget(&mut self, session: &str) {
        self.subscriptions.remove(session);
        self.waiting_turns.retain(|(of, _), _| of != session);
        self.open_asks.retain(|_, (of, _)| of != session);
    }
}

/// Sessions on a page.
const LISTED_MAX: usize = 4;

fn listed_session(session: &str) -> ListedSession {
    ListedSession {
        session: session.into(),
        agent: "x".into(),
        cwd: "/x".to_owned(),
        title: None,
        state: "asleep".to_owned(),
        updated_at: Time(0),
        host: None,
    }
}

impl GatewayWorld {
    pub(super) fn new(seed: u64, traced: bool) -> GatewayWorld {
        let rng = Rng::new(seed);
        let limits = GatewayLimits {
            clients_max: 4,
            outbox_bytes_max: 3_000,
            unsent_bytes_max: 2_000,
            pending_max: 8,
            retained_bytes_max: 1_200,
            retained_bytes_total_max: 3_000,
            waiting_max: 5,
            owner_wait_ms: 2_000,
            merge_ms: 300,
            retry_ms: 50,
        };
        let host = |incarnation| SimulatedHost {
            alive: true,
            incarnation,
            draining: false,
            stopping: false,
        };
        let hosts = (0..3).map(|it| (format!("h{it}").into(), host(it))).collect();
        let config = GatewayConfig { seed, agent: None, limits };
        let mut world = GatewayWorld {
            gateway: Gateway::new(config, Time(0)),
            now: 0,
            rng,
            limits,
            clients: BTreeMap::new(),
            hosts,
            host_conns: BTreeMap::new(),
            logs: SessionLogs::new(),
            locates: Vec::new(),
            lists: Vec::new(),
            tally: RunTally::default(),
            trace: VecDeque::new(),
            traced,
            stopping: false,
            stopped: false,
            next_number: 0,
        };
        world.announce_hosts();
        world
    }

    pub(super) fn step(&mut self) {
        match self.rng.below(100) {
            0..=3 => self.connect_client(),
            4..=28 => self.client_sends(),
            29..=40 => {
                let texts = 1 + self.rng.index(8);
                if let Some(conn) = self.pick_one(|it| it.clients.keys().copied().collect()) {
                    self.client_reads(conn, texts);
                }
            }
            41..=58 => {
                let count = 1 + self.rng.index(5);
                if let Some(host_conn) = self.pick_host_conn() {
                    self.host_reads(host_conn, count);
                }
            }
            59..=76 => {
                let count = 1 + self.rng.index(6);
                if let Some(host_conn) = self.pick_host_conn() {
                    self.deliver_host_output(host_conn, count);
                }
            }
            77..=84 => self.run_session_step(),
            85..=90 => self.answer_lookup(true),
            91 => self.client_disconnects(),
            92 => self.inject_fault(),
            93 => self.advance_clock(800),
            _ => self.advance_clock(60),
        }
    }

    fn pick_one<T: Copy>(&mut self, of: impl Fn(&GatewayWorld) -> Vec<T>) -> Option<T> {
        let all = of(self);
        (!all.is_empty()).then(|| self.rng.pick(&all))
    }

    fn pick_host_conn(&mut self) -> Option<HostConnectionId> {
        self.pick_one(|it| it.host_conns.keys().copied().collect())
    }

    /// Hosts exit, restart and drain; host connections end.
    fn inject_fault(&mut self) {
        let names: Vec<HostId> = self.hosts.keys().cloned().collect();
        let name = names[self.rng.index(names.len())].clone();
        match self.rng.below(10) {
            0..=2 => {
                if let Some(host_conn) = self.pick_host_conn() {
                    self.end_host_conn(host_conn);
                }
            }
            3 => self.hosts.get_mut(&name).expect("picked").stopping = true,
            4..=5 => self.lose_host(&name),
            6 => {
                let host = self.hosts.get_mut(&name).expect("picked");
                host.draining = host.alive && !host.draining;
            }
            _ => self.hosts.get_mut(&name).expect("picked").alive = true,
        }
        if self.rng.chance(70) {
            self.announce_hosts();
        }
    }

    fn announce_hosts(&mut self) {
        let alive = self.hosts.iter().filter(|(_, it)| it.alive);
        let hosts = alive.map(|(name, it)| Host {
            name: name.clone(),
            incarnation: it.incarnation,
            labels: BTreeSet::new(),
            shared: Vec::new(),
            agents: BTreeMap::new(),
            free: None,
            load: 0,
            sessions: 0,
            draining: it.draining,
            tenants: BTreeMap::new(),
        });
        let hosts = hosts.collect();
        self.feed_input(GatewayInput::HostsChanged(hosts));
    }

    fn advance_clock(&mut self, ms_max: u64) {
        self.now += self.rng.below(ms_max);
        if self.gateway.poll_timeout().is_some_and(|at| at.0 <= self.now) {
            self.feed_input(GatewayInput::Tick);
        }
    }

    /// Answers one lookup of the gateway, sometimes wrongly.
    fn answer_lookup(&mut self, may_err: bool) {
        if let Some(token) = self.lists.pop() {
            // Sessions of all tenants: the gateway must filter them.
            let sessions = self.logs.keys().take(LISTED_MAX).map(|it| listed_session(it)).collect();
            let page = Ok(SessionPage { sessions, next: None });
            return self.feed_input(GatewayInput::SessionsListed { token, page });
        }
        if self.locates.is_empty() {
            return;
        }
        let at = self.rng.index(self.locates.len());
        let (session, avoid) = self.locates.swap_remove(at);
        let owner = match self.rng.below(20) {
            0 if may_err => Err(Fault::NoHost { why: "none is free".to_owned() }),
            1 if may_err && self.logs.contains_key(&*session) => Ok("h1".into()),
            _ => self.owner_of(&session, avoid.as_ref()),
        };
        self.feed_input(GatewayInput::SessionLocated { session, owner });
    }

    fn owner_of(&mut self, session: &str, avoid: Option<&HostId>) -> Result<HostId, Fault> {
        let Some(log) = self.logs.get(session) else {
            return Err(Fault::SessionNotFound { session: session.to_owned() });
        };
        if let Some(owner) = &log.owner {
            return Ok(owner.clone());
        }
        let alive = self.hosts.iter().filter(|(_, it)| it.alive).map(|(name, _)| name.clone());
        let mut alive: Vec<HostId> = alive.collect();
        if 1 < alive.len() {
            alive.retain(|it| Some(it) != avoid);
        }
        if alive.is_empty() {
            return Err(Fault::NoHost { why: "none is there".to_owned() });
        }
        let host = alive[self.rng.index(alive.len())].clone();
        self.tally.count("sessions adopted");
        self.logs.get_mut(session).expect("found above").owner = Some(host.clone());
        self.end_turn(session, true);
        Ok(host)
    }

    /// Faults stop: all requests are answered, all events are delivered, and the gateway stops.
    pub(super) fn settle(&mut self) {
        let stopping =
            self.hosts.iter().filter(|(_, it)| it.stopping).map(|(name, _)| name.clone());
        for name in stopping.collect::<Vec<_>>() {
            self.lose_host(&name);
        }
        for host in self.hosts.values_mut() {
            (host.alive, host.draining) = (true, false);
        }
        self.announce_hosts();
        self.run_until_idle();
        for (conn, client) in &self.clients {
            assert!(!client.paused || client.closing, "{conn} stays paused");
            for (session, log) in &self.logs {
                if client.attached.contains(session) && !client.closing {
                    let position = client.positions.get(session).copied();
                    assert_eq!(
                        log.next_position(position),
                        None,
                        "{conn} misses events of {session}"
                    );
                }
            }
        }
        let gauges = self.gateway.gauges();
        assert_eq!((gauges.pending, gauges.retained_bytes, gauges.searches), (0, 0, 0));
        self.stopping = true;
        self.feed_input(GatewayInput::Stop);
        for conn in self.clients.keys().copied().collect::<Vec<_>>() {
            assert!(self.clients[&conn].closing, "{conn} is not closed");
            self.clients.remove(&conn);
            self.feed_input(GatewayInput::ClientGone { conn });
        }
        assert!(self.stopped, "the gateway does not stop");
        assert!(self.host_conns.is_empty(), "host connections are still open");
    }

    fn run_until_idle(&mut self) {
        for round in 0..400 {
            for conn in self.clients.keys().copied().collect::<Vec<_>>() {
                if self.clients[&conn].closing {
                    self.clients.remove(&conn);
                    self.feed_input(GatewayInput::ClientGone { conn });
                    continue;
                }
                self.client_reads(conn, usize::MAX);
                // Asks of released sessions are withdrawn after all output has arrived.
                if 20 < round && !self.clients[&conn].finished {
                    self.check_open_asks(conn);
                    self.answer_ask(conn);
                }
            }
            for host_conn in self.host_conns.keys().copied().collect::<Vec<_>>() {
                self.host_reads(host_conn, 50);
                self.deliver_host_output(host_conn, 50);
            }
            for session in self.logs.keys().cloned().collect::<Vec<_>>() {
                if self.logs[&session].owner.is_some() {
                    self.end_turn(&session, false);
                }
            }
            self.answer_lookup(false);
            self.advance_clock(100);
            let idle = |it: &HostConnection| it.inbox.is_empty() && it.outbox.is_empty();
            let reads = |it: &GatewayClient| !it.closing && it.queue.is_empty();
            let waits = |it: &GatewayClient| {
                !reads(it) || !it.open_requests.is_empty() || !it.open_asks.is_empty()
            };
            let asks = !self.locates.is_empty() || !self.lists.is_empty();
            let seeks = 0 < self.gateway.gauges().searches;
            if !asks
                && !seeks
                && self.host_conns.values().all(idle)
                && !self.clients.values().any(waits)
            {
                return;
            }
        }
        let waiting = self.clients.iter().filter(|(_, it)| !it.open_requests.is_empty());
        let waiting: Vec<_> = waiting.map(|(conn, it)| (conn, &it.open_requests)).collect();
        panic!("the world does not become idle: {waiting:?}");
    }
}
