//! Formats a snapshot as `OpenMetrics` text. Names contain the unit; counters end in `_total`.

use super::BusMetricsSnapshot;
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
struct WorkerLabel {
    pool: String,
    worker: String,
}

pub(super) fn render_page(snapshot: &BusMetricsSnapshot) -> String {
    let mut registry = Registry::with_prefix("jackfield_bus");
    add_counters(&mut registry, snapshot);
    add_gauges(&mut registry, snapshot);
    add_pools(&mut registry, snapshot);
    add_workers(&mut registry, snapshot);
    let mut page = String::new();
    encode(&mut page, &registry).expect("writing to a string cannot fail");
    page
}

fn add_counters(registry: &mut Registry, snapshot: &BusMetricsSnapshot) {
    let (it, note_counters) = (&snapshot.gauges.counters, &snapshot.note_counters);
    let rows = [
        ("messages_in", "Messages received from clients and workers", it.messages_in),
        ("messages_out", "Messages sent to clients and workers", it.messages_out),
        ("bytes_in", "Bytes of messages received", it.bytes_in),
        ("bytes_out", "Bytes of messages sent", it.bytes_out),
        ("clients_opened", "Clients that connected", it.clients_opened),
        ("clients_closed", "Clients that disconnected", it.clients_closed),
        ("restarts", "Restarts of workers, including scheduled ones", it.restarts),
        ("refused", "Client messages that could not be routed", it.refused),
        ("unheard", "Worker messages without a recipient", it.undelivered),
        ("stray", "Responses without a pending request", it.stray),
        ("slow_clients", "Clients closed because they did not read", note_counters.slow_clients),
        ("reloads", "Reloads of the configuration", note_counters.reloads),
    ];
    for (name, help, value) in rows {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
    let by_pool = [
        ("worker_starts", "Workers that started", &note_counters.starts),
        ("worker_ends", "Workers that ended", &note_counters.ends),
        ("worker_restarts", "Scheduled restarts", &note_counters.restarts),
        (
            "worker_gave_up",
            "Times that a worker exceeded the restart limit",
            &note_counters.gave_up,
        ),
        (
            "worker_unhealthy",
            "Workers stopped because a health check failed",
            &note_counters.unhealthy,
        ),
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

fn add_gauges(registry: &mut Registry, snapshot: &BusMetricsSnapshot) {
    let it = &snapshot.gauges;
    let own_bytes = usize::try_from(resident_bytes(std::process::id())).unwrap_or(usize::MAX);
    let rows = [
        ("clients", "Connected clients", it.clients),
        ("sessions", "Sessions that are assigned to a worker", it.sessions),
        ("pending", "Requests without a response", it.pending),
        ("resident_bytes", "Memory of the bus itself", own_bytes),
    ];
    for (name, help, value) in rows {
        let gauge: Gauge = Gauge::default();
        gauge.set(to_gauge_value(value));
        registry.register(name, help, gauge);
    }
}

fn add_pools(registry: &mut Registry, snapshot: &BusMetricsSnapshot) {
    let pools = &snapshot.gauges.pools;
    let rows = [
        ("pool_workers", "Workers that are alive", |it| it.alive),
        ("pool_instances", "Configured workers", |it| it.instances),
        ("pool_sessions", "Sessions that clients use", |it| it.sessions),
        ("pool_pending", "Requests without a response", |it| it.pending),
        ("pool_backlog_bytes", "Bytes not yet written to its workers", |it| it.backlog),
    ] as [(&str, &str, fn(&crate::routing::PoolGauges) -> usize); 5];
    for (name, help, value) in rows {
        let family = Family::<PoolLabel, Gauge>::default();
        for it in pools {
            family
                .get_or_create(&PoolLabel { pool: it.pool.to_string() })
                .set(to_gauge_value(value(it)));
        }
        registry.register(name, help, family);
    }
}

/// Shared pages are counted for each process, so the sum of all trees exceeds the used memory.
fn add_workers(registry: &mut Registry, snapshot: &BusMetricsSnapshot) {
    let resident = Family::<WorkerLabel, Gauge>::default();
    let backlog = Family::<WorkerLabel, Gauge>::default();
    for it in &snapshot.workers {
        let worker = WorkerLabel { pool: it.pool.to_string(), worker: it.id.to_string() };
        backlog.get_or_create(&worker).set(to_gauge_value(it.backlog));
        if let Some(pid) = it.pid {
            let bytes = i64::try_from(tree_resident_bytes(pid)).unwrap_or(i64::MAX);
            resident.get_or_create(&worker).set(bytes);
        }
    }
    let help = "Memory of a worker's process tree";
    registry.register("worker_resident_bytes", help, resident);
    registry.register("worker_backlog_bytes", "Bytes not yet written to a worker", backlog);
}

fn to_gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{BusMetricsSnapshot, NoteCounters, WorkerSample};
    use crate::routing::{BusCounters, BusGauges, BusNote, PoolGauges, WorkerId};

    #[test]
    fn page_has_every_metric_with_its_labels() {
        let mut note_counters = NoteCounters::default();
        note_counters.on_note(&BusNote::Restarting { pool: "echo".into(), pause_ms: 1 });
        note_counters.on_note(&BusNote::Reloaded { pools: 1, workers: 1 });
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
        let worker = WorkerSample { id: WorkerId(9), pool: "echo".into(), pid, backlog: 6 };
        let page = super::render_page(&BusMetricsSnapshot {
            gauges,
            note_counters,
            workers: vec![worker],
        });
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
