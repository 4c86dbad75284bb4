//! The rows of a page that are about a gateway, and about the fleet as this daemon sees it.

use super::page::{number, register_counters, register_gauges};
use jackfield_fleet::HostEntry;
use jackfield_fleet::gateway::GatewayGauges;
use jackfield_journal::ArchiveGauges;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Host {
    host: String,
}

pub(super) fn gateway(registry: &mut Registry, it: &GatewayGauges) {
    let counted = &it.counters;
    let gauges = [
        ("gateway_clients", "Clients of this gateway", it.clients),
        (
            "gateway_host_connections",
            "Connections to hosts, one for each client that needs it",
            it.host_conns,
        ),
        ("gateway_sessions", "Sessions in use, counted for each client", it.sessions),
        ("gateway_pending", "Requests without an answer", it.pending),
        ("gateway_searches", "Sessions whose owner is looked for", it.searches),
        ("gateway_kept_bytes", "Requests that are kept, to be sent again", it.kept_bytes),
        ("gateway_unwritten_bytes", "Bytes on their way to clients and hosts", it.unwritten_bytes),
    ];
    register_gauges(registry, gauges);
    let counters = [
        ("gateway_messages_in", "Messages that were taken", counted.messages_in),
        ("gateway_messages_out", "Messages that were passed on", counted.messages_out),
        ("gateway_bytes_in", "Bytes of messages that were taken", counted.bytes_in),
        ("gateway_bytes_out", "Bytes of messages that were passed on", counted.bytes_out),
        ("gateway_clients_opened", "Clients that came", counted.clients_opened),
        ("gateway_clients_closed", "Clients that went", counted.clients_closed),
        (
            "gateway_host_connections_opened",
            "Connections to hosts that were made",
            counted.host_connections_opened,
        ),
        (
            "gateway_host_connections_lost",
            "Of these, those that ended while in use",
            counted.host_connections_lost,
        ),
        ("gateway_moves", "Sessions of clients that were taken to another owner", counted.moves),
        ("gateway_resent", "Requests that were sent again after a loss", counted.resent),
        ("gateway_refused", "Messages that were answered with an error here", counted.refused),
        ("gateway_repeated", "Messages of hosts that the client had heard", counted.repeated),
        ("gateway_stray", "Messages of hosts that nobody waits for", counted.stray),
    ];
    register_counters(registry, counters);
}

/// Every member has these: a page that is missing does not hide a host.
pub(super) fn hosts(registry: &mut Registry, hosts: &[HostEntry]) {
    let [sessions, agents, draining] = std::array::from_fn(|_| Family::<Host, Gauge>::default());
    for it in hosts {
        let host = Host { host: it.host.name.to_string() };
        sessions.get_or_create(&host).set(it.sessions.into());
        agents.get_or_create(&host).set(it.live.into());
        draining.get_or_create(&host).set(it.draining.into());
    }
    let count: Gauge = Gauge::default();
    count.set(number(hosts.len()));
    registry.register("fleet_hosts", "Hosts that live", count);
    registry.register("fleet_sessions", "Sessions that a host owns and has open", sessions);
    registry.register("fleet_agents", "Agents that run on a host", agents);
    registry.register("fleet_draining", "1 for a host that takes nothing new", draining);
}

/// What this host has moved, and what waits: an archive that is away shows in the last two.
pub(super) fn archive(registry: &mut Registry, it: &ArchiveGauges) {
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
    use super::super::{Snapshot, page};
    use jackfield_fleet::gateway::{GatewayCounters, GatewayGauges};
    use jackfield_fleet::{HostEntry, HostInstance};
    use jackfield_journal::ArchiveGauges;
    use std::{collections::BTreeMap, sync::Arc, time::Duration};

    #[test]
    fn a_gateway_without_agents_has_a_page_of_its_own_and_of_the_fleet() {
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
        let page = page::write(&Snapshot { hub: None, gateway, hosts, archive });
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
