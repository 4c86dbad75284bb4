//! The connection to the servers of a cell, and the subjects and stream names that the fleet uses.

use crate::host_entry::HostInstance;
use async_nats::{
    Client, Request,
    jetstream::{
        self, Context,
        stream::{Config, DiscardPolicy, StorageType},
    },
};
use bytes::Bytes;
use jackfield_nats_access::{NatsConnection, NatsServers, StartError};
use std::time::Duration;

/// The timeout of one request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The servers remove the entry of a host that was not renewed for this long.
const ENTRIES_MAX_AGE: Duration = Duration::from_hours(1);

#[derive(Debug, thiserror::Error)]
pub enum FleetConnectionError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the servers do not answer: {0}")]
    Unavailable(String),
}

impl FleetConnectionError {
    /// Whether a retry can succeed once the servers are back, without a configuration change.
    pub fn is_temporary(&self) -> bool {
        match self {
            FleetConnectionError::Start(error) => error.is_temporary(),
            FleetConnectionError::Unavailable(_) => true,
        }
    }
}

/// The name and the version of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

/// A connection to the servers of a cell. Clones share it.
#[derive(Debug, Clone)]
pub struct FleetConnection {
    connection: NatsConnection,
    pub(crate) client: Client,
    pub(crate) context: Context,
    cell: String,
    pub(crate) servers: NatsServers,
    /// The number of servers that store the list of hosts.
    pub(crate) replicas: usize,
}

impl FleetConnection {
    pub async fn connect(
        servers: &NatsServers,
        cell: &str,
    ) -> Result<FleetConnection, FleetConnectionError> {
        let connection = servers.connect().await?;
        let client = connection.client.clone();
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        let (cell, servers) = (cell.to_owned(), servers.clone());
        Ok(FleetConnection { connection, client, context, cell, servers, replicas: 1 })
    }

    /// Creates the list of hosts and the audit log with this many replicas, unless they exist. Only
    /// members of the fleet call this; operators create nothing.
    pub async fn create_streams(&mut self, replicas: usize) -> Result<(), FleetConnectionError> {
        self.replicas = replicas;
        for config in [self.hosts_config(replicas), self.audit_config(replicas)] {
            self.connection.ensure_stream(&self.context, &config).await?;
        }
        Ok(())
    }

    fn hosts_config(&self, replicas: usize) -> Config {
        Config {
            name: self.hosts_stream(),
            subjects: vec![self.host_subject("*")],
            max_messages_per_subject: 1,
            max_age: ENTRIES_MAX_AGE,
            num_replicas: replicas,
            // Hosts renew all entries every few seconds.
            storage: StorageType::Memory,
            discard: DiscardPolicy::Old,
            allow_direct: true,
            ..Config::default()
        }
    }

    /// The server at the other end of this connection, for output.
    pub fn server_info(&self) -> ServerInfo {
        let info = self.client.server_info();
        ServerInfo { name: info.server_name, version: info.version }
    }

    pub(crate) fn cell(&self) -> &str {
        &self.cell
    }

    /// The name of the JetStream stream with the list of hosts.
    pub(crate) fn hosts_stream(&self) -> String {
        format!("{}-hosts", self.cell)
    }

    /// The subject of the entry of one host.
    pub(crate) fn host_subject(&self, host: &str) -> String {
        format!("{}.host.{host}", self.cell)
    }

    /// The subject of requests of one kind to one incarnation of a host; `*` matches every kind.
    /// Roles differ in the kinds that they may send.
    pub(crate) fn request_subject(&self, host: &HostInstance, kind: &str) -> String {
        format!("{}.ask.{}.{}.{kind}", self.cell, host.name, host.incarnation)
    }

    /// The subject of one direction of a host connection.
    pub(crate) fn relay_subject(&self, id: &str, direction: &str) -> String {
        format!("{}.relay.{id}.{direction}", self.cell)
    }

    pub(crate) async fn request_bytes(
        &self,
        subject: String,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, FleetConnectionError> {
        let request = Request::new().payload(body).timeout(Some(timeout));
        let response = self.client.send_request(subject, request).await;
        response
            .map(|it| it.payload)
            .map_err(|it| FleetConnectionError::Unavailable(it.to_string()))
    }
}

/// A random id of 16 hex digits.
pub fn random_id() -> String {
    let number = getrandom::u64().expect("the system has random numbers");
    format!("{number:016x}")
}
