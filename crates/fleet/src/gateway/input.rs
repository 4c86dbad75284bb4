//! Inputs of the gateway.

use super::{
    config::{Host, HostId},
    host_connection_id::HostConnectionId,
};
use jackfield_events::AgentName;
use jackfield_events::SessionEvent;
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::{Fault, Frame};

#[derive(Debug, Clone)]
pub enum GatewayInput {
    ClientOpened {
        conn: ConnId,
    },
    ClientSentFrame {
        conn: ConnId,
        frame: Frame,
    },
    /// A client sent a line that is not a JSON-RPC message.
    ClientSentInvalidFrame {
        conn: ConnId,
        fault: Fault,
    },
    /// This many bytes for the client were written to its socket.
    ClientWrote {
        conn: ConnId,
        bytes: usize,
    },
    /// The client has closed its sending side but still reads.
    ClientFinished {
        conn: ConnId,
    },
    ClientGone {
        conn: ConnId,
    },
    /// The host has accepted the connection.
    HostConnectionOpened {
        host_conn: HostConnectionId,
    },
    HostSentFrame {
        host_conn: HostConnectionId,
        frame: Frame,
    },
    /// This many bytes for the host were written to its connection.
    HostConnectionWrote {
        host_conn: HostConnectionId,
        bytes: usize,
    },
    /// The connection ended, or could not be opened.
    HostConnectionGone {
        host_conn: HostConnectionId,
        reason: String,
    },
    /// All live hosts, sent whenever the list changes. A host that is not in it is lost.
    HostsChanged(Vec<Host>),
    /// The owner of a session; the response to [`super::GatewayOutput::LocateSession`].
    /// [`Fault::SessionNotFound`] is final; after any other fault the gateway tries again.
    SessionLocated {
        session: SessionId,
        owner: Result<HostId, Fault>,
    },
    /// A page of all sessions; the response to [`super::GatewayOutput::ListSessions`].
    SessionsListed {
        token: u64,
        page: Result<SessionPage, Fault>,
    },
    /// The next events of a log; the response to [`super::GatewayOutput::ReadLog`]. Empty at the
    /// end of the log.
    LogRead {
        token: u64,
        events: Result<Vec<SessionEvent>, Fault>,
    },
    /// The time of [`super::Gateway::poll_timeout`] has come.
    Tick,
    /// Answer all requests and close all clients.
    Stop,
}

/// Sessions of the whole fleet, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPage {
    pub sessions: Vec<ListedSession>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A session in the list of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    pub session: SessionId,
    pub agent: AgentName,
    pub cwd: String,
    pub title: Option<String>,
    /// `running`, `idle`, `asleep`, …, as a hub reports it.
    pub state: String,
    pub updated_at: Time,
    /// The owner, if any.
    pub host: Option<HostId>,
}
