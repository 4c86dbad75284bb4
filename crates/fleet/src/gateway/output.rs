//! Outputs and log notes of the gateway.

use super::{client_action::ClientAction, config::HostId, host_connection_id::HostConnectionId};
use bytes::Bytes;
use jackfield_events::TenantName;
use jackfield_hub::{ConnId, SessionId};
use std::fmt;

#[derive(Debug, Clone)]
pub enum GatewayOutput {
    SendToClient {
        conn: ConnId,
        text: Bytes,
    },
    /// Send what is queued and close; respond with [`super::GatewayInput::ClientGone`].
    CloseClient {
        conn: ConnId,
    },
    /// Connect to a host; respond with [`super::GatewayInput::HostConnectionOpened`] or
    /// `HostConnectionGone`. [`GatewayOutput::SendToHost`] may follow at once.
    OpenHostConnection {
        host_conn: HostConnectionId,
        host: HostId,
    },
    SendToHost {
        host_conn: HostConnectionId,
        text: Bytes,
    },
    /// Close the connection. No response is needed.
    CloseHostConnection {
        host_conn: HostConnectionId,
    },
    /// Stop reading the client until [`GatewayOutput::ResumeClient`].
    PauseClient {
        conn: ConnId,
    },
    ResumeClient {
        conn: ConnId,
    },
    /// Stop reading the connection until [`GatewayOutput::ResumeHostConnection`].
    PauseHostConnection {
        host_conn: HostConnectionId,
    },
    ResumeHostConnection {
        host_conn: HostConnectionId,
    },
    /// Find the owner of a session, or have a host adopt it; respond with
    /// [`super::GatewayInput::SessionLocated`]. The connection to `avoid` has just ended, or this
    /// host released the session; it is the answer all the same if it is alive and still the owner.
    LocateSession {
        session: SessionId,
        avoid: Option<HostId>,
    },
    /// Read a page of all sessions; respond with [`super::GatewayInput::SessionsListed`].
    ListSessions {
        token: u64,
        cursor: Option<String>,
        cwd: Option<String>,
        /// Only sessions of this tenant.
        tenant: Option<TenantName>,
    },
    /// Read the next events of a log from the journal; respond with
    /// [`super::GatewayInput::LogRead`].
    ReadLog {
        token: u64,
        session: SessionId,
        after: u64,
    },
    /// Write this to the audit log.
    ClientAction(ClientAction),
    /// Write a log line.
    Note(GatewayNote),
    /// After [`super::GatewayInput::Stop`]: no client is left.
    Stopped,
}

/// Events for the log. `Display` is the log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayNote {
    HostConnectionOpened {
        host_conn: HostConnectionId,
        host: HostId,
        conn: ConnId,
    },
    HostConnectionLost {
        host_conn: HostConnectionId,
        host: HostId,
        conn: ConnId,
        reason: String,
        sessions: usize,
    },
    /// A host has released a session.
    Moved {
        session: SessionId,
        host: HostId,
    },
    /// A message waited too long for the owner of a session, or for any host.
    GaveUp {
        conn: ConnId,
        session: Option<SessionId>,
        reason: String,
    },
    /// A message could not be routed; a request was answered with the reason.
    Unrouted {
        conn: ConnId,
        method: String,
        reason: String,
    },
}

impl fmt::Display for GatewayNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayNote::HostConnectionOpened { host_conn, host, conn } => {
                write!(f, "opened host connection {host_conn} of client {conn} to host `{host}`")
            }
            GatewayNote::HostConnectionLost { host_conn, host, conn, reason, sessions } => {
                write!(f, "lost host connection {host_conn} of client {conn} to host `{host}`: ")?;
                write!(f, "{reason}; searching the owners of {sessions} sessions")
            }
            GatewayNote::Moved { session, host } => {
                write!(f, "host `{host}` released session {session}")
            }
            GatewayNote::GaveUp { conn, session: Some(session), reason } => {
                write!(f, "client {conn} waited too long for session {session}: {reason}")
            }
            GatewayNote::GaveUp { conn, session: None, reason } => {
                write!(f, "client {conn} waited too long for a host: {reason}")
            }
            GatewayNote::Unrouted { conn, method, reason } => {
                write!(f, "failed to route `{method}` of client {conn}: {reason}")
            }
        }
    }
}
