//! The health of the NATS servers: leaders, unreachable replicas and replicas that lag behind.

use crate::connection::{FleetConnection, FleetConnectionError};
use async_nats::jetstream::stream::Info;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use std::collections::BTreeMap;

/// The number of streams that are queried concurrently.
const CONCURRENT_QUERIES_MAX: usize = 32;

/// The JetStream streams of the cell, and the servers that store them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClusterHealth {
    pub streams: usize,
    /// Streams without a leader, which currently cannot be written.
    pub leaderless: Vec<String>,
    /// The total size, not counting replicas.
    pub messages: u64,
    pub bytes: u64,
    pub servers: BTreeMap<String, ServerHealth>,
}

/// The state of one server according to the leaders of its streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerHealth {
    /// The number of streams that it leads.
    pub leads: usize,
    /// The number of streams whose leader cannot reach it.
    pub offline: usize,
    /// The number of streams whose replica on it lags behind.
    pub behind: usize,
}

impl ClusterHealth {
    /// Whether each stream has a leader and all replicas are up to date.
    pub fn is_healthy(&self) -> bool {
        self.leaderless.is_empty()
            && self.servers.values().all(|it| (it.offline, it.behind) == (0, 0))
    }

    fn add_stream(&mut self, info: &Info) {
        self.messages += info.state.messages;
        self.bytes += info.state.bytes;
        // A single server reports no cluster.
        let Some(cluster) = &info.cluster else { return };
        match &cluster.leader {
            Some(leader) => self.servers.entry(leader.clone()).or_default().leads += 1,
            None => self.leaderless.push(info.config.name.clone()),
        }
        for replica in &cluster.replicas {
            let server = self.servers.entry(replica.name.clone()).or_default();
            server.offline += usize::from(replica.offline);
            server.behind += usize::from(!replica.offline && !replica.current);
        }
    }
}

impl FleetConnection {
    pub async fn read_health(&self) -> Result<ClusterHealth, FleetConnectionError> {
        // Only the leader of the whole cluster can list the streams.
        let unavailable = |error| {
            FleetConnectionError::Unavailable(format!(
                "they are electing a leader, or most of them are unreachable ({error})"
            ))
        };
        let names = self.context.stream_names().try_collect::<Vec<String>>().await;
        let names = names.map_err(unavailable)?;
        let prefix = format!("{}-", self.cell());
        let names: Vec<String> = names.into_iter().filter(|it| it.starts_with(&prefix)).collect();
        let mut health = ClusterHealth { streams: names.len(), ..ClusterHealth::default() };
        let query = |name: String| async move {
            let stream = self.context.get_stream(&name).await;
            (name, stream.map(|it| it.cached_info().clone()))
        };
        let mut replies = stream::iter(names).map(query).buffer_unordered(CONCURRENT_QUERIES_MAX);
        while let Some((name, reply)) = replies.next().await {
            match reply {
                Ok(info) => health.add_stream(&info),
                // The leader of the stream would have answered.
                Err(_) => health.leaderless.push(name),
            }
        }
        health.leaderless.sort();
        Ok(health)
    }
}
