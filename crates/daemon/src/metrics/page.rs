//! A snapshot as a page of the text that Prometheus reads. Names say the unit; what is counted ends in `_total`.

use super::{Meters, Snapshot, fleet};
use jackfield_agents::{resident_bytes, tree_resident_bytes};
use jackfield_hub::Gauges;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    how: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tree {
    agent: String,
    session: String,
}

pub(super) fn write(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("jackfield");
    if let Some((it, meters)) = &snapshot.hub {
        gauges(&mut registry, it);
        counters(&mut registry, meters);
        trees(&mut registry, it);
        let spawns = meters.spawn_seconds.clone();
        let help = "From the wish for an agent to its process";
        registry.register("agent_spawn_seconds", help, spawns);
    }
    if let Some(it) = &snapshot.gateway {
        fleet::gateway(&mut registry, it);
    }
    if let Some(it) = &snapshot.hosts {
        fleet::hosts(&mut registry, it);
    }
    if let Some(it) = &snapshot.archive {
        fleet::archive(&mut registry, it);
    }
    let ours: Gauge = Gauge::default();
    // Without our children: each agent has a row of its own.
    ours.set(i64::try_from(resident_bytes(std::process::id())).unwrap_or(i64::MAX));
    registry.register("resident_bytes", "Memory of the daemon itself", ours);
    let mut page = String::new();
    encode(&mut page, &registry).expect("a string takes everything");
    page
}

fn gauges(registry: &mut Registry, it: &Gauges) {
    let sessions = Family::<State, Gauge>::default();
    for (state, count) in &it.sessions {
        let state = State { state: (*state).to_owned() };
        sessions.get_or_create(&state).set(number(*count));
    }
    registry.register("sessions", "Sessions by where they stand", sessions);
    let lag = usize::try_from(it.lag_max).unwrap_or(usize::MAX);
    let rows = [
        ("clients", "Open connections of clients", it.clients),
        ("agents", "Agent processes", it.agents),
        ("prompts_waiting", "Prompts in the queues of all sessions", it.prompts_waiting),
        ("starts_waiting", "Agents that wait for a place to be started", it.starts_waiting),
        ("asks_open", "Asks that nobody has answered", it.asks_open),
        ("held_events", "Events that are not durable yet", it.held_events),
        ("held_bytes", "Bytes of events that are not durable yet", it.held_bytes),
        ("attached", "Clients that hear a session, counted for each session", it.attached),
        ("behind", "Of these, those that read the journal to catch up", it.behind),
        ("lag_events", "Durable events that the slowest client has not heard", lag),
        ("unwritten_bytes", "Bytes on their way to clients", it.unwritten_bytes),
    ];
    register_gauges(registry, rows);
}

fn counters(registry: &mut Registry, it: &Meters) {
    let turns = Family::<Outcome, Counter>::default();
    for (how, count) in &it.turns {
        turns.get_or_create(&Outcome { how: (*how).to_owned() }).inc_by(*count);
    }
    registry.register("turns", "Turns by how they ended", turns);
    let rows = [
        ("events", "Events logged by sessions", it.events),
        ("lost_events", "Events that were said and could not be logged", it.lost),
        ("agent_spawns", "Agent processes started", it.spawns),
        ("agent_ends", "Agent processes that ended", it.ends),
        ("fell_behind", "Times that a client could not keep up", it.fell_behind),
        ("append_retries", "Times that the journal could not append", it.append_retries),
    ];
    register_counters(registry, rows);
}

type Row<T> = (&'static str, &'static str, T);

pub(super) fn register_gauges(registry: &mut Registry, rows: impl IntoIterator<Item = Row<usize>>) {
    for (name, help, value) in rows {
        let gauge: Gauge = Gauge::default();
        gauge.set(number(value));
        registry.register(name, help, gauge);
    }
}

pub(super) fn register_counters(registry: &mut Registry, rows: impl IntoIterator<Item = Row<u64>>) {
    for (name, help, value) in rows {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

/// Shared pages count for each process: the sum of all trees is more than the machine has lost.
fn trees(registry: &mut Registry, it: &Gauges) {
    let trees = Family::<Tree, Gauge>::default();
    for process in &it.processes {
        let session = process.sessions.join(",");
        let tree = Tree { agent: process.agent.to_string(), session };
        let bytes = i64::try_from(tree_resident_bytes(process.pid)).unwrap_or(i64::MAX);
        trees.get_or_create(&tree).inc_by(bytes);
    }
    registry.register("agent_resident_bytes", "Memory of an agent and all it started", trees);
}

pub(super) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Meters, Snapshot};
    use jackfield_hub::{AgentId, Gauges, Note, Process};

    #[test]
    fn a_page_has_every_number_with_its_labels() {
        let mut meters = Meters { events: 7, ..Meters::default() };
        meters.on_spawn(AgentId(1));
        meters.on_started(AgentId(1));
        let (session, reason) = ("s-1".into(), None);
        meters.on_note(&Note::TurnEnded { session, turn: 1, how: "stopped", reason });
        let us =
            Process { agent: "fake".into(), sessions: vec!["s-1".into()], pid: std::process::id() };
        let gauges = Gauges {
            sessions: [("idle", 2)].into(),
            prompts_waiting: 3,
            lag_max: 5,
            processes: vec![us],
            ..Gauges::default()
        };
        let page = super::write(&Snapshot::new(gauges, &meters));
        let lines = [
            "jackfield_sessions{state=\"idle\"} 2",
            "jackfield_prompts_waiting 3",
            "jackfield_lag_events 5",
            "jackfield_events_total 7",
            "jackfield_lost_events_total 0",
            "jackfield_turns_total{how=\"stopped\"} 1",
            "jackfield_agent_spawn_seconds_count 1",
        ];
        for line in lines {
            assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
        }
        let size = page.lines().find_map(|it| {
            it.strip_prefix("jackfield_agent_resident_bytes{agent=\"fake\",session=\"s-1\"} ")
        });
        assert!(size.is_some_and(|it| 100_000 < it.parse::<u64>().unwrap()), "{page}");
        assert!(page.ends_with("# EOF\n"));
    }
}
