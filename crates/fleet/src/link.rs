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
use jackfield_nats_access::{Connection, NatsServers, StartError};
use std::time::Duration;

/// How long one request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Entries of hosts that nobody has heard of for so long are gone by themselves.
const ENTRIES_MAX_AGE: Duration = Duration::from_hours(1);

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the servers do not answer: {0}")]
    Away(String),
}

impl LinkError {
    /// Whether it passes when the servers are back, without a change of the configuration.
    pub fn is_temporary(&self) -> bool {
        match self {
            LinkError::Start(error) => error.is_temporary(),
            LinkError::Away(_) => true,
        }
    }
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
    connection: Connection,
    pub(crate) client: Client,
    pub(crate) context: Context,
    cell: String,
    pub(crate) servers: NatsServers,
    /// How many servers have the list of hosts.
    pub(crate) replicas: usize,
}

impl Link {
    pub async fn connect(servers: &NatsServers, cell: &str) -> Result<Link, LinkError> {
        let connection = servers.connect().await?;
        let client = connection.client.clone();
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        let (cell, servers) = (cell.to_owned(), servers.clone());
        Ok(Link { connection, client, context, cell, servers, replicas: 1 })
    }

    /// Makes the list of hosts and the audit trail if there are none, so that so many servers have them. For
    /// members of the fleet; who only looks makes nothing.
    pub async fn prepare(&mut self, replicas: usize) -> Result<(), LinkError> {
        self.replicas = replicas;
        for config in [self.list(replicas), self.trail(replicas)] {
            self.connection.ensure_stream(&self.context, &config).await?;
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
