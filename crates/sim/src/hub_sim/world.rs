//! The hub in its world: one thing happens at a time, chosen by the seed.

use super::{
    agent::{PROGRAMS, Process},
    check::{self, Asks, Facts, Failures, Queues, Rest, Wakes},
    client::{Client, Connection},
    disk::{Crashed, Disk, Luck},
    fleet::Fleet,
    habits::Habits,
    tally::Tally,
    temper::Temper,
    tenants::Tenants,
    trace::Trace,
};
use jackfield_events::{AgentName, AgentSessionId};
use jackfield_hub::{
    AgentId, ByteLimits, Config, ConnId, Hub, Input, Launch, Limits, Recovered, SessionId, Time,
};
use jackfield_test_support::rng::Rng;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// One seed decides everything that happens here.
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) temper: Temper,
    pub(super) habits: Habits,
    pub(super) limits: Limits,
    pub(super) now: Time,
    pub(super) hub: Hub,
    /// How many hubs there were.
    pub(super) lives: u64,
    seed: u64,
    pub(super) disk: Disk,
    pub(super) clients: Vec<Client>,
    pub(super) conns: BTreeMap<ConnId, Connection>,
    pub(super) procs: BTreeMap<AgentId, Process>,
    /// The sessions each program has on its own disk.
    pub(super) remembered: Vec<BTreeSet<AgentSessionId>>,
    /// Sessions that clients have heard of.
    pub(super) known: Vec<SessionId>,
    pub(super) facts: Facts,
    pub(super) asks: Asks,
    pub(super) queues: Queues,
    pub(super) rest: Rest,
    pub(super) wakes: Wakes,
    pub(super) failures: Failures,
    pub(super) fleet: Fleet,
    pub(super) tenants: Tenants,
    /// Marks of notifications that are not written down, and the sessions they were said in.
    pub(super) passing: BTreeMap<u64, AgentSessionId>,
    pub(super) tally: Tally,
    pub(super) trace: Trace,
    /// No more trouble.
    pub(super) calm: bool,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    pub(super) next_conn: u64,
    pub(super) next_mark: u64,
}

/// Where an input can come from. Within one source the order is kept; between two it is not.
#[derive(Debug, Clone)]
enum Source {
    Client(ConnId),
    Written(ConnId),
    Agent(AgentId),
    Writer(SessionId),
    Reader(SessionId),
    Copier,
}

/// So small that every bound is met.
const LIMITS: Limits = Limits {
    outbox_bytes_max: 3000,
    outbox_bytes_low: 700,
    held_bytes_max: 4000,
    held_bytes_low: 2000,
    held_bytes_all_max: 8000,
    outbox_bytes_all_max: 5000,
    // Larger than what waits for one client: the clients of this world expect to be heard out.
    kept: ByteLimits { own_max: 40_000, own_min: 1_000, all_max: 80_000 },
    pending_per_conn_max: 12,
    queue_max: 3,
    parked_max: 3,
    early_max: 64,
    asks_max: 3,
    list_page: 2,
};

impl World {
    pub(super) fn new(seed: u64, traced: bool) -> World {
        let mut rng = Rng::new(seed);
        let temper = Temper::new(&mut rng);
        let habits = Habits::new(&mut rng);
        let clients = 2 + rng.index(3);
        let mut relays = rng.clone();
        let mut apart = Rng::new(seed ^ 0x7E4A_4715);
        let tenants = Tenants::new(&mut apart);
        let mut client = |n: usize| {
            let aware = n.is_multiple_of(2);
            let relay = aware && relays.chance(60);
            let tenant = tenants.pick(&mut apart);
            Client { aware, relay, tenant, conn: None, cursors: BTreeMap::new(), again: Vec::new() }
        };
        let clients = (0..clients).map(&mut client).collect();
        World {
            temper,
            habits,
            limits: LIMITS,
            now: Time(1_000_000),
            hub: Hub::new(habits.configure(config(seed, 0)), Time(1_000_000), []),
            lives: 0,
            seed,
            disk: Disk::default(),
            clients,
            conns: BTreeMap::new(),
            procs: BTreeMap::new(),
            remembered: vec![BTreeSet::new(); PROGRAMS.len()],
            known: Vec::new(),
            facts: Facts::default(),
            asks: Asks::default(),
            queues: Queues::default(),
            rest: Rest::default(),
            wakes: Wakes::default(),
            failures: Failures::default(),
            fleet: Fleet::default(),
            tenants,
            passing: BTreeMap::new(),
            tally: Tally::default(),
            trace: Trace::new(traced),
            calm: false,
            stopping: false,
            stopped: false,
            next_conn: 0,
            next_mark: 0,
            rng,
        }
    }

    /// One thing happens.
    pub(super) fn step(&mut self) {
        self.now = self.now.plus(self.rng.below(15));
        if self.stopped && self.procs.is_empty() {
            return self.start_again();
        }
        match self.rng.below(100) {
            0..=35 => {
                for _ in 0..=self.rng.below(3) {
                    self.deliver();
                }
            }
            36..=56 => {
                for _ in 0..=self.rng.below(3) {
                    self.agent_acts();
                }
            }
            57..=68 => self.client_acts(),
            69..=78 => self.client_reads(),
            79..=93 => {
                for _ in 0..=self.rng.below(3) {
                    self.disk_acts();
                }
            }
            94..=95 => self.time_passes(),
            _ => self.trouble(),
        }
    }

    fn trouble(&mut self) {
        // Twenty-five times rarer than a step, so twenty-five times as likely.
        if self.rng.rarely(25 * self.temper.crash) {
            return self.crash();
        }
        if self.rng.rarely(25 * self.temper.stop) && !self.stopping {
            return self.stop();
        }
        if self.rng.rarely(25 * self.habits.pressure) {
            self.tally.count("short of memory");
            return self.feed(Input::Pressure);
        }
        if self.rng.rarely(25 * self.temper.moves) && !self.stopping {
            return self.move_a_session();
        }
        if self.rng.rarely(25 * self.temper.leave) {
            let client = self.rng.index(self.clients.len());
            if self.rng.chance(25) { self.finish(client) } else { self.leave(client) }
        }
    }

    pub(super) fn stop(&mut self) {
        self.tally.count("orderly stops");
        self.stopping = true;
        self.feed(Input::Stop);
    }

    pub(super) fn on_stopped(&mut self) {
        check::hold("stopped_is_said_once", self.stopping && !self.stopped, || {
            "the hub said that it has stopped".into()
        });
        self.stopped = true;
        self.nothing_is_left_after_the_stop();
    }

    /// The process dies: memory, connections and agents with it, and what the disk had not got.
    fn crash(&mut self) {
        self.tally.count("crashes");
        self.trace.say(self.now, || "-- the daemon crashes".into());
        self.facts.owed.clear();
        self.start_again();
    }

    pub(super) fn start_again(&mut self) {
        for client in &mut self.clients {
            client.conn = None;
        }
        for it in std::mem::take(&mut self.conns).into_values().filter(|it| it.relay && !it.left) {
            // The gateway is still there, and so is whoever waits behind it.
            let prompts = it.open.into_values().filter(|it| it.kind == check::Kind::Prompt);
            let prompts = prompts.filter_map(|it| Some((it.session?, it.token)));
            self.clients[it.client].again.extend(prompts);
        }
        self.fleet.on_restart();
        for agent in std::mem::take(&mut self.procs).into_keys() {
            self.asks.on_agent_gone(agent);
        }
        let mut streams = std::mem::take(&mut self.disk.streams);
        for (session, stream) in &mut streams {
            let Crashed { landed, torn } = stream.crash(&mut self.rng);
            self.landed(session, &landed);
            if torn {
                self.tally.count("tails torn");
            }
        }
        streams.retain(|_, it| 0 < it.durable());
        if !std::mem::take(&mut self.disk.copies).is_empty() {
            self.tally.count("forks cut by a crash");
        }
        self.disk.copied.clear();
        let mut recovered = Vec::new();
        for (session, stream) in &mut streams {
            let state = stream.recovered();
            check::summary_and_tail_give_the_whole(session, &state, &stream.events);
            stream.head = stream.durable();
            stream.acked = stream.durable();
            if self.fleet.is_away(session) {
                continue;
            }
            recovered.push(Recovered { session: session.clone(), state });
        }
        self.wakes.start_again(&recovered);
        self.failures.start_again();
        self.disk.streams = streams;
        if 0 < self.queues.on_restart() {
            self.tally.count("prompts held");
        }
        self.stopping = false;
        self.stopped = false;
        self.lives += 1;
        self.trace.say(self.now, || "-- a new daemon starts".into());
        self.forget_rest();
        let config = self.habits.configure(config(self.seed, self.lives));
        self.hub = Hub::new(config, self.now, recovered);
        self.drain();
    }

    /// The next input of some source reaches the hub.
    pub(super) fn deliver(&mut self) -> bool {
        let sources = self.sources();
        if sources.is_empty() {
            return false;
        }
        let input = match &sources[self.rng.index(sources.len())] {
            Source::Client(conn) => self.conns.get_mut(conn).and_then(|it| it.sent.pop_front()),
            Source::Written(conn) => {
                let it = self.conns.get_mut(conn).expect("found above");
                let whole = self.calm || self.rng.chance(70);
                let bytes = if whole { it.wrote } else { 1 + self.rng.index(it.wrote) };
                it.wrote -= bytes;
                Some(Input::ClientWrote { conn: *conn, bytes })
            }
            Source::Agent(agent) => self.procs.get_mut(agent).and_then(|it| it.outbox.pop_front()),
            Source::Writer(session) => {
                let stream = self.disk.streams.get_mut(session).expect("found above");
                let input = stream.done.pop_front();
                stream.answered(matches!(input, Some(Input::AppendFailed { .. })));
                input
            }
            Source::Copier => self.disk.copied.pop_front(),
            Source::Reader(session) => {
                self.disk.streams.get_mut(session).and_then(|it| it.answers.pop_front())
            }
        };
        self.feed(input.expect("sources have something"));
        true
    }

    fn sources(&self) -> Vec<Source> {
        let mut sources = Vec::new();
        for (&conn, it) in &self.conns {
            if !it.sent.is_empty() {
                sources.push(Source::Client(conn));
            }
            if 0 < it.wrote && !it.left {
                sources.push(Source::Written(conn));
            }
        }
        for (&agent, it) in &self.procs {
            if !it.outbox.is_empty() && (!it.paused || it.dead) {
                sources.push(Source::Agent(agent));
            }
        }
        if !self.disk.copied.is_empty() {
            sources.push(Source::Copier);
        }
        for (session, stream) in &self.disk.streams {
            if !stream.done.is_empty() {
                sources.push(Source::Writer(session.clone()));
            }
            if !stream.answers.is_empty() {
                sources.push(Source::Reader(session.clone()));
            }
        }
        sources
    }

    /// The disk does one thing for one session.
    pub(super) fn disk_acts(&mut self) -> bool {
        if self.rng.chance(self.temper.slow_disk) {
            return false;
        }
        if !self.disk.copies.is_empty() && self.rng.chance(30) {
            self.copy_on();
            return true;
        }
        let busy = |it: &super::disk::Stream| it.can_append() || it.has_reads();
        let busy: Vec<SessionId> =
            self.disk.streams.iter().filter(|(_, it)| busy(it)).map(|(id, _)| id.clone()).collect();
        if busy.is_empty() {
            return !self.disk.copies.is_empty();
        }
        let session = busy[self.rng.index(busy.len())].clone();
        let luck = self.luck(&session);
        let stale = self.rng.chance(self.temper.stale).then(|| self.rng.index(3));
        let fails = self.rng.chance(self.temper.read_fails);
        let reads_first = self.rng.chance(40);
        let stream = self.disk.streams.get_mut(&session).expect("found above");
        if stream.has_reads() && (reads_first || !stream.can_append()) {
            self.tally.count(if fails { "reads failed" } else { "reads" });
            stream.perform_read(&session, stale, fails);
        } else {
            let landed = stream.append_on(&session, luck);
            self.landed(&session, &landed);
        }
        true
    }

    fn luck(&mut self, session: &SessionId) -> Luck {
        if !self.disk.streams[session].is_deciding() {
            Luck::Good
        } else if self.rng.rarely(self.temper.fenced) {
            Luck::Fenced
        } else if self.rng.chance(self.temper.append_fails) {
            self.rng.pick(&[Luck::Failed, Luck::FailedButLanded])
        } else {
            Luck::Good
        }
    }

    /// The clock reaches the next deadline, or some moment before or after it.
    fn time_passes(&mut self) {
        let Some(at) = self.hub.poll_timeout() else { return };
        let far = self.now.plus(20_000) < at;
        if far && !self.rng.chance(5) {
            return;
        }
        self.now = self.now.max(at);
        if self.rng.chance(90) {
            self.feed(Input::Tick);
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
