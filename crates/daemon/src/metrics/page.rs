//! Formats a snapshot as `OpenMetrics` text. Names contain the unit; counters end in `_total`.

use super::{LoopCounters, MetricsSnapshot, fleet};
use jackfield_agents::{resident_bytes, tree_resident_bytes};
use jackfield_hub::Gauges;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    how: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AgentLabel {
    agent: String,
    session: String,
}

pub(super) fn render_page(snapshot: &MetricsSnapshot) -> String {
    let mut registry = Registry::with_prefix("jackfield");
    if let Some((it, loop_counters)) = &snapshot.hub {
        add_hub_gauges(&mut registry, it);
        add_loop_counters(&mut registry, loop_counters);
        add_agent_memory(&mut registry, it);
        let spawns = loop_counters.spawn_seconds.clone();
        let help = "Time from the request for an agent to its process";
        registry.register("agent_spawn_seconds", help, spawns);
    }
    if let Some(it) = &snapshot.gateway {
        fleet::add_gateway(&mut registry, it);
    }
    if let Some(it) = &snapshot.hosts {
        fleet::add_hosts(&mut registry, it);
    }
    if let Some(it) = &snapshot.archive {
        fleet::add_archive(&mut registry, it);
    }
    let own_memory: Gauge = Gauge::default();
    // Without child processes: each agent has its own row.
    own_memory.set(i64::try_from(resident_bytes(std::process::id())).unwrap_or(i64::MAX));
    registry.register("resident_bytes", "Memory of the daemon itself", own_memory);
    let mut page = String::new();
    encode(&mut page, &registry).expect("writing to a string cannot fail");
    page
}

fn add_hub_gauges(registry: &mut Registry, it: &Gauges) {
    let sessions = Family::<StateLabel, Gauge>::default();
    for (state, count) in &it.sessions {
        let state = StateLabel { state: (*state).to_owned() };
        sessions.get_or_create(&state).set(to_gauge_value(*count));
    }
    registry.register("sessions", "Sessions by state", sessions);
    let lag = usize::try_from(it.lag_max).unwrap_or(usize::MAX);
    let rows = [
        ("clients", "Connected clients", it.clients),
        ("agents", "Agent processes", it.agents),
        ("prompts_waiting", "Prompts in the queues of all sessions", it.prompts_waiting),
        ("starts_waiting", "Agent starts that wait for a free process slot", it.starts_waiting),
        ("asks_open", "Unanswered requests to the user", it.asks_open),
        ("held_events", "Events that are not durable yet", it.held_events),
        ("held_bytes", "Bytes of events that are not durable yet", it.held_bytes),
        ("attached", "Attached clients, counted for each session", it.attached),
        ("behind", "Attached clients that read the journal to catch up", it.behind),
        ("lag_events", "Durable events that the slowest client has not received", lag),
        ("unwritten_bytes", "Bytes not yet written to clients", it.unwritten_bytes),
    ];
    register_gauges(registry, rows);
}

fn add_loop_counters(registry: &mut Registry, it: &LoopCounters) {
    let turns = Family::<OutcomeLabel, Counter>::default();
    for (how, count) in &it.turns {
        turns.get_or_create(&OutcomeLabel { how: (*how).to_owned() }).inc_by(*count);
    }
    registry.register("turns", "Turns by outcome", turns);
    let rows = [
        ("events", "Events logged by sessions", it.events),
        ("lost_events", "Events that were delivered and could not be logged", it.lost),
        ("agent_spawns", "Agent processes started", it.spawns),
        ("agent_ends", "Agent processes that ended", it.ends),
        ("fell_behind", "Times that a client fell behind", it.fell_behind),
        ("append_retries", "Failed appends to the journal", it.append_retries),
    ];
    register_counters(registry, rows);
}

type MetricRow<T> = (&'static str, &'static str, T);

pub(super) fn register_gauges(
    registry: &mut Registry,
    rows: impl IntoIterator<Item = MetricRow<usize>>,
) {
    for (name, help, value) in rows {
        let gauge: Gauge = Gauge::default();
        gauge.set(to_gauge_value(value));
        registry.register(name, help, gauge);
    }
}

pub(super) fn register_counters(
    registry: &mut Registry,
    rows: impl IntoIterator<Item = MetricRow<u64>>,
) {
    for (name, help, value) in rows {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

/// Shared pages are counted for each process, so the sum of all trees exceeds the used memory.
fn add_agent_memory(registry: &mut Registry, it: &Gauges) {
    let memory = Family::<AgentLabel, Gauge>::default();
    for process in &it.processes {
        let session = process.sessions.join(",");
        let tree = AgentLabel { agent: process.agent.to_string(), session };
        let bytes = i64::try_from(tree_resident_bytes(process.pid)).unwrap_or(i64::MAX);
        memory.get_or_create(&tree).inc_by(bytes);
    }
    registry.register("agent_resident_bytes", "Memory of an agent's process tree", memory);
}

pub(super) fn to_gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{LoopCounters, MetricsSnapshot};
    use jackfield_hub::{AgentId, Gauges, Note, Process};

    #[test]
    fn page_has_every_metric_with_its_labels() {
        let mut loop_counters = LoopCounters { events: 7, ..LoopCounters::default() };
        loop_counters.on_spawn(AgentId(1));
        loop_counters.on_started(AgentId(1));
        let (session, reason) = ("s-1".into(), None);
        loop_counters.on_note(&Note::TurnEnded { session, turn: 1, how: "stopped", reason });
        let own_process =
            Process { agent: "fake".into(), sessions: vec!["s-1".into()], pid: std::process::id() };
        let gauges = Gauges {
            sessions: [("idle", 2)].into(),
            prompts_waiting: 3,
            lag_max: 5,
            processes: vec![own_process],
            ..Gauges::default()
        };
        let page = super::render_page(&MetricsSnapshot::new(gauges, &loop_counters));
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
