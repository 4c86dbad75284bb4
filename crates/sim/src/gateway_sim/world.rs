//! What can happen around a gateway, and the end of a run.

use super::log::{Logs, Place};
use crate::hub_sim::Tally;
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

pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) limits: GatewayLimits,
    pub(super) clients: BTreeMap<ConnId, Client>,
    pub(super) hosts: BTreeMap<HostId, Machine>,
    pub(super) host_conns: BTreeMap<HostConnectionId, HostConnection>,
    pub(super) logs: Logs,
    /// What the gateway wants to know and was not told yet.
    pub(super) locates: Vec<(SessionId, Option<HostId>)>,
    pub(super) lists: Vec<u64>,
    pub(super) tally: Tally,
    pub(super) trace: VecDeque<String>,
    pub(super) traced: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    pub(super) next: u64,
}

#[derive(Default)]
pub(super) struct Client {
    /// Whose it is; nobody's is the operator's.
    pub(super) tenant: Option<&'static str>,
    /// Lengths of the texts that it has not read.
    pub(super) queue: VecDeque<usize>,
    pub(super) paused: bool,
    pub(super) closing: bool,
    pub(super) finished: bool,
    pub(super) asked: BTreeMap<u64, Asked>,
    pub(super) next_id: u64,
    /// What it was asked, by the gateway's id.
    pub(super) asks: BTreeMap<u64, u64>,
    /// Sessions that it was told it hears, and how far it has heard each.
    pub(super) attached: BTreeSet<String>,
    pub(super) heard: BTreeMap<String, Place>,
}

impl Client {
    pub(super) fn may_know(&self, session: &str) -> bool {
        self.tenant.is_none() || tenant_of(session) == self.tenant
    }
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) token: u64,
    pub(super) method: &'static str,
    pub(super) session: Option<String>,
}

pub(super) struct Machine {
    pub(super) alive: bool,
    pub(super) incarnation: u64,
    pub(super) draining: bool,
    /// It refuses everything, and ends soon.
    pub(super) stopping: bool,
}

pub(super) struct HostConnection {
    pub(super) host: HostId,
    /// Whose it was said to be.
    pub(super) tenant: Option<String>,
    pub(super) inbox: VecDeque<Bytes>,
    pub(super) outbox: VecDeque<Value>,
    pub(super) paused: bool,
    pub(super) began: bool,
    pub(super) hears: BTreeSet<String>,
    /// Turns of sessions that it waits for, and under which id.
    pub(super) owed: BTreeMap<(String, u64), Value>,
    pub(super) asks: BTreeMap<u64, (String, u64)>,
    pub(super) next_ask: u64,
}

impl HostConnection {
    pub(super) fn forget(&mut self, session: &str) {
        self.hears.remove(session);
        self.owed.retain(|(of, _), _| of != session);
        self.asks.retain(|_, (of, _)| of != session);
    }
}

/// Sessions on a page.
const LISTED_MAX: usize = 4;

fn listed(session: &str) -> ListedSession {
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

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> World {
        let rng = Rng::new(seed);
        let limits = GatewayLimits {
            clients_max: 4,
            outbox_bytes_max: 3_000,
            untaken_bytes_max: 2_000,
            pending_max: 8,
            kept_bytes_max: 1_200,
            kept_bytes_all_max: 3_000,
            waiting_max: 5,
            lost_ms: 2_000,
            merge_ms: 300,
            retry_ms: 50,
        };
        let machine =
            |incarnation| Machine { alive: true, incarnation, draining: false, stopping: false };
        let hosts = (0..3).map(|it| (format!("h{it}").into(), machine(it))).collect();
        let config = GatewayConfig { seed, agent: None, limits };
        let mut world = World {
            gateway: Gateway::new(config, Time(0)),
            now: 0,
            rng,
            limits,
            clients: BTreeMap::new(),
            hosts,
            host_conns: BTreeMap::new(),
            logs: Logs::new(),
            locates: Vec::new(),
            lists: Vec::new(),
            tally: Tally::default(),
            trace: VecDeque::new(),
            traced,
            stopping: false,
            stopped: false,
            next: 0,
        };
        world.tell_hosts();
        world
    }

    pub(super) fn step(&mut self) {
        match self.rng.below(100) {
            0..=3 => self.client_comes(),
            4..=28 => self.client_speaks(),
            29..=40 => {
                let texts = 1 + self.rng.index(8);
                if let Some(conn) = self.some(|it| it.clients.keys().copied().collect()) {
                    self.client_reads(conn, texts);
                }
            }
            41..=58 => {
                let count = 1 + self.rng.index(5);
                if let Some(host_conn) = self.some_host_conn() {
                    self.host_reads(host_conn, count);
                }
            }
            59..=76 => {
                let count = 1 + self.rng.index(6);
                if let Some(host_conn) = self.some_host_conn() {
                    self.host_conn_speaks(host_conn, count);
                }
            }
            77..=84 => self.host_works(),
            85..=90 => self.fleet_answers(true),
            91 => self.client_leaves(),
            92 => self.trouble(),
            93 => self.time_passes(800),
            _ => self.time_passes(60),
        }
    }

    fn some<T: Copy>(&mut self, of: impl Fn(&World) -> Vec<T>) -> Option<T> {
        let all = of(self);
        (!all.is_empty()).then(|| self.rng.pick(&all))
    }

    fn some_host_conn(&mut self) -> Option<HostConnectionId> {
        self.some(|it| it.host_conns.keys().copied().collect())
    }

    /// Hosts die, come back and are drained; host connections end.
    fn trouble(&mut self) {
        let names: Vec<HostId> = self.hosts.keys().cloned().collect();
        let name = names[self.rng.index(names.len())].clone();
        match self.rng.below(10) {
            0..=2 => {
                if let Some(host_conn) = self.some_host_conn() {
                    self.host_conn_ends(host_conn);
                }
            }
            3 => self.hosts.get_mut(&name).expect("picked").stopping = true,
            4..=5 => self.host_dies(&name),
            6 => {
                let host = self.hosts.get_mut(&name).expect("picked");
                host.draining = host.alive && !host.draining;
            }
            _ => self.hosts.get_mut(&name).expect("picked").alive = true,
        }
        if self.rng.chance(70) {
            self.tell_hosts();
        }
    }

    fn tell_hosts(&mut self) {
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
        self.feed(GatewayInput::Hosts(hosts));
    }

    fn time_passes(&mut self, most_ms: u64) {
        self.now += self.rng.below(most_ms);
        if self.gateway.poll_timeout().is_some_and(|at| at.0 <= self.now) {
            self.feed(GatewayInput::Tick);
        }
    }

    /// One of the gateway's questions is answered, now and then wrongly.
    fn fleet_answers(&mut self, may_err: bool) {
        if let Some(token) = self.lists.pop() {
            // Whatever there is, as if nobody had looked whose it is.
            let sessions = self.logs.keys().take(LISTED_MAX).map(|it| listed(it)).collect();
            let page = Ok(SessionPage { sessions, next: None });
            return self.feed(GatewayInput::SessionsListed { token, page });
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
        self.feed(GatewayInput::Located { session, owner });
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

    /// Trouble ends: everyone is answered and hears everything, and the gateway stops.
    pub(super) fn settle(&mut self) {
        let stopping =
            self.hosts.iter().filter(|(_, it)| it.stopping).map(|(name, _)| name.clone());
        for name in stopping.collect::<Vec<_>>() {
            self.host_dies(&name);
        }
        for host in self.hosts.values_mut() {
            (host.alive, host.draining) = (true, false);
        }
        self.tell_hosts();
        self.quiet();
        for (conn, client) in &self.clients {
            assert!(!client.paused || client.closing, "{conn} is never read again");
            for (session, log) in &self.logs {
                if client.attached.contains(session) && !client.closing {
                    let heard = client.heard.get(session).copied();
                    assert_eq!(log.after(heard), None, "{conn} stopped hearing {session}");
                }
            }
        }
        let gauges = self.gateway.gauges();
        assert_eq!((gauges.pending, gauges.kept_bytes, gauges.searches), (0, 0, 0));
        self.stopping = true;
        self.feed(GatewayInput::Stop);
        for conn in self.clients.keys().copied().collect::<Vec<_>>() {
            assert!(self.clients[&conn].closing, "{conn} is left");
            self.clients.remove(&conn);
            self.feed(GatewayInput::ClientGone { conn });
        }
        assert!(self.stopped, "the gateway does not stop");
        assert!(self.host_conns.is_empty(), "host connections are left");
    }

    fn quiet(&mut self) {
        for round in 0..400 {
            for conn in self.clients.keys().copied().collect::<Vec<_>>() {
                if self.clients[&conn].closing {
                    self.clients.remove(&conn);
                    self.feed(GatewayInput::ClientGone { conn });
                    continue;
                }
                self.client_reads(conn, usize::MAX);
                // What hubs have forgotten is withdrawn when everything they said has come.
                if 20 < round && !self.clients[&conn].finished {
                    self.nobody_is_asked_in_vain(conn);
                    self.answer_ask(conn);
                }
            }
            for host_conn in self.host_conns.keys().copied().collect::<Vec<_>>() {
                self.host_reads(host_conn, 50);
                self.host_conn_speaks(host_conn, 50);
            }
            for session in self.logs.keys().cloned().collect::<Vec<_>>() {
                if self.logs[&session].owner.is_some() {
                    self.end_turn(&session, false);
                }
            }
            self.fleet_answers(false);
            self.time_passes(100);
            let idle = |it: &HostConnection| it.inbox.is_empty() && it.outbox.is_empty();
            let reads = |it: &Client| !it.closing && it.queue.is_empty();
            let waits = |it: &Client| !reads(it) || !it.asked.is_empty() || !it.asks.is_empty();
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
        let waiting = self.clients.iter().filter(|(_, it)| !it.asked.is_empty());
        let waiting: Vec<_> = waiting.map(|(conn, it)| (conn, &it.asked)).collect();
        panic!("the world does not come to rest: {waiting:?}");
    }
}
