//! The audit log: what the clients of the fleet have done, stored separately from the sessions and
//! longer than them.
//!
//! Each gateway records the requests that it accepts, in order. An acknowledged event is stored on
//! as many servers as the log of a session. An event whose outcome is unknown is sent again with
//! the same message id, and stored once.

use crate::connection::{FleetConnection, FleetConnectionError};
use async_nats::{
    HeaderMap,
    jetstream::{
        consumer::{DeliverPolicy, pull::OrderedConfig},
        stream::{Config, DiscardPolicy, StorageType},
    },
};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// More than a year, so that questions about the last year can be answered.
const RETENTION_TIME: Duration = Duration::from_hours(24 * 400);
/// How long the servers remember message ids: longer than an event is retried.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// The maximum number of events that wait to be stored. Further events are only counted, and the
/// count is stored.
const WAITING_EVENTS_MAX: usize = 10_000;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The gateway that recorded it.
    pub gateway: String,
    /// The method, or `lost` for events that could not be stored.
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The id of the client's connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The number of events that are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

impl AuditEvent {
    /// Creates an event with the current time.
    pub fn new(gateway: &str, what: impl Into<String>) -> AuditEvent {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        AuditEvent {
            at: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            gateway: gateway.to_owned(),
            what: what.into(),
            tenant: None,
            client: None,
            conn: None,
            session: None,
            answer: None,
            refused: None,
            lost: None,
        }
    }
}

/// Records audit events in the background.
#[derive(Debug)]
pub struct AuditLog {
    events: mpsc::Sender<AuditEvent>,
    gateway: String,
    lost: u64,
}

impl AuditLog {
    /// Starts the task that stores the events. It ends when the log is dropped and its events are
    /// stored.
    pub fn open(connection: FleetConnection, gateway: &str) -> AuditLog {
        let (events, events_rx) = mpsc::channel(WAITING_EVENTS_MAX);
        tokio::spawn(store_events(connection, events_rx, crate::connection::random_id()));
        AuditLog { events, gateway: gateway.to_owned(), lost: 0 }
    }

    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// Records an event without waiting until it is stored.
    pub fn record(&mut self, event: AuditEvent) {
        if self.lost != 0 {
            let lost =
                AuditEvent { lost: Some(self.lost), ..AuditEvent::new(&self.gateway, "lost") };
            if self.events.try_send(lost).is_ok() {
                self.lost = 0;
            }
        }
        if self.events.try_send(event).is_err() {
            self.lost += 1;
            if self.lost.is_power_of_two() {
                tracing::error!(lost = self.lost, "failed to store audit events");
            }
        }
    }
}

async fn store_events(
    connection: FleetConnection,
    mut events: mpsc::Receiver<AuditEvent>,
    writer: String,
) {
    let mut number = 0_u64;
    while let Some(event) = events.recv().await {
        number += 1;
        let body = serde_json::to_vec(&event).expect("an event is plain data");
        let id = format!("{writer}-{number}");
        while let Err(error) = publish_event(&connection, &id, &body).await {
            tracing::debug!(error, "retrying to store audit event");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

async fn publish_event(connection: &FleetConnection, id: &str, body: &[u8]) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", id);
    let (subject, body) = (connection.audit_subject(), body.to_vec().into());
    let published = connection.context.publish_with_headers(subject, headers, body).await;
    let acknowledged = published.map_err(|it| it.to_string())?.await;
    acknowledged.map(drop).map_err(|it| it.to_string())
}

/// Whether to wait for new events at the end of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditEnd {
    Stop,
    Follow,
}

impl FleetConnection {
    pub(crate) fn audit_config(&self, replicas: usize) -> Config {
        Config {
            name: self.audit_stream(),
            subjects: vec![self.audit_subject()],
            max_age: RETENTION_TIME,
            num_replicas: replicas,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        }
    }

    fn audit_stream(&self) -> String {
        format!("{}-audit", self.cell())
    }

    fn audit_subject(&self) -> String {
        format!("{}.audit", self.cell())
    }

    /// Passes the events since a time to `visit`, in order, until `visit` returns `false` or the
    /// log ends.
    pub async fn read_audit_log(
        &self,
        since: Option<SystemTime>,
        end: AuditEnd,
        mut visit: impl FnMut(AuditEvent) -> bool,
    ) -> Result<(), FleetConnectionError> {
        let unavailable =
            |error: &dyn std::fmt::Display| FleetConnectionError::Unavailable(error.to_string());
        let stream = self.context.get_stream(self.audit_stream()).await;
        let stream = stream.map_err(|it| unavailable(&it))?;
        let deliver_policy = match since {
            Some(since) => DeliverPolicy::ByStartTime { start_time: since.into() },
            None => DeliverPolicy::All,
        };
        let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
        let consumer = stream.create_consumer(config).await.map_err(|it| unavailable(&it))?;
        let mut pending = consumer.cached_info().num_pending;
        let mut messages = consumer.messages().await.map_err(|it| unavailable(&it))?;
        while end == AuditEnd::Follow || pending != 0 {
            let Some(message) = messages.next().await else { return Ok(()) };
            let message = message.map_err(|it| unavailable(&it))?;
            pending = pending.saturating_sub(1);
            // Unknown fields of a later version are ignored, and so are messages that are not
            // events.
            let Ok(event) = serde_json::from_slice(&message.payload) else { continue };
            if !visit(event) {
                return Ok(());
            }
        }
        Ok(())
    }
}
