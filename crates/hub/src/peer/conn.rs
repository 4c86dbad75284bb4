//! Client connections: capabilities, pending requests, requests that were sent to the client, and unwritten bytes.

use crate::{
    AgentId, ConnId, Environment, Launch, Output, PeerProcess, SessionId, Tenant,
    budget::{ByteCharge, ByteOwner},
    context::HubContext,
    fallback::FailedAgent,
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
    /// The `initialize` parameters of the client. Agents that are started for it get the same.
    pub(crate) initialize_params: Option<Box<str>>,
    /// The name that the client reported.
    pub(crate) name: Option<Arc<str>>,
    /// Its process, if it is known.
    pub(crate) peer: Option<PeerProcess>,
    /// It accepts sessions in which deny rules cannot be enforced.
    pub(crate) unenforced: bool,
    /// The sandbox profile of the agents that are started for this client, if it chose one.
    pub(crate) sandbox: Option<Arc<str>>,
    /// How long each step of the start of its agents may take, if it has chosen that.
    pub(crate) start_timeout_ms: Option<u64>,
    /// Its tenant; clients of the operator have none.
    pub(crate) tenant: Option<Arc<Tenant>>,
    /// It gets the sequence numbers of events.
    pub(crate) aware: bool,
    /// It is the connection of a gateway, which repeats requests at another host when a session moves.
    pub(crate) relay: bool,
    /// It gets notices for events that ACP has no message for.
    pub(crate) notices: bool,
    pub(crate) capabilities: PeerCapabilities,
    /// The agent for its new sessions.
    pub(crate) launch: Option<Launch>,
    /// The environment of the client, for agents that it did not name with it.
    pub(crate) env: Option<Arc<Environment>>,
    /// Agents that could not be started, before the fallback.
    pub(crate) fallen: Vec<FailedAgent>,
    /// A process that was started for it and serves no session yet.
    pub(crate) spare: Option<AgentId>,
    pub(crate) attached: BTreeSet<SessionId>,
    /// It sends nothing more.
    pub(crate) finished: bool,
    /// Bytes that were sent and are not written yet.
    pub(crate) outbox: ByteCharge,
    /// It gets no events of some session until it has read.
    pub(crate) behind: bool,
    /// It gets no more messages.
    is_closed: bool,
    /// Bytes of its messages that are retained.
    pub(crate) kept: ByteOwner,
    /// Its pending requests, by its request id.
    pub(crate) requests: BTreeMap<Box<str>, RequestRoute>,
    /// Requests that were sent to it, by the request id of the hub.
    pub(crate) asked: BTreeMap<u64, IssuedRequest>,
    next_ask: u64,
}

/// The client capabilities that the hub uses.
#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent flags of the protocol")]
pub(crate) struct PeerCapabilities {
    pub(crate) read_files: bool,
    pub(crate) write_files: bool,
    pub(crate) terminal: bool,
    pub(crate) elicitation: bool,
}

/// Where a request of a client was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// The hub answers it, or an agent must be started first.
    Hub,
    /// To an agent, with this request id.
    Agent(AgentId, u64),
    /// A prompt: queued or running.
    Turn(SessionId),
}

/// A request of an agent that was sent to a client.
#[derive(Debug)]
pub(crate) enum IssuedRequest {
    /// A request to the user, which other clients may have, too.
    Ask(SessionId, u64),
    /// A request for this client only.
    Direct {
        agent: AgentId,
        agent_request_id: Box<str>,
        session: Option<SessionId>,
        _charge: ByteCharge,
    },
}

impl ClientConnection {
    pub(crate) fn new(peer: Option<PeerProcess>, outbox: ByteCharge) -> ClientConnection {
        ClientConnection {
            initialize_params: None,
            name: None,
            peer,
            unenforced: false,
            sandbox: None,
            start_timeout_ms: None,
            tenant: None,
            aware: false,
            relay: false,
            notices: false,
            capabilities: PeerCapabilities::default(),
            launch: None,
            env: None,
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

    /// Registers a request to this client and returns its id.
    pub(crate) fn issue(&mut self, what: IssuedRequest) -> u64 {
        self.next_ask += 1;
        self.asked.insert(self.next_ask, what);
        self.next_ask
    }

    /// The number of pending requests for this client only.
    pub(super) fn count_direct_requests(&self) -> usize {
        self.asked.values().filter(|it| matches!(it, IssuedRequest::Direct { .. })).count()
    }

    pub(crate) fn shown(&self, id: ConnId) -> Arc<str> {
        match &self.name {
            Some(name) => format!("{name} ({id})").into(),
            None => id.to_string().into(),
        }
    }
}

/// A response with the error object of an agent.
pub(crate) fn error_frame(id: &str, error: &str) -> Frame {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    Frame::parse_str(&text).expect("an id and an error object make a response")
}

/// The response to a prompt: the outcome of its turn.
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

    /// Answers a request of a client at once.
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

    /// Answers a frame that is not valid.
    pub(crate) fn answer_invalid_frame(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        fault: &Fault,
    ) {
        let frame = Frame::error_for(fault.request_id(), fault);
        self.send(cx, conn, frame.bytes().clone());
    }

    /// Forgets a connection that was closed.
    pub(crate) fn remove_connection(&mut self, id: ConnId) -> Option<ClientConnection> {
        let conn = self.connections.remove(&id)?;
        self.finished -= usize::from(conn.finished);
        Some(conn)
    }

    /// The `initialize` parameters of a client.
    pub(crate) fn initialize_params(&self, conn: ConnId) -> Option<Box<str>> {
        self.connections.get(&conn)?.initialize_params.clone()
    }

    /// The name of a client for people.
    pub(crate) fn describe_client(&self, conn: ConnId) -> Arc<str> {
        self.connections.get(&conn).map_or_else(|| "gone".into(), |it| it.shown(conn))
    }

    /// The client and its request that were sent there.
    pub(crate) fn find_request(&self, route: &RequestRoute) -> Option<(ConnId, Box<str>)> {
        self.connections.iter().find_map(|(&conn, it)| {
            let mut requests = it.requests.iter();
            requests.find(|(_, it)| *it == route).map(|(request, _)| (conn, request.clone()))
        })
    }

    pub(crate) fn is_relay(&self, conn: ConnId) -> bool {
        self.connections.get(&conn).is_some_and(|it| it.relay)
    }

    pub(crate) fn finish_request(&mut self, conn: ConnId, id: &str) {
        if let Some(conn) = self.connections.get_mut(&conn) {
            conn.requests.remove(id);
        }
    }

    /// Registers a request of a client, or refuses it.
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
