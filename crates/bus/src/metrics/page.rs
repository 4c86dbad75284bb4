//! A snapshot as a page of the text that Prometheus reads. Names say the unit; what is counted ends in `_total`.

use super::Snapshot;
use jackfield_agents::{resident_bytes, tree_resident_bytes};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    pool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Worker {
    pool: String,
    worker: String,
}

pub(super) fn write(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("jackfield_bus");
    counters(&mut registry, snapshot);
    gauges(&mut registry, snapshot);
    pools(&mut registry, snapshot);
    workers(&mut registry, snapshot);
    let mut page = String::new();
    encode(&mut page, &registry).expect("a string takes everything");
    page
}

fn counters(registry: &mut Registry, snapshot: &Snapshot) {
    let (it, meters) = (&snapshot.gauges.counters, &snapshot.meters);
    let rows = [
        ("messages_in", "Messages heard from clients and workers", it.messages_in),
        ("messages_out", "Messages sent to clients and workers", it.messages_out),
        ("bytes_in", "Bytes of messages heard", it.bytes_in),
        ("bytes_out", "Bytes of messages sent", it.bytes_out),
        ("clients_opened", "Clients that connected", it.clients_opened),
        ("clients_closed", "Clients that went", it.clients_closed),
        ("restarts", "Workers started again, or to be", it.restarts),
        ("refused", "Messages of clients with nowhere to go; requests were answered", it.refused),
        ("unheard", "Messages of workers for nobody", it.unheard),
        ("stray", "Answers that nobody waited for", it.stray),
        ("slow_clients", "Clients closed because they did not read", meters.slow_clients),
        ("reloads", "Times that the configuration was read again", meters.reloads),
    ];
    for (name, help, value) in rows {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
    let by_pool = [
        ("worker_starts", "Workers that started", &meters.starts),
        ("worker_ends", "Workers that ended", &meters.ends),
        ("worker_restarts", "Restarts that were planned", &meters.restarts),
        ("worker_gave_up", "Times that a worker ended too often", &meters.gave_up),
        ("worker_unhealthy", "Workers ended because they said nothing", &meters.unhealthy),
    ];
    for (name, help, counts) in by_pool {
        registry.register(name, help, count_by_pool(counts));
    }
}

fn count_by_pool(counts: &BTreeMap<Arc<str>, u64>) -> Family<PoolLabel, Counter> {
    let family = Family::<PoolLabel, Counter>::default();
    for (pool, count) in counts {
        family.get_or_create(&PoolLabel { pool: pool.to_string() }).inc_by(*count);
    }
    family
}

fn gauges(registry: &mut Registry, snapshot: &Snapshot) {
    let it = &snapshot.gauges;
    let ours = usize::try_from(resident_bytes(std::process::id())).unwrap_or(usize::MAX);
    let rows = [
        ("clients", "Open connections of clients", it.clients),
        ("sessions", "Sessions that are kept with a worker", it.sessions),
        ("pending", "Requests without an answer yet", it.pending),
        ("resident_bytes", "Memory of the bus itself", ours),
    ];
    for (name, help, value) in rows {
        let gauge: Gauge = Gauge::default();
        gauge.set(number(value));
        registry.register(name, help, gauge);
    }
}

fn pools(registry: &mut Registry, snapshot: &Snapshot) {
    let pools = &snapshot.gauges.pools;
    let rows = [
        ("pool_workers", "Workers that are alive", |it| it.alive),
        ("pool_instances", "Workers that there should be", |it| it.instances),
        ("pool_sessions", "Sessions that clients use", |it| it.sessions),
        ("pool_pending", "Requests without an answer yet", |it| it.pending),
        ("pool_backlog_bytes", "Bytes that its workers have not taken", |it| it.backlog),
    ] as [(&str, &str, fn(&crate::routing::PoolGauges) -> usize); 5];
    for (name, help, value) in rows {
        let family = Family::<PoolLabel, Gauge>::default();
        for it in pools {
            family.get_or_create(&PoolLabel { pool: it.pool.to_string() }).set(number(value(it)));
        }
        registry.register(name, help, family);
    }
}

/// Shared pages count for each process: the sum of all trees is more than the machine has lost.
fn workers(registry: &mut Registry, snapshot: &Snapshot) {
    let resident = Family::<Worker, Gauge>::default();
    let backlog = Family::<Worker, Gauge>::default();
    for it in &snapshot.workers {
        let worker = Worker { pool: it.pool.to_string(), worker: it.id.to_string() };
        backlog.get_or_create(&worker).set(number(it.backlog));
        if let Some(pid) = it.pid {
            let bytes = i64::try_from(tree_resident_bytes(pid)).unwrap_or(i64::MAX);
            resident.get_or_create(&worker).set(bytes);
        }
    }
    let help = "Memory of a worker and all it started";
    registry.register("worker_resident_bytes", help, resident);
    registry.register("worker_backlog_bytes", "Bytes that a worker has not taken", backlog);
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Meters, Snapshot, Worker};
    use crate::routing::{BusCounters, BusGauges, BusNote, PoolGauges, WorkerId};

    #[test]
    fn a_page_has_every_number_with_its_labels() {
        let mut meters = Meters::default();
        meters.on_note(&BusNote::Restarting { pool: "echo".into(), pause_ms: 1 });
        meters.on_note(&BusNote::Reloaded { pools: 1, workers: 1 });
        let pool = PoolGauges {
            pool: "echo".into(),
            alive: 1,
            instances: 2,
            sessions: 3,
            pending: 4,
            backlog: 5,
        };
        let gauges = BusGauges {
            counters: BusCounters { messages_in: 7, ..BusCounters::default() },
            clients: 2,
            pools: vec![pool],
            ..BusGauges::default()
        };
        let pid = Some(std::process::id());
        let worker = Worker { id: WorkerId(9), pool: "echo".into(), pid, backlog: 6 };
        let page = super::write(&Snapshot { gauges, meters, workers: vec![worker] });
        let lines = [
            "jackfield_bus_messages_in_total 7",
            "jackfield_bus_clients 2",
            "jackfield_bus_reloads_total 1",
            "jackfield_bus_worker_restarts_total{pool=\"echo\"} 1",
            "jackfield_bus_pool_workers{pool=\"echo\"} 1",
            "jackfield_bus_pool_backlog_bytes{pool=\"echo\"} 5",
            "jackfield_bus_worker_backlog_bytes{pool=\"echo\",worker=\"w-9\"} 6",
        ];
        for line in lines {
            assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
        }
        let size = page.lines().find_map(|it| {
            let row = "jackfield_bus_worker_resident_bytes{pool=\"echo\",worker=\"w-9\"} ";
            it.strip_prefix(row)
        });
        assert!(size.is_some_and(|it| 100_000 < it.parse::<u64>().unwrap()), "{page}");
        assert!(page.ends_with("# EOF\n"));
    }
}
