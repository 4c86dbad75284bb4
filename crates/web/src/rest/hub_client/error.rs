//! Errors of the hub client.

use jackfield_transport::DialError;
use serde_json::Value;
use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum HubClientError {
    #[error("failed to connect to the hub")]
    Unreachable(#[from] DialError),
    #[error("the hub closed the connection")]
    Closed,
    #[error("the hub did not reply in time")]
    NoReply,
    /// The hub replied with this JSON-RPC error object.
    #[error("{}", .0["message"].as_str().unwrap_or("refused"))]
    Refused(Value),
}

impl HubClientError {
    /// The stable code of an error reply.
    pub(crate) fn code(&self) -> Option<&str> {
        let HubClientError::Refused(error) = self else { return None };
        error.pointer("/data/jackfield/code")?.as_str()
    }
}

impl From<io::Error> for HubClientError {
    fn from(_: io::Error) -> HubClientError {
        HubClientError::Closed
    }
}
