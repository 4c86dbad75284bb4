//! Errors of the hub client, and the error object of a response.

use jackfield_transport::DialError;
use serde_json::Value;
use std::io;

/// Why a request or a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum HubClientError {
    #[error("failed to connect to the hub")]
    Unreachable(#[from] DialError),
    #[error("the hub closed the connection")]
    Closed,
    #[error("the hub did not reply in time")]
    NoReply,
    #[error(transparent)]
    Refused(#[from] ErrorResponse),
    #[error("event {seq} of {session} is missing")]
    MissingEvent { session: String, seq: u64 },
}

impl HubClientError {
    /// The hub's stable name of the error, if it responded with one.
    pub fn error_name(&self) -> &str {
        let HubClientError::Refused(response) = self else { return "" };
        response.error_name()
    }
}

impl From<io::Error> for HubClientError {
    fn from(_: io::Error) -> HubClientError {
        HubClientError::Closed
    }
}

/// The error object of a response: the members of JSON-RPC, and those of the hub in
/// `data.jackfield`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .error["message"].as_str().unwrap_or("refused"))]
pub struct ErrorResponse {
    error: Value,
}

impl ErrorResponse {
    pub fn new(error: Value) -> ErrorResponse {
        ErrorResponse { error }
    }

    /// The error code of JSON-RPC.
    pub fn code(&self) -> i64 {
        self.error["code"].as_i64().unwrap_or(0)
    }

    pub fn message(&self) -> Option<&str> {
        self.error["message"].as_str()
    }

    pub fn data(&self) -> &Value {
        &self.error["data"]
    }

    /// The hub's stable name of the error; empty if the agent sent it.
    pub fn error_name(&self) -> &str {
        self.hub_member("code")
    }

    /// A member of `data.jackfield` that is a string; empty if it is missing.
    pub fn hub_member(&self, member: &str) -> &str {
        self.data()["jackfield"][member].as_str().unwrap_or_default()
    }
}
