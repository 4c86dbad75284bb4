//! Everything that can happen to the gateway. A closed list.

use super::{Host, HostConnectionId, HostId};
use jackfield_events::AgentName;
use jackfield_events::SessionEvent;
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::{Fault, Frame};

#[derive(Debug, Clone)]
pub enum GatewayInput {
    ClientOpened {
        conn: ConnId,
    },
    ClientSpoke {
        conn: ConnId,
        frame: Frame,
    },
    /// A client said something that is no message.
    ClientSentInvalidFrame {
        conn: ConnId,
        fault: Fault,
    },
    /// So many bytes of the texts for this client are on their way.
    ClientWrote {
        conn: ConnId,
        bytes: usize,
    },
    /// A client will say nothing more but still listens.
    ClientFinished {
        conn: ConnId,
    },
    ClientGone {
        conn: ConnId,
    },
    /// The host has taken the connection.
    HostConnectionOpened {
        host_conn: HostConnectionId,
    },
    HostSentFrame {
        host_conn: HostConnectionId,
        frame: Frame,
    },
    /// So many bytes of the texts for this host connection are on their way.
    HostConnectionWrote {
        host_conn: HostConnectionId,
        bytes: usize,
    },
    /// It ended, or could not be opened.
    HostConnectionGone {
        host_conn: HostConnectionId,
        why: String,
    },
    /// All hosts there are, whenever that changes. One that is not among them is lost.
    Hosts(Vec<Host>),
    /// Who owns a session now; asked for by [`super::GatewayOutput::Locate`].
    /// [`Fault::SessionNotFound`] is final, any other fault is tried again.
    Located {
        session: SessionId,
        owner: Result<HostId, Fault>,
    },
    /// A page of all sessions; asked for by [`super::GatewayOutput::List`].
    SessionsListed {
        token: u64,
        page: Result<SessionPage, Fault>,
    },
    /// The next events of a log; asked for by [`super::GatewayOutput::ReadLog`]. None if there are no more.
    LogRead {
        token: u64,
        events: Result<Vec<SessionEvent>, Fault>,
    },
    /// The time asked for by [`super::Gateway::poll_timeout`] has come.
    Tick,
    /// Answer and hang up on everybody.
    Stop,
}

/// Sessions of the whole fleet, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPage {
    pub sessions: Vec<ListedSession>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// One session, as the fleet knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    pub session: SessionId,
    pub agent: AgentName,
    pub cwd: String,
    pub title: Option<String>,
    /// `running`, `idle`, `asleep`, … as a hub shows it.
    pub state: String,
    pub updated_at: Time,
    /// The owner, if it has one.
    pub host: Option<HostId>,
}
