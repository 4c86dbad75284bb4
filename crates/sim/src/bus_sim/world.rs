//! The steps of a run around the bus, and its end.

use super::expectations::BusExpectations;
use crate::hub_sim::RunTally;
use jackfield_bus::routing::{
    Bus, BusConfig, BusInput, BusLimits, HealthCheck, OuterSessionId, PoolConfig, RestartRule,
    SessionAffinity, WorkerCommand, WorkerDeathRule, WorkerId,
};
use jackfield_hub::{ConnId, Time};
use jackfield_test_support::rng::Rng;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

const CLIENTS_MAX: usize = 5;

pub(super) struct BusWorld {
    pub(super) bus: Bus,
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) config: BusConfig,
    pub(super) limits: BusLimits,
    pub(super) clients: BTreeMap<ConnId, BusClient>,
    pub(super) workers: BTreeMap<WorkerId, BusWorker>,
    pub(super) expectations: BusExpectations,
    pub(super) affinities: BTreeMap<Arc<str>, SessionAffinity>,
    /// The limit of workers per pool. Not checked after a reload, because retiring workers come on top.
    pub(super) workers_max: BTreeMap<Arc<str>, usize>,
    pub(super) tally: RunTally,
    pub(super) trace: VecDeque<String>,
    pub(super) traced: bool,
    pub(super) stopped: bool,
    next_conn: u64,
    pub(super) next_number: u64,
}

#[derive(Default)]
pub(super) struct BusClient {
    /// The lengths of unread messages.
    pub(super) queue: VecDeque<usize>,
    pub(super) paused: bool,
    pub(super) closing: bool,
    pub(super) finished: bool,
    /// Open asks: the bus's request id and the number of the ask.
    pub(super) open_asks: BTreeMap<u64, u64>,
    /// The sessions that it uses.
    pub(super) sessions: Vec<String>,
    /// Requests that it sent while it was paused.
    pub(super) sent_since_pause: usize,
}

#[derive(Default)]
pub(super) struct BusWorker {
    pub(super) queue: VecDeque<QueuedLine>,
    pub(super) tasks: Vec<WorkerTask>,
    pub(super) paused: bool,
    pub(super) stopping: bool,
    pub(super) sessions: BTreeSet<String>,
    pub(super) started: bool,
}

pub(super) struct QueuedLine {
    pub(super) bytes: usize,
    pub(super) message: Value,
}

/// A request that a worker has read and not answered.
pub(super) struct WorkerTask {
    pub(super) message: Value,
    /// The id of the new session, if the worker has mentioned it already.
    pub(super) session: Option<String>,
}

impl BusWorld {
    pub(super) fn new(seed: u64, traced: bool) -> BusWorld {
        let mut rng = Rng::new(seed);
        let pools = (0..=rng.below(3)).map(|it| pool(&mut rng, it)).collect();
        let limits = BusLimits {
            outbox_bytes_max: 1_500,
            restarts_max: 5,
            restart_window_ms: 1_000,
            drain_ms: 500,
            backpressure_ms: 300,
            sessions_max: rng.pick(&[8, 1_000, 1_000]),
            pending_max: rng.pick(&[12, 1_000, 1_000]),
            clients_max: CLIENTS_MAX - 1,
        };
        let config = BusConfig { pools, limits, launcher: None };
        let affinities = config.pools.iter().map(|it| (it.id.clone(), it.affinity)).collect();
        let workers_max = config.pools.iter().map(|it| (it.id.clone(), it.instances)).collect();
        let mut world = BusWorld {
            bus: Bus::new(config.clone(), Time(0)),
            now: 0,
            rng,
            config,
            limits,
            clients: BTreeMap::new(),
            workers: BTreeMap::new(),
            expectations: BusExpectations::default(),
            affinities,
            workers_max,
            tally: RunTally::default(),
            trace: VecDeque::new(),
            traced,
            stopped: false,
            next_conn: 0,
            next_number: 0,
        };
        world.drain_outputs();
        world
    }

    pub(super) fn step(&mut self) {
        match self.rng.below(100) {
            0..=3 => self.connect_client(),
            4..=33 => self.client_sends(),
            34..=46 => self.client_reads(),
            47..=60 => self.worker_reads(),
            61..=86 => self.worker_sends(),
            87 => self.client_disconnects(),
            88 if self.rng.chance(50) => self.worker_exits(),
            89..=90 => self.advance_clock(400),
            91 if self.rng.chance(30) => self.reload(),
            _ => self.advance_clock(30),
        }
    }

    pub(super) fn pick_client(&mut self) -> Option<ConnId> {
        let open = self.clients.iter().filter(|(_, it)| !it.closing && !it.finished);
        let open: Vec<ConnId> = open.map(|(conn, _)| *conn).collect();
        (!open.is_empty()).then(|| self.rng.pick(&open))
    }

    pub(super) fn pick_worker(&mut self) -> Option<WorkerId> {
        let alive: Vec<WorkerId> = self.workers.keys().copied().collect();
        (!alive.is_empty()).then(|| self.rng.pick(&alive))
    }

    pub(super) fn connect_client(&mut self) {
        if self.clients.len() < CLIENTS_MAX {
            self.next_conn += 1;
            let conn = ConnId(self.next_conn);
            self.clients.insert(conn, BusClient::default());
            self.feed_input(BusInput::ClientOpened { conn });
        }
    }

    fn advance_clock(&mut self, ms_max: u64) {
        self.now += self.rng.below(ms_max);
        let due = self.bus.poll_timeout().is_some_and(|at| at.0 <= self.now);
        if due {
            self.feed_input(BusInput::Tick);
        }
        let ending: Vec<WorkerId> =
            self.workers.iter().filter(|it| it.1.stopping).map(|it| *it.0).collect();
        for worker in ending {
            if self.rng.chance(50) {
                self.end_worker(worker, true);
            }
        }
    }

    fn reload(&mut self) {
        self.tally.count("reloads");
        let mut config = self.config.clone();
        let at = self.rng.index(config.pools.len());
        match self.rng.below(4) {
            0 if 1 < config.pools.len() => _ = config.pools.remove(at),
            1 => {
                let argv = vec![format!("other-{}", self.now)];
                config.pools[at].command = Arc::new(WorkerCommand { argv, env: vec![], cwd: None });
            }
            _ => config.pools[at].instances = 1 + self.rng.index(4),
        }
        // Workers that retire run as long as clients use them.
        self.workers_max.clear();
        self.config = config.clone();
        self.feed_input(BusInput::Reload { config });
    }

    /// All participants read and answer until no request is open; then the bus stops.
    pub(super) fn settle(&mut self) {
        self.run_until_idle();
        for ((conn, id), asked) in &self.expectations.open_requests {
            let is_connected = self.clients.get(conn).is_some_and(|it| !it.closing);
            assert!(!is_connected, "{conn} never receives a response to {id}: {asked:?}");
        }
        // A worker that was asked to stop receives nothing more.
        self.expectations.worker_requests.retain(|(worker, _), _| !self.workers[worker].stopping);
        assert!(
            self.expectations.worker_requests.is_empty(),
            "workers never receive responses: {:?}",
            self.expectations.worker_requests
        );
        assert_eq!(self.bus.gauges().pending, 0);
        // All output is read, so no party may stay paused.
        for (conn, client) in &self.clients {
            assert!(client.closing || !client.paused, "{conn} stays paused");
        }
        for (worker, it) in &self.workers {
            assert!(!it.paused, "{worker} stays paused");
        }
        self.feed_input(BusInput::Stop);
        for _ in 0..20 {
            self.advance_clock(1_000);
        }
        let left: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in left {
            assert!(self.workers[&worker].stopping, "{worker} is not asked to stop");
            self.end_worker(worker, true);
        }
        assert!(self.stopped, "the bus does not stop");
        assert!(self.clients.values().all(|it| it.closing), "a client is still connected");
    }

    fn run_until_idle(&mut self) {
        for _ in 0..2_000 {
            let conns: Vec<ConnId> = self.clients.keys().copied().collect();
            let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
            for conn in &conns {
                if self.clients[conn].closing {
                    self.clients.remove(conn);
                    self.feed_input(BusInput::ClientGone { conn: *conn });
                    continue;
                }
                let bytes = self.clients.get_mut(conn).map_or(0, |it| it.read(usize::MAX));
                self.feed_input(BusInput::ClientWrote { conn: *conn, bytes });
                let open = self.clients.get(conn).is_some_and(|it| !it.closing && !it.finished);
                if open {
                    self.answer_ask(*conn);
                }
            }
            for worker in &workers {
                let Some(it) = self.workers.get_mut(worker) else { continue };
                it.started = true;
                let bytes = it.read(usize::MAX);
                self.feed_input(BusInput::WorkerWrote { worker: *worker, bytes });
                self.worker_answers(*worker);
            }
            let idle = self.workers.values().all(|it| it.tasks.is_empty() && it.queue.is_empty());
            let asked = self.clients.values().any(|it| !it.open_asks.is_empty());
            if idle && !asked {
                return;
            }
        }
        panic!("the world does not become idle");
    }
}

fn pool(rng: &mut Rng, number: u64) -> PoolConfig {
    let command = WorkerCommand { argv: vec!["worker".to_owned()], env: Vec::new(), cwd: None };
    let health = HealthCheck { method: "ping".into(), every_ms: 200, timeout_ms: 400 };
    PoolConfig {
        id: format!("p{number}").into(),
        command: Arc::new(command),
        instances: 1 + rng.index(3),
        restart: rng.pick(&[RestartRule::Always, RestartRule::OnFailure]),
        affinity: rng.pick(&[
            SessionAffinity::Session,
            SessionAffinity::Session,
            SessionAffinity::Connection,
        ]),
        on_death: rng.pick(&[WorkerDeathRule::Move, WorkerDeathRule::End]),
        outer_session_id: OuterSessionId::default(),
        health: rng.chance(30).then_some(health),
    }
}
