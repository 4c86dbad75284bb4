//! Everything the gateway can ask for, and what it has to tell people.

use super::{ClientAction, HostConnectionId, HostId};
use bytes::Bytes;
use jackfield_events::TenantName;
use jackfield_hub::{ConnId, SessionId};
use std::fmt;

#[derive(Debug, Clone)]
pub enum GatewayOutput {
    ToClient {
        conn: ConnId,
        text: Bytes,
    },
    /// Send what is queued and hang up; answer with [`super::GatewayInput::ClientGone`].
    CloseClient {
        conn: ConnId,
    },
    /// Connect to a host; answer with [`super::GatewayInput::HostConnectionOpened`] or `HostConnectionGone`. What is to be
    /// said on it may follow at once.
    OpenHostConnection {
        host_conn: HostConnectionId,
        host: HostId,
    },
    ToHost {
        host_conn: HostConnectionId,
        text: Bytes,
    },
    /// Nobody listens to it any more. No answer is needed.
    CloseHostConnection {
        host_conn: HostConnectionId,
    },
    /// Stop reading it until [`GatewayOutput::ResumeClient`].
    PauseClient {
        conn: ConnId,
    },
    ResumeClient {
        conn: ConnId,
    },
    /// Stop reading it until [`GatewayOutput::ResumeHostConnection`].
    PauseHostConnection {
        host_conn: HostConnectionId,
    },
    ResumeHostConnection {
        host_conn: HostConnectionId,
    },
    /// Find the owner of a session, or have a host adopt it; answer with
    /// [`super::GatewayInput::Located`]. A host connection to `avoid` has just ended, or it has let the session
    /// go: if it still is the owner and alive, it is the answer all the same.
    Locate {
        session: SessionId,
        avoid: Option<HostId>,
    },
    /// Look up a page of all sessions; answer with [`super::GatewayInput::SessionsListed`].
    List {
        token: u64,
        cursor: Option<String>,
        cwd: Option<String>,
        /// Of this tenant only.
        tenant: Option<TenantName>,
    },
    /// Read the next events of a log from the journal; answer with [`super::GatewayInput::LogRead`].
    ReadLog {
        token: u64,
        session: SessionId,
        after: u64,
    },
    /// Something that somebody may want to know of later.
    ClientAction(ClientAction),
    /// Something worth a log line or a counter.
    Note(GatewayNote),
    /// After [`super::GatewayInput::Stop`]: no client is left.
    Stopped,
}

/// What people want to know. `Display` is the log line.
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
        why: String,
        sessions: usize,
    },
    /// A hub has let a session go.
    Moved {
        session: SessionId,
        host: HostId,
    },
    /// What waited for a session, or for any host, has waited too long.
    GaveUp {
        conn: ConnId,
        session: Option<SessionId>,
        why: String,
    },
    /// A message that nobody could be found for; a request was answered with the reason.
    Unrouted {
        conn: ConnId,
        method: String,
        why: String,
    },
}

impl fmt::Display for GatewayNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayNote::HostConnectionOpened { host_conn, host, conn } => {
                write!(f, "host connection {host_conn} of client {conn} to host `{host}` is open")
            }
            GatewayNote::HostConnectionLost { host_conn, host, conn, why, sessions } => {
                write!(
                    f,
                    "host connection {host_conn} of client {conn} to host `{host}` ended: {why}; "
                )?;
                write!(f, "the owners of {sessions} sessions are looked for")
            }
            GatewayNote::Moved { session, host } => {
                write!(f, "host `{host}` has let session {session} go")
            }
            GatewayNote::GaveUp { conn, session: Some(session), why } => {
                write!(f, "client {conn} waited too long for session {session}: {why}")
            }
            GatewayNote::GaveUp { conn, session: None, why } => {
                write!(f, "client {conn} waited too long for a host: {why}")
            }
            GatewayNote::Unrouted { conn, method, why } => {
                write!(f, "`{method}` of client {conn} goes nowhere: {why}")
            }
        }
    }
}
