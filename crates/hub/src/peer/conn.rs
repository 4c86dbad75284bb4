//! Client connections: capabilities, pending requests, requests that were sent to the client, and unwritten bytes.

use crate::PeerProcess;
use crate::context::HubContext;
use crate::{
    AgentId, ConnId, Hub, Launch, Output, SessionId, Tenant,
    budget::{ByteCharge, ByteOwner},
    session::FailedAgent,
};
use bytes::Bytes;
use jackfield_events::TurnOutcome;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// All client connections.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) connections: BTreeMap<ConnId, ClientConnection>,
    /// Clients that send nothing more and still wait for answers.
    pub(crate) finished: usize,
    /// Connections that were closed during the current input.
    closed: Vec<ConnId>,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the client")]
pub(crate) struct ClientConnection {
    /// What the client sent with `initialize`; agents started for it are told the same.
    pub(crate) initialize_params: Option<Box<str>>,
    /// Who it says it is.
    pub(crate) name: Option<Arc<str>>,
    /// Its process, where the driver knows it.
    pub(crate) peer: Option<PeerProcess>,
    /// Its sessions may be opened although rules that deny something cannot be enforced in them.
    pub(crate) unenforced: bool,
    /// Whose client it is; nobody's is the operator's.
    pub(crate) tenant: Option<Arc<Tenant>>,
    /// Knows of the hub: hears the seqs of events.
    pub(crate) aware: bool,
    /// A gateway speaks for it: it is told where a session is not any more, and asks again elsewhere.
    pub(crate) relay: bool,
    /// And the facts that ACP has no words for.
    pub(crate) notices: bool,
    pub(crate) capabilities: PeerCapabilities,
    /// The agent of its new sessions.
    pub(crate) launch: Option<Launch>,
    /// The agents that were to be, and could not be had.
    pub(crate) fallen: Vec<FailedAgent>,
    /// A process started for it that serves no session yet.
    pub(crate) spare: Option<AgentId>,
    pub(crate) attached: BTreeSet<SessionId>,
    /// It has said all it will say.
    pub(crate) finished: bool,
    /// Bytes handed out and not yet written.
    pub(crate) outbox: ByteCharge,
    /// It hears no events of some session until it has read.
    pub(crate) behind: bool,
    /// It gets no more messages.
    is_closed: bool,
    /// Bytes of messages that are kept for it or of it.
    pub(crate) kept: ByteOwner,
    /// Its requests in flight, by its own id.
    pub(crate) requests: BTreeMap<Box<str>, RequestRoute>,
    /// What it was asked, by our id.
    pub(crate) asked: BTreeMap<u64, IssuedRequest>,
    next_ask: u64,
}

/// What a client can be asked beyond the baseline.
#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent flags of the protocol")]
pub(crate) struct PeerCapabilities {
    pub(crate) read_files: bool,
    pub(crate) write_files: bool,
    pub(crate) terminal: bool,
    pub(crate) elicitation: bool,
}

/// Where a client's request went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// The hub answers it itself, or an agent start must come first.
    Hub,
    /// An agent has it under this id.
    Agent(AgentId, u64),
    /// A prompt: queued or running.
    Turn(SessionId),
}

/// A request sent to a client on an agent's behalf.
#[derive(Debug)]
pub(crate) enum IssuedRequest {
    /// A journaled ask of a session; others may have been sent it too.
    Ask(SessionId, u64),
    /// For this client alone: the agent, its own id, and the session if it is about one.
    Passing { agent: AgentId, theirs: Box<str>, session: Option<SessionId>, _charge: ByteCharge },
}

impl ClientConnection {
    pub(crate) fn new(peer: Option<PeerProcess>, outbox: ByteCharge) -> ClientConnection {
        ClientConnection {
            initialize_params: None,
            name: None,
            peer,
            unenforced: false,
            tenant: None,
            aware: false,
            relay: false,
            notices: false,
            capabilities: PeerCapabilities::default(),
            launch: None,
            fallen: Vec::new(),
            spare: None,
            attached: BTreeSet::new(),
            finished: false,
            outbox,
            behind: false,
            is_closed: false,
            kept: ByteOwner::default(),
            requests: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_ask: 0,
        }
    }

    /// A fresh id for a request to this client.
    pub(crate) fn issue(&mut self, what: IssuedRequest) -> u64 {
        self.next_ask += 1;
        self.asked.insert(self.next_ask, what);
        self.next_ask
    }

    /// How many asks of agents wait for this client alone.
    pub(crate) fn passing(&self) -> usize {
        self.asked.values().filter(|it| matches!(it, IssuedRequest::Passing { .. })).count()
    }

    pub(crate) fn shown(&self, id: ConnId) -> Arc<str> {
        match &self.name {
            Some(name) => format!("{name} ({id})").into(),
            None => id.to_string().into(),
        }
    }
}

/// An error answer around an error object an agent gave.
pub(crate) fn error_frame(id: &str, error: &str) -> Frame {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    Frame::parse_str(&text).expect("an id and an error object make a response")
}

/// The answer to a prompt: how its turn ended.
pub(crate) fn outcome_frame(id: &str, outcome: &TurnOutcome) -> Frame {
    match outcome {
        TurnOutcome::Stopped(result) => Frame::result_for(id, result.as_str()),
        TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error) => {
            error_frame(id, error.as_str())
        }
    }
}

impl Clients {
    /// Counts bytes that were written to a client. Returns its sessions if those that fell behind may go on.
    pub(crate) fn count_written_bytes(
        &mut self,
        cx: &HubContext,
        conn: ConnId,
        bytes: usize,
    ) -> BTreeSet<SessionId> {
        let Some(it) = self.connections.get_mut(&conn) else { return BTreeSet::new() };
        let unwritten = it.outbox.bytes();
        assert!(bytes <= unwritten, "more was written than was sent");
        let counted = if is_planted("count-half-of-written-bytes") { bytes / 2 } else { bytes };
        it.outbox.resize(unwritten - counted);
        if !it.behind || cx.config.limits.outbox_bytes_low < it.outbox.bytes() {
            return BTreeSet::new();
        }
        it.behind = false;
        it.attached.clone()
    }

    /// Closes the connection of a client that does not read while answers for it add up.
    pub(crate) fn close_overloaded(&mut self, cx: &mut HubContext, conn: ConnId, what: String) {
        let frame = Frame::error_for("null", &Fault::Overloaded { what });
        self.send(cx, conn, frame.bytes().clone());
        let Some(it) = self.connections.get_mut(&conn).filter(|it| !it.is_closed) else { return };
        it.is_closed = true;
        self.closed.push(conn);
        cx.outputs.push_back(Output::CloseClient { conn });
    }

    /// A connection that was closed here and is still known.
    pub(crate) fn next_closed(&mut self) -> Option<ConnId> {
        self.closed.pop()
    }

    pub(crate) fn add_connection(
        &mut self,
        cx: &HubContext,
        conn: ConnId,
        peer: Option<PeerProcess>,
    ) {
        let outbox = cx.outbox_bytes.charge_unchecked(&ByteOwner::default(), 0);
        let known = self.connections.insert(conn, ClientConnection::new(peer, outbox));
        assert!(known.is_none(), "the id of a connection is used once");
    }

    /// Sends a message to a client.
    pub(crate) fn send(&mut self, cx: &mut HubContext, id: ConnId, text: Bytes) {
        let Some(conn) = self.connections.get_mut(&id).filter(|it| !it.is_closed) else { return };
        conn.outbox.resize(conn.outbox.bytes() + text.len());
        cx.outputs.push_back(Output::ToClient { conn: id, text });
    }

    /// Answers a request of a client, now.
    pub(crate) fn answer_request(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        id: &str,
        answer: Result<&str, &Fault>,
    ) {
        let frame = match answer {
            Ok(result) => Frame::result_for(id, result),
            Err(fault) => Frame::error_for(id, fault),
        };
        self.finish_request(conn, id);
        self.send(cx, conn, frame.bytes().clone());
    }

    pub(crate) fn is_relay(&self, conn: ConnId) -> bool {
        self.connections.get(&conn).is_some_and(|it| it.relay)
    }

    pub(crate) fn finish_request(&mut self, conn: ConnId, id: &str) {
        if let Some(conn) = self.connections.get_mut(&conn) {
            conn.requests.remove(id);
        }
    }

    /// Takes a request in, or refuses it with the reason.
    pub(crate) fn begin_request(
        &mut self,
        cx: &HubContext,
        conn: ConnId,
        id: &str,
    ) -> Result<(), Fault> {
        let max = cx.config.limits.pending_per_conn_max;
        let Some(conn) = self.connections.get_mut(&conn) else { return Err(Fault::Stopping) };
        if max <= conn.requests.len() {
            return Err(Fault::Overloaded { what: "too many requests in flight".into() });
        }
        if conn.requests.contains_key(id) {
            return Err(Fault::InvalidRequest {
                why: "this id is in use by an open request".into(),
            });
        }
        conn.requests.insert(id.into(), RequestRoute::Hub);
        Ok(())
    }
}

impl Hub {
    /// Hangs up on a client that has finished, once nothing is owed to it.
    pub(crate) fn close_finished(&mut self) {
        let settled = |id: &ConnId, conn: &ClientConnection| {
            let in_session = |session: &SessionId| {
                let session = self.sessions.by_id.get(session);
                session.is_none_or(|it| it.owes_nothing(*id))
            };
            let unsaid = || self.sessions.by_id.values().any(|it| it.log.has_message_for(*id));
            conn.requests.is_empty() && conn.attached.iter().all(in_session) && !unsaid()
        };
        let due =
            self.parts.clients.connections.iter().filter(|(id, it)| it.finished && settled(id, it));
        let due: Vec<ConnId> = due.map(|(&id, _)| id).collect();
        for conn in due {
            self.parts.cx.outputs.push_back(Output::CloseClient { conn });
            self.on_client_gone(conn);
        }
    }
}
