//! The first steps on the servers of a fleet, and which of their failures pass without a change.

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

/// How long servers without a leader, or with too few members, are asked before the caller is told.
const NOT_READY_AFTER: Duration = Duration::from_secs(3);
/// The same for every other failure: servers that have just started may not know each other yet.
const REFUSED_AFTER: Duration = Duration::from_secs(15);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

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
        "JetStream of NATS at {servers} cannot be used yet: {why}: start the servers that are missing"
    )]
    NotReady { servers: String, why: String },
    #[error(
        "NATS at {servers} refuses what is needed: {why}: check --fleet, --fleet-certs and --replicas, \
         and the configuration of the servers"
    )]
    Refused { servers: String, why: String },
}

impl StartError {
    /// Whether it passes when the servers are back, without a change of the configuration.
    pub fn is_temporary(&self) -> bool {
        !matches!(self, StartError::Refused { .. })
    }
}

/// A connection, and what the server has refused on it.
#[derive(Debug, Clone)]
pub struct Connection {
    pub client: Client,
    servers: NatsServers,
    /// The last request that the permissions of this client do not allow. The server answers it with nothing else.
    violation: Arc<Mutex<Option<String>>>,
}

impl NatsServers {
    /// Connects to any of the servers.
    pub async fn connect(&self) -> Result<Connection, StartError> {
        let violation: Arc<Mutex<Option<String>>> = Arc::default();
        let noted = Arc::clone(&violation);
        let options = self.options().event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(why)) = event
                && why.to_lowercase().contains("permissions violation")
            {
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
            std::future::ready(())
        });
        let servers = self.shown();
        match options.connect(self.urls().to_vec()).await {
            Ok(client) => Ok(Connection { client, servers: self.clone(), violation }),
            Err(source) if is_temporary(&source) => {
                Err(StartError::Unreachable { servers, source })
            }
            Err(error) => Err(StartError::Refused { servers, why: chain(&error) }),
        }
    }
}

impl Connection {
    /// Creates a stream unless there is one, which is left as it is. Tries again for a few seconds.
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
            let servers = self.servers.shown();
            let violation = self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(why) = violation {
                return Err(StartError::Refused { servers, why });
            }
            let (stream, waited) = (&config.name, since.elapsed());
            let why = format!("stream `{stream}`: {}", chain(&error));
            if lacks_servers(&error) {
                if NOT_READY_AFTER < waited {
                    return Err(StartError::NotReady { servers, why });
                }
            } else if REFUSED_AFTER < waited {
                return Err(StartError::Refused { servers, why });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether connecting may succeed later. Credentials that a server refuses it refuses again.
fn is_temporary(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::MaxReconnects => {
            true
        }
        // A handshake of TLS that fails is an error of the data that was read.
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

/// Whether servers are missing that would do it: no leader answers, or too few are there.
fn lacks_servers(error: &CreateStreamError) -> bool {
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

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        let said = it.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = it.source();
    }
    text
}
