//! What can go wrong between us and the hub.

use jackfield_transport::DialError;
use serde_json::Value;
use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the hub cannot be reached")]
    Unreachable(#[from] DialError),
    #[error("the hub has closed the connection")]
    Gone,
    #[error("the hub does not answer")]
    Silent,
    /// Its answer is an error: the JSON-RPC error object.
    #[error("{}", .0["message"].as_str().unwrap_or("refused"))]
    Refused(Value),
}

impl Trouble {
    /// The stable name of an error that the hub answered with.
    pub(crate) fn name(&self) -> Option<&str> {
        let Trouble::Refused(error) = self else { return None };
        error.pointer("/data/jackfield/code")?.as_str()
    }
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Trouble {
        Trouble::Gone
    }
}
