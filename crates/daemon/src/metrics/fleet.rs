//! Metrics of a gateway, and of the fleet as this daemon sees it.

use super::page::{register_counters, register_gauges, to_gauge_value};
use jackfield_fleet::{HostEntry, gateway::GatewayGauges};
use jackfield_journal::ArchiveGauges;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HostMetricLabel {
    host: String,
}

pub(super) fn add_gateway(registry: &mut Registry, it: &GatewayGauges) {
    let totals = &it.counters;
    let gauges = [
        ("gateway_clients", "Clients of this gateway", it.clients),
        ("gateway_host_connections", "Connections to hosts, per client", it.host_conns),
        ("gateway_sessions", "Sessions in use, counted for each client", it.sessions),
        ("gateway_pending", "Requests without a response", it.pending),
        ("gateway_searches", "Sessions whose owner is being searched", it.searches),
        (
            "gateway_kept_bytes",
            "Bytes of pending requests that are retained to be sent again",
            it.retained_bytes,
        ),
        (
            "gateway_unwritten_bytes",
            "Bytes not yet written to clients and hosts",
            it.unwritten_bytes,
        ),
    ];
    register_gauges(registry, gauges);
    let counters = [
        ("gateway_messages_in", "Messages received", totals.messages_in),
        ("gateway_messages_out", "Messages sent", totals.messages_out),
        ("gateway_bytes_in", "Bytes of messages received", totals.bytes_in),
        ("gateway_bytes_out", "Bytes of messages sent", totals.bytes_out),
        ("gateway_clients_opened", "Clients that connected", totals.clients_opened),
        ("gateway_clients_closed", "Clients that disconnected", totals.clients_closed),
        (
            "gateway_host_connections_opened",
            "Connections to hosts opened",
            totals.host_connections_opened,
        ),
        (
            "gateway_host_connections_lost",
            "Connections to hosts that ended while in use",
            totals.host_connections_lost,
        ),
        ("gateway_moves", "Owner changes of sessions, per client", totals.moves),
        ("gateway_resent", "Requests sent again after a lost connection", totals.resent),
        (
            "gateway_refused",
            "Client messages answered with an error of the gateway",
            totals.refused,
        ),
        ("gateway_repeated", "Duplicate host messages suppressed", totals.repeated),
        ("gateway_stray", "Host messages without a recipient", totals.stray),
    ];
    register_counters(registry, counters);
}

/// Every member reports all hosts, so a missing page does not hide a host.
pub(super) fn add_hosts(registry: &mut Registry, hosts: &[HostEntry]) {
    let [sessions, agents, draining] =
        std::array::from_fn(|_| Family::<HostMetricLabel, Gauge>::default());
    for it in hosts {
        let host = HostMetricLabel { host: it.host.name.to_string() };
        sessions.get_or_create(&host).set(it.sessions.into());
        agents.get_or_create(&host).set(it.live.into());
        draining.get_or_create(&host).set(it.draining.into());
    }
    let count: Gauge = Gauge::default();
    count.set(to_gauge_value(hosts.len()));
    registry.register("fleet_hosts", "Hosts that live", count);
    registry.register("fleet_sessions", "Sessions that a host owns and has open", sessions);
    registry.register("fleet_agents", "Agents that run on a host", agents);
    registry.register("fleet_draining", "1 for a host that takes nothing new", draining);
}

/// What this host has moved, and what waits: an archive that is away shows in the last two.
pub(super) fn add_archive(registry: &mut Registry, it: &ArchiveGauges) {
    let counters = [
        ("archive_segments", "Segments that were put into the archive", it.segments),
        ("archive_raw_bytes", "Bytes of events in them", it.raw_bytes),
        ("archive_stored_bytes", "Bytes of the segments themselves", it.stored_bytes),
    ];
    register_counters(registry, counters);
    let oldest = it.oldest.map_or(0, |it| usize::try_from(it.as_secs()).unwrap_or(usize::MAX));
    let gauges = [
        ("archive_waiting", "Sessions with events that are only in the log", it.hot_streams),
        ("archive_waiting_seconds", "How long the first of these has had some", oldest),
    ];
    register_gauges(registry, gauges);
}

#[cfg(test)]
mod tests {
    use super::super::{MetricsSnapshot, page};
    use jackfield_fleet::{
        HostEntry, HostInstance,
        gateway::{GatewayCounters, GatewayGauges},
    };
    use jackfield_journal::ArchiveGauges;
    use std::{collections::BTreeMap, sync::Arc, time::Duration};

    #[test]
    fn gateway_page_has_gateway_and_fleet_metrics() {
        let counters = GatewayCounters { resent: 4, ..GatewayCounters::default() };
        let gateway = Some(GatewayGauges { clients: 3, counters, ..GatewayGauges::default() });
        let entry = HostEntry {
            host: HostInstance { name: "one".into(), incarnation: "a".into() },
            version: String::new(),
            labels: BTreeMap::new(),
            shared: Vec::new(),
            agents: Vec::new(),
            free: None,
            sessions: 7,
            live: 2,
            draining: true,
            gone: false,
            tenants: BTreeMap::new(),
        };
        let hosts = Some(Arc::new(vec![entry]));
        let oldest = Some(Duration::from_secs(90));
        let archive =
            ArchiveGauges { segments: 5, hot_streams: 6, oldest, ..ArchiveGauges::default() };
        let archive = Some(archive);
        let page = page::render_page(&MetricsSnapshot { hub: None, gateway, hosts, archive });
        let lines = [
            "jackfield_gateway_clients 3",
            "jackfield_gateway_resent_total 4",
            "jackfield_fleet_hosts 1",
            "jackfield_fleet_sessions{host=\"one\"} 7",
            "jackfield_fleet_agents{host=\"one\"} 2",
            "jackfield_fleet_draining{host=\"one\"} 1",
            "jackfield_archive_segments_total 5",
            "jackfield_archive_waiting 6",
            "jackfield_archive_waiting_seconds 90",
        ];
        for line in lines {
            assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
        }
        assert!(!page.contains("jackfield_sessions"), "there is no hub here\n{page}");
    }
}
