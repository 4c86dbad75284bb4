//! How the servers are: who leads, who is away, who is behind.

use crate::link::{Link, LinkError};
use async_nats::jetstream::stream::Info;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use std::collections::BTreeMap;

/// Streams that are asked about at the same time.
const AT_ONCE: usize = 32;

/// The streams of the cell, and the servers that have them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    pub streams: usize,
    /// Streams that nobody leads: nothing is written to them now.
    pub leaderless: Vec<String>,
    /// What they hold, once for all replicas.
    pub messages: u64,
    pub bytes: u64,
    pub servers: BTreeMap<String, Standing>,
}

/// How a server stands, by what the leaders say of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Streams that it leads.
    pub leads: usize,
    /// Streams of which it is a replica that cannot be reached.
    pub offline: usize,
    /// Streams of which it is a replica that does not have everything yet.
    pub behind: usize,
}

impl Health {
    /// Whether each stream has its leader, and every replica everything.
    pub fn is_good(&self) -> bool {
        self.leaderless.is_empty()
            && self.servers.values().all(|it| (it.offline, it.behind) == (0, 0))
    }

    fn add(&mut self, info: &Info) {
        self.messages += info.state.messages;
        self.bytes += info.state.bytes;
        // A server without a cluster says nothing of it.
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

impl Link {
    pub async fn health(&self) -> Result<Health, LinkError> {
        // Who leads the cluster as a whole knows them.
        let away = |why| format!("they choose a leader, or most of them are away ({why})");
        let names = self.context.stream_names().try_collect::<Vec<String>>().await;
        let names = names.map_err(|it| LinkError::Away(away(it)))?;
        let ours = format!("{}-", self.cell());
        let names: Vec<String> = names.into_iter().filter(|it| it.starts_with(&ours)).collect();
        let mut health = Health { streams: names.len(), ..Health::default() };
        let ask = |name: String| async move {
            let asked = self.context.get_stream(&name).await;
            (name, asked.map(|it| it.cached_info().clone()))
        };
        let mut answers = stream::iter(names).map(ask).buffer_unordered(AT_ONCE);
        while let Some((name, answer)) = answers.next().await {
            match answer {
                Ok(info) => health.add(&info),
                // Its leader would have answered.
                Err(_) => health.leaderless.push(name),
            }
        }
        health.leaderless.sort();
        Ok(health)
    }
}
