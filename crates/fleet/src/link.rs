//! The connection to the servers of a cell, and the names of things on it.

use crate::entry::HostName;
use async_nats::{
    Client, Request,
    jetstream::{
        self, Context,
        stream::{Config, DiscardPolicy, StorageType},
    },
};
use bytes::Bytes;
use jackfield_nats_access::NatsServers;
use std::time::Duration;

/// How long one request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a cluster that is just starting may take to be of use.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(15);
pub(crate) const START_PAUSE: Duration = Duration::from_millis(200);
/// Entries of hosts that nobody has heard of for so long are gone by themselves.
const ENTRIES_MAX_AGE: Duration = Duration::from_hours(1);

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("cannot reach NATS at {servers}: start a server there, or name others with --fleet")]
    Unreachable {
        servers: String,
        #[source]
        source: async_nats::ConnectError,
    },
    #[error("NATS server `{server}` has no JetStream, or it is not ready: {why}")]
    NoJetStream { server: String, why: String },
    #[error("the servers do not answer: {0}")]
    Away(String),
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub version: String,
}

/// A connection. Clones share it.
#[derive(Debug, Clone)]
pub struct Link {
    pub(crate) client: Client,
    pub(crate) context: Context,
    cell: String,
    pub(crate) servers: NatsServers,
    /// How many servers have the list of hosts.
    pub(crate) replicas: usize,
}

impl Link {
    pub async fn connect(servers: &NatsServers, cell: &str) -> Result<Link, LinkError> {
        let connected = servers.options().connect(servers.urls().to_vec()).await;
        let failed = |source| LinkError::Unreachable { servers: servers.shown(), source };
        let client = connected.map_err(failed)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        let (cell, servers) = (cell.to_owned(), servers.clone());
        Ok(Link { client, context, cell, servers, replicas: 1 })
    }

    /// Makes the list of hosts and the audit trail if there are none, so that so many servers have them. For
    /// members of the fleet; who only looks makes nothing.
    pub async fn prepare(&mut self, replicas: usize) -> Result<(), LinkError> {
        self.replicas = replicas;
        let no_jetstream = |why| LinkError::NoJetStream { server: self.server().name, why };
        for config in [self.list(replicas), self.trail(replicas)] {
            self.ensure(config).await.map_err(no_jetstream)?;
        }
        Ok(())
    }

    fn list(&self, replicas: usize) -> Config {
        Config {
            name: self.entries(),
            subjects: vec![self.entry("*")],
            max_messages_per_subject: 1,
            max_age: ENTRIES_MAX_AGE,
            num_replicas: replicas,
            // All of them are said again every few seconds.
            storage: StorageType::Memory,
            discard: DiscardPolicy::Old,
            allow_direct: true,
            ..Config::default()
        }
    }

    async fn ensure(&self, config: Config) -> Result<(), String> {
        let since = tokio::time::Instant::now();
        loop {
            match self.context.get_or_create_stream(config.clone()).await {
                Ok(_) => return Ok(()),
                Err(why) if START_PATIENCE < since.elapsed() => return Err(why.to_string()),
                Err(_) => tokio::time::sleep(START_PAUSE).await,
            }
        }
    }

    /// The server that this connection is to, for people.
    pub fn server(&self) -> Server {
        let info = self.client.server_info();
        Server { name: info.server_name, version: info.version }
    }

    pub(crate) fn cell(&self) -> &str {
        &self.cell
    }

    /// The list of hosts.
    pub(crate) fn entries(&self) -> String {
        format!("{}-hosts", self.cell)
    }

    /// What one host says of itself.
    pub(crate) fn entry(&self, host: &str) -> String {
        format!("{}.host.{host}", self.cell)
    }

    /// Where one start of a host receives questions of one kind; `*` is every kind. Roles differ in the kinds
    /// that they may ask.
    pub(crate) fn questions(&self, host: &HostName, kind: &str) -> String {
        format!("{}.ask.{}.{}.{kind}", self.cell, host.name, host.incarnation)
    }

    /// One direction of a leg.
    pub(crate) fn leg(&self, id: &str, to: &str) -> String {
        format!("{}.leg.{id}.{to}", self.cell)
    }

    pub(crate) async fn request(
        &self,
        subject: String,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, LinkError> {
        let request = Request::new().payload(body).timeout(Some(timeout));
        let answer = self.client.send_request(subject, request).await;
        answer.map(|it| it.payload).map_err(|it| LinkError::Away(it.to_string()))
    }
}

/// Letters that no two of anything have in common.
pub fn unique() -> String {
    let number = getrandom::u64().expect("the system has random numbers");
    format!("{number:016x}")
}
