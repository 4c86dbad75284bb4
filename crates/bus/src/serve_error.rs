//! Why a bus failed to start.

use crate::config::BusConfigError;
use jackfield_transport::{BindError, EndpointAddress, TokenError};
use std::io;
use std::net::SocketAddr;

/// Why a bus failed to start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Config(#[from] BusConfigError),
    #[error("cannot listen on `{address}`")]
    Listen {
        address: EndpointAddress,
        #[source]
        source: BindError,
    },
    #[error("`{address}` with TLS needs a token, or anyone could connect: pass --token-file")]
    NeedsToken { address: SocketAddr },
    #[error("cannot use the token file")]
    Token(#[source] TokenError),
    #[error("cannot serve metrics on `{address}`")]
    Metrics {
        address: EndpointAddress,
        #[source]
        source: BindError,
    },
    #[error("cannot prepare {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}
