//! Connects to the servers of a fleet and creates streams there. Separates temporary failures from
//! those that need a change of the configuration.

use crate::NatsServers;
use async_nats::{
    Client, ConnectError, ConnectErrorKind, Event, ServerError,
    jetstream::{
        Context, ErrorCode,
        context::{CreateStreamError, CreateStreamErrorKind},
        stream::Config,
    },
};
use std::{
    error::Error,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a request is retried while the servers have no leader or too few members.
const NOT_READY_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request is retried after any other failure: servers that have just started may not
/// have discovered each other yet.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(15);

const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Why the servers of a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot reach NATS at {servers}: start a server there, or name others with --fleet")]
    Unreachable {
        servers: String,
        #[source]
        source: ConnectError,
    },
    #[error(
        "JetStream of NATS at {servers} cannot be used yet: {reason}: start the missing servers"
    )]
    NotReady { servers: String, reason: String },
    #[error(
        "NATS at {servers} refused a request: {reason}: check --fleet, --fleet-certs and --replicas, \
         and the configuration of the servers"
    )]
    Refused { servers: String, reason: String },
}

impl StartError {
    /// Whether a retry can succeed once the servers are back, without a configuration change.
    pub fn is_temporary(&self) -> bool {
        !matches!(self, StartError::Refused { .. })
    }
}

/// A connection and the last permission violation that the server reported on it.
#[derive(Debug, Clone)]
pub struct NatsConnection {
    pub client: Client,
    servers: NatsServers,
    /// The last permission violation. The server reports it as an event and does not answer the
    /// request itself.
    violation: Arc<Mutex<Option<String>>>,
}

impl NatsServers {
    /// Connects to any of the servers.
    pub async fn connect(&self) -> Result<NatsConnection, StartError> {
        let violation: Arc<Mutex<Option<String>>> = Arc::default();
        let reported = Arc::clone(&violation);
        let options = self.connect_options().event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(reason)) = event
                && reason.to_lowercase().contains("permissions violation")
            {
                *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
            std::future::ready(())
        });
        let servers = self.redacted_urls();
        match options.connect(self.urls().to_vec()).await {
            Ok(client) => Ok(NatsConnection { client, servers: self.clone(), violation }),
            Err(source) if is_temporary(&source) => {
                Err(StartError::Unreachable { servers, source })
            }
            Err(error) => Err(StartError::Refused { servers, reason: format_error_chain(&error) }),
        }
    }
}

impl NatsConnection {
    /// Creates a JetStream stream unless it exists; an existing stream is not changed. Retries for
    /// a few seconds.
    pub async fn ensure_stream(
        &self,
        context: &Context,
        config: &Config,
    ) -> Result<(), StartError> {
        let since = Instant::now();
        loop {
            let Err(error) = context.get_or_create_stream(config.clone()).await else {
                return Ok(());
            };
            let servers = self.servers.redacted_urls();
            let violation = self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(reason) = violation {
                return Err(StartError::Refused { servers, reason });
            }
            let (stream, waited) = (&config.name, since.elapsed());
            let reason = format!("stream `{stream}`: {}", format_error_chain(&error));
            if is_missing_servers(&error) {
                if NOT_READY_TIMEOUT < waited {
                    return Err(StartError::NotReady { servers, reason });
                }
            } else if REFUSED_TIMEOUT < waited {
                return Err(StartError::Refused { servers, reason });
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Whether a later attempt to connect may succeed. A server that refuses credentials will refuse
/// them again.
fn is_temporary(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::MaxReconnects => {
            true
        }
        // A failed TLS handshake is reported as invalid data.
        ConnectErrorKind::Io => !error.source().is_some_and(|it| {
            let error = it.downcast_ref::<io::Error>();
            error.is_some_and(|it| it.kind() == io::ErrorKind::InvalidData)
        }),
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Authentication
        | ConnectErrorKind::AuthorizationViolation
        | ConnectErrorKind::Tls => false,
    }
}

/// Whether the request failed because no leader answers or too few servers are running.
fn is_missing_servers(error: &CreateStreamError) -> bool {
    match error.kind() {
        CreateStreamErrorKind::TimedOut => true,
        CreateStreamErrorKind::JetStream(error) => [
            ErrorCode::CLUSTER_NOT_AVAILABLE,
            ErrorCode::CLUSTER_NOT_LEADER,
            ErrorCode::CLUSTER_INCOMPLETE,
            ErrorCode::CLUSTER_NO_PEERS,
            ErrorCode::INSUFFICIENT_RESOURCES,
            ErrorCode::STREAM_OFFLINE,
        ]
        .contains(&error.error_code()),
        _ => false,
    }
}

/// Formats an error with its causes in one line.
fn format_error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        let message = it.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = it.source();
    }
    text
}
