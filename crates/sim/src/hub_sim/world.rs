//! The hub in its world: one step at a time, chosen by the seed.

use super::{
    agent::{AgentProcess, PROGRAMS},
    check::{
        self, AskTracker, FailureTracker, LogTracker, QueueTracker, RestoreTracker, SleepTracker,
    },
    client::{ClientConnection, SimulatedClient},
    disk::{CrashResult, SimulatedDisk},
    fault_rates::FaultRates,
    hub_settings::HubSettings,
    session_moves::SessionMoves,
    tally::RunTally,
    tenants::SimulatedTenants,
    trace::RunTrace,
};
use jackfield_events::{AgentName, AgentSessionId};
use jackfield_hub::{
    AgentId, ByteLimits, Config, ConnId, Hub, Input, Launch, Limits, Recovered, SessionId, Time,
    VariantChoice,
};
use jackfield_test_support::rng::Rng;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// The state of a run; one seed decides everything in it.
pub(super) struct HubWorld {
    pub(super) rng: Rng,
    pub(super) fault_rates: FaultRates,
    pub(super) hub_settings: HubSettings,
    pub(super) limits: Limits,
    pub(super) now: Time,
    pub(super) hub: Hub,
    /// The number of hubs that ran before this one.
    pub(super) hub_number: u64,
    seed: u64,
    pub(super) disk: SimulatedDisk,
    pub(super) clients: Vec<SimulatedClient>,
    pub(super) conns: BTreeMap<ConnId, ClientConnection>,
    pub(super) procs: BTreeMap<AgentId, AgentProcess>,
    /// The sessions that each program has stored.
    pub(super) stored_sessions: Vec<BTreeSet<AgentSessionId>>,
    /// Sessions that clients know.
    pub(super) known_sessions: Vec<SessionId>,
    pub(super) log_tracker: LogTracker,
    pub(super) ask_tracker: AskTracker,
    pub(super) queue_tracker: QueueTracker,
    pub(super) sleep_tracker: SleepTracker,
    pub(super) restore_tracker: RestoreTracker,
    pub(super) failure_tracker: FailureTracker,
    pub(super) session_moves: SessionMoves,
    pub(super) tenants: SimulatedTenants,
    /// Marks of unlogged notifications, and the sessions they were sent in.
    pub(super) unlogged: BTreeMap<u64, AgentSessionId>,
    pub(super) tally: RunTally,
    pub(super) trace: RunTrace,
    /// Faults have stopped.
    pub(super) faults_stopped: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    pub(super) next_conn: u64,
    pub(super) next_mark: u64,
}

/// So small that every limit is reached.
const LIMITS: Limits = Limits {
    outbox_bytes_max: 3000,
    outbox_bytes_low: 700,
    held_bytes_max: 4000,
    held_bytes_low: 2000,
    held_bytes_all_max: 8000,
    outbox_bytes_all_max: 5000,
    // Larger than what waits for one client: the clients of this world expect all of their messages.
    kept: ByteLimits { own_max: 40_000, own_min: 1_000, all_max: 80_000 },
    pending_per_conn_max: 12,
    queue_max: 3,
    parked_max: 3,
    early_max: 64,
    asks_max: 3,
    list_page: 2,
};

impl HubWorld {
    pub(super) fn new(seed: u64, traced: bool) -> HubWorld {
        let mut rng = Rng::new(seed);
        let fault_rates = FaultRates::new(&mut rng);
        let hub_settings = HubSettings::new(&mut rng);
        let clients = 2 + rng.index(3);
        let mut relays = rng.clone();
        let mut apart = Rng::new(seed ^ 0x7E4A_4715);
        let tenants = SimulatedTenants::new(&mut apart);
        let mut client = |n: usize| {
            let aware = n.is_multiple_of(2);
            let relay = aware && relays.chance(60);
            let tenant = tenants.pick(&mut apart);
            SimulatedClient {
                aware,
                relay,
                tenant,
                conn: None,
                cursors: BTreeMap::new(),
                unanswered_prompts: Vec::new(),
            }
        };
        let clients = (0..clients).map(&mut client).collect();
        HubWorld {
            fault_rates,
            hub_settings,
            limits: LIMITS,
            now: Time(1_000_000),
            hub: Hub::new(hub_settings.configure(config(seed, 0)), Time(1_000_000), []),
            hub_number: 0,
            seed,
            disk: SimulatedDisk::default(),
            clients,
            conns: BTreeMap::new(),
            procs: BTreeMap::new(),
            stored_sessions: vec![BTreeSet::new(); PROGRAMS.len()],
            known_sessions: Vec::new(),
            log_tracker: LogTracker::default(),
            ask_tracker: AskTracker::default(),
            queue_tracker: QueueTracker::default(),
            sleep_tracker: SleepTracker::default(),
            restore_tracker: RestoreTracker::default(),
            failure_tracker: FailureTracker::default(),
            session_moves: SessionMoves::default(),
            tenants,
            unlogged: BTreeMap::new(),
            tally: RunTally::default(),
            trace: RunTrace::new(traced),
            faults_stopped: false,
            stopping: false,
            stopped: false,
            next_conn: 0,
            next_mark: 0,
            rng,
        }
    }

    /// Runs one step.
    pub(super) fn step(&mut self) {
        self.now = self.now.plus(self.rng.below(15));
        if self.stopped && self.procs.is_empty() {
            return self.restart_hub();
        }
        match self.rng.below(100) {
            0..=35 => {
                for _ in 0..=self.rng.below(3) {
                    self.deliver_input();
                }
            }
            36..=56 => {
                for _ in 0..=self.rng.below(3) {
                    self.run_some_agent();
                }
            }
            57..=68 => self.run_client(),
            69..=78 => self.client_reads(),
            79..=93 => {
                for _ in 0..=self.rng.below(3) {
                    self.run_disk_step();
                }
            }
            94..=95 => self.advance_clock(),
            _ => self.inject_fault(),
        }
    }

    fn inject_fault(&mut self) {
        // This branch runs in one of twenty-five steps, so the rates are multiplied by that.
        if self.rng.chance_per_ten_thousand(25 * self.fault_rates.crash) {
            return self.crash_hub();
        }
        if self.rng.chance_per_ten_thousand(25 * self.fault_rates.stop) && !self.stopping {
            return self.stop_hub();
        }
        if self.rng.chance_per_ten_thousand(25 * self.hub_settings.pressure) {
            self.tally.count("memory pressure");
            return self.feed_input(Input::Pressure);
        }
        if self.rng.chance_per_ten_thousand(25 * self.fault_rates.moves) && !self.stopping {
            return self.move_session();
        }
        if self.rng.chance_per_ten_thousand(25 * self.fault_rates.disconnect) {
            let client = self.rng.index(self.clients.len());
            if self.rng.chance(25) {
                self.finish_client(client);
            } else {
                self.disconnect_client(client);
            }
        }
    }

    pub(super) fn stop_hub(&mut self) {
        self.tally.count("orderly stops");
        self.stopping = true;
        self.feed_input(Input::Stop);
    }

    pub(super) fn on_stopped(&mut self) {
        check::check_invariant("stop_is_reported_once", self.stopping && !self.stopped, || {
            "the hub reported that it has stopped".into()
        });
        self.stopped = true;
        self.stop_leaves_nothing_open();
    }

    /// The hub's process is killed: its memory, connections, agents and undurable events are lost.
    fn crash_hub(&mut self) {
        self.tally.count("crashes");
        self.trace.note(self.now, || "-- the daemon crashes".into());
        self.log_tracker.pending_updates.clear();
        self.restart_hub();
    }

    pub(super) fn restart_hub(&mut self) {
        for client in &mut self.clients {
            client.conn = None;
        }
        for it in
            std::mem::take(&mut self.conns).into_values().filter(|it| it.relay && !it.has_left)
        {
            // The gateway still runs, and so do the clients behind it.
            let prompts =
                it.pending.into_values().filter(|it| it.kind == check::RequestKind::Prompt);
            let prompts = prompts.filter_map(|it| Some((it.session?, it.token)));
            self.clients[it.client].unanswered_prompts.extend(prompts);
        }
        self.session_moves.on_restart();
        for agent in std::mem::take(&mut self.procs).into_keys() {
            self.ask_tracker.on_agent_gone(agent);
        }
        let mut streams = std::mem::take(&mut self.disk.streams);
        for (session, stream) in &mut streams {
            let CrashResult { landed, torn } = stream.crash(&mut self.rng);
            self.on_durable(session, &landed);
            if torn {
                self.tally.count("appends torn by a crash");
            }
        }
        streams.retain(|_, it| 0 < it.durable());
        if !std::mem::take(&mut self.disk.copies).is_empty() {
            self.tally.count("forks interrupted by a crash");
        }
        self.disk.copied.clear();
        let mut recovered = Vec::new();
        for (session, stream) in &mut streams {
            let state = stream.recovered();
            check::recovered_state_equals_folded_log(session, &state, &stream.events);
            stream.head = stream.durable();
            stream.acked = stream.durable();
            if self.session_moves.is_unowned(session) {
                continue;
            }
            recovered.push(Recovered { session: session.clone(), state });
        }
        self.restore_tracker.on_restart(&recovered);
        self.failure_tracker.on_restart();
        self.disk.streams = streams;
        if 0 < self.queue_tracker.on_restart() {
            self.tally.count("prompts held");
        }
        self.stopping = false;
        self.stopped = false;
        self.hub_number += 1;
        self.trace.note(self.now, || "-- a new daemon starts".into());
        self.reset_sleep_tracker();
        let config = self.hub_settings.configure(config(self.seed, self.hub_number));
        self.hub = Hub::new(config, self.now, recovered);
        self.drain_outputs();
    }

    /// The clock reaches the next deadline, with or without a tick.
    fn advance_clock(&mut self) {
        let Some(at) = self.hub.poll_timeout() else { return };
        let far = self.now.plus(20_000) < at;
        if far && !self.rng.chance(5) {
            return;
        }
        self.now = self.now.max(at);
        if self.rng.chance(90) {
            self.feed_input(Input::Tick);
        }
    }
}

fn config(seed: u64, life: u64) -> Config {
    let launch = |(name, _, _): &(&str, bool, bool)| {
        let name = AgentName::from(*name);
        let launch = Launch {
            name: name.clone(),
            argv: vec![name.to_string()],
            cwd: PathBuf::from("/x"),
            env: None,
            variant: VariantChoice::Any,
            sandbox: jackfield_hub::SandboxRequest::default(),
        };
        (name, launch)
    };
    Config {
        agents: PROGRAMS.iter().map(launch).collect(),
        default_agent: Some(PROGRAMS[0].0.into()),
        seed: seed.wrapping_mul(1_000_003).wrapping_add(life),
        limits: LIMITS,
        ..Config::default()
    }
}
