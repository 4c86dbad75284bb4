//! The requests that a gateway or another host sends to a host, and the responses.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostRequest {
    /// Check that the host is alive.
    #[serde(rename = "here")]
    Ping,
    /// Accept a client's connection, which is relayed under this id.
    #[serde(rename = "relay")]
    OpenConnection(String),
    /// Adopt this session, unless a live host owns it. The owner itself confirms that it owns the
    /// session.
    #[serde(rename = "adopt")]
    AdoptSession(String),
    /// Release every session and accept no new ones, or accept new ones again. The response is the
    /// number of sessions left.
    #[serde(rename = "drain")]
    SetDraining(bool),
}

impl HostRequest {
    /// The last token of the subject that it is sent to.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            HostRequest::Ping => "here",
            HostRequest::OpenConnection(_) => "relay",
            HostRequest::AdoptSession(_) => "adopt",
            HostRequest::SetDraining(_) => "drain",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostResponse {
    Done,
    /// The number of sessions that are still on the host.
    #[serde(rename = "left")]
    SessionsLeft(u32),
    /// Another live host owns the session.
    #[serde(rename = "owned")]
    OwnedBy(String),
    /// The session does not exist.
    Missing,
    /// The request failed for this reason. It may be retried, or sent to another host.
    Refused(String),
    /// The host is draining: it accepts nothing and releases its sessions.
    Draining,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_json_names() {
        let requests = [
            (HostRequest::Ping, r#""here""#),
            (HostRequest::OpenConnection("1".into()), r#"{"relay":"1"}"#),
            (HostRequest::AdoptSession("s".into()), r#"{"adopt":"s"}"#),
            (HostRequest::SetDraining(true), r#"{"drain":true}"#),
        ];
        for (request, json) in requests {
            assert_eq!(serde_json::to_string(&request).unwrap(), json);
        }
        let responses = [
            (HostResponse::Done, r#""done""#),
            (HostResponse::SessionsLeft(2), r#"{"left":2}"#),
            (HostResponse::OwnedBy("a".into()), r#"{"owned":"a"}"#),
            (HostResponse::Missing, r#""missing""#),
            (HostResponse::Refused("no".into()), r#"{"refused":"no"}"#),
            (HostResponse::Draining, r#""draining""#),
        ];
        for (response, json) in responses {
            assert_eq!(serde_json::to_string(&response).unwrap(), json);
        }
    }
}
