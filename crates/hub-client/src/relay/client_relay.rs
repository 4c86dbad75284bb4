//! Relays the frames of one client to the hub, across lost connections.

use super::{
    ReplayPosition, RequestKeys, event_seq,
    hub_meta::without_hub_meta,
    log_head,
    pending_requests::{PendingRequest, PendingRequests},
    replays_history,
};
use bytes::Bytes;
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// The start of the ids of the relay's own requests, as JSON text.
const OWN_ID_START: &str = "\"jackfield-relay-";

/// Lines to write after an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RelayOutput {
    pub to_hub: Vec<Bytes>,
    pub to_client: Vec<Bytes>,
}

/// What a client has opened and what it waits for, so that both survive the loss of the connection. The driver reads and
/// writes; this is a state machine without I/O.
#[derive(Debug)]
pub struct ClientRelay {
    keys: RequestKeys,
    /// `_jackfield/connect` and `initialize`, in the order of the client. They are sent again on each connection.
    handshake: Vec<Frame>,
    requests: PendingRequests,
    /// The sessions of the client, and how far it has received each.
    sessions: BTreeMap<String, ReplayPosition>,
    /// Requests of the hub that the client has not answered, by the client's id.
    hub_requests: BTreeSet<u64>,
    last_hub_request: u64,
    /// The client's id of a hub request is the hub's id plus this: each hub process counts from the beginning.
    id_offset: u64,
    /// The relay's own attach requests on this connection.
    attaching: BTreeMap<String, String>,
    last_own_id: u64,
    /// The client asked for sequence numbers. Other clients get the agent's bytes.
    wants_hub_meta: bool,
}

impl ClientRelay {
    /// `seed` is random. `connect` are the parameters of `_jackfield/connect` that the driver has sent on the first
    /// connection.
    pub fn new(seed: u64, connect: &[Value]) -> ClientRelay {
        let connect_frame =
            |it: &Value| Frame::request("0", Method::ControlConnect.name(), &it.to_string());
        ClientRelay {
            keys: RequestKeys::new(seed),
            handshake: connect.iter().map(connect_frame).collect(),
            requests: PendingRequests::default(),
            sessions: BTreeMap::new(),
            hub_requests: BTreeSet::new(),
            last_hub_request: 0,
            id_offset: 0,
            attaching: BTreeMap::new(),
            last_own_id: 0,
            wants_hub_meta: false,
        }
    }

    /// Whether the client waits for a response.
    pub fn has_pending_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Cancels the turns that the client waits for: the notifications for the hub.
    pub fn cancel_turns(&mut self) -> Vec<Bytes> {
        let sessions: BTreeSet<String> = self.requests.prompted_sessions().collect();
        sessions.iter().map(|it| cancel_frame(it).into_bytes()).collect()
    }

    /// Whether the client waits for the end of a turn.
    pub fn has_running_turns(&self) -> bool {
        self.requests.prompted_sessions().next().is_some()
    }

    /// A line of the client. Lines that are not frames are for the hub to answer.
    pub fn on_client_line(&mut self, line: Bytes) -> RelayOutput {
        let Ok(frame) = Frame::parse(line.clone()) else {
            return RelayOutput { to_hub: vec![line], ..RelayOutput::default() };
        };
        match frame.kind() {
            Kind::Request => self.on_client_request(frame),
            Kind::Notification => {
                self.on_client_notification(&frame);
                RelayOutput { to_hub: vec![frame.into_bytes()], ..RelayOutput::default() }
            }
            Kind::Response => self.on_client_response(&frame),
        }
    }

    fn on_client_request(&mut self, frame: Frame) -> RelayOutput {
        let id = frame.id().unwrap_or("null");
        if self.requests.contains(id) {
            let why = "this id is in use by an open request".to_owned();
            let refusal = Frame::error_for(id, &Fault::InvalidRequest { why });
            return RelayOutput { to_client: vec![refusal.into_bytes()], ..RelayOutput::default() };
        }
        let mut to_hub = Vec::new();
        let session = frame.session_id().map(Cow::into_owned);
        let sent = match frame.known_method() {
            Some(Method::Initialize) => {
                self.wants_hub_meta = asks_for_hub_meta(&frame);
                if !self.wants_hub_meta {
                    to_hub
                        .push(Frame::notification(Method::ControlRelay.name(), "{}").into_bytes());
                }
                // The hub refuses a second one.
                if !self.handshake.iter().any(|it| it.is_method(Method::Initialize)) {
                    self.handshake.push(frame.clone());
                }
                frame
            }
            Some(Method::ControlConnect) => {
                self.handshake.push(frame.clone());
                frame
            }
            Some(Method::SessionPrompt) => {
                self.sessions.entry(session.unwrap_or_default()).or_default();
                self.keys.add_key(&frame)
            }
            Some(Method::SessionNew) => self.keys.add_key(&frame),
            _ => {
                let position = session.and_then(|it| self.sessions.get_mut(&it));
                if let Some(position) = position.filter(|_| replays_history(&frame)) {
                    position.request_replay();
                }
                frame
            }
        };
        to_hub.push(sent.bytes().clone());
        self.requests.add(sent);
        RelayOutput { to_hub, to_client: Vec::new() }
    }

    fn on_client_notification(&mut self, frame: &Frame) {
        match frame.known_method() {
            Some(Method::SessionCancel) => {
                let session = frame.session_id().unwrap_or_default();
                self.requests.mark_prompts_canceled(&session);
            }
            Some(Method::CancelRequest) => {
                self.requests.mark_canceled(frame.request_id().unwrap_or_default());
            }
            Some(Method::ControlConnect) => self.handshake.push(frame.clone()),
            _ => {}
        }
    }

    /// Drops the answer to a request of a hub process that has ended.
    fn on_client_response(&mut self, frame: &Frame) -> RelayOutput {
        let id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let Some(id) = id.filter(|it| self.hub_requests.remove(it)) else {
            return RelayOutput::default();
        };
        let answer = if self.id_offset == 0 {
            frame.clone()
        } else {
            frame.with_id(&(id - self.id_offset).to_string())
        };
        RelayOutput { to_hub: vec![answer.into_bytes()], ..RelayOutput::default() }
    }

    /// A line of the hub: the lines for the client.
    pub fn on_hub_line(&mut self, line: Bytes) -> Vec<Bytes> {
        let Ok(frame) = Frame::parse(line.clone()) else { return vec![line] };
        match (frame.kind(), frame.known_method()) {
            (Kind::Response, _) => self.on_hub_response(&frame),
            (Kind::Request, _) => vec![self.on_hub_request(&frame)],
            (_, Some(Method::CancelRequest)) => self.on_hub_cancel(&frame).into_iter().collect(),
            (_, Some(Method::ControlMoved)) => self.on_moved(&frame),
            _ => self.on_hub_notification(&frame).into_iter().collect(),
        }
    }

    fn on_hub_response(&mut self, frame: &Frame) -> Vec<Bytes> {
        let id = frame.id().unwrap_or("null");
        if id.starts_with(OWN_ID_START) {
            if let Some(session) = self.attaching.remove(id) {
                match log_head(frame) {
                    Some(head) => {
                        if let Some(position) = self.sessions.get_mut(&session) {
                            position.complete_replay(Some(head));
                        }
                    }
                    // The session does not exist any more; the next request about it says so.
                    None => _ = self.sessions.remove(&session),
                }
            }
            return Vec::new();
        }
        if id == "null" {
            return vec![frame.bytes().clone()];
        }
        let Some(request) = self.requests.remove(id) else { return Vec::new() };
        self.apply_response(&request, frame);
        vec![frame.bytes().clone()]
    }

    /// The client is attached to a session that was opened or loaded.
    fn apply_response(&mut self, request: &PendingRequest, answer: &Frame) {
        if answer.result().is_none() {
            return;
        }
        let request = request.frame();
        let named = request.session_id().map(Cow::into_owned);
        match (request.known_method(), named, answer.session_id()) {
            (Some(Method::SessionNew | Method::SessionFork), _, Some(opened)) => {
                let head = log_head(answer).unwrap_or(0);
                let position = || ReplayPosition::up_to(head);
                self.sessions.entry(opened.into_owned()).or_insert_with(position);
            }
            (Some(Method::SessionDelete), Some(session), _) => _ = self.sessions.remove(&session),
            (
                Some(Method::SessionLoad | Method::SessionResume | Method::ControlAttach),
                Some(session),
                _,
            ) => self.sessions.entry(session).or_default().complete_replay(log_head(answer)),
            _ => {}
        }
    }

    fn on_hub_request(&mut self, frame: &Frame) -> Bytes {
        let Some(id) = frame.id().and_then(|it| it.parse::<u64>().ok()) else {
            return frame.bytes().clone();
        };
        let id = id + self.id_offset;
        self.hub_requests.insert(id);
        self.last_hub_request = self.last_hub_request.max(id);
        if self.id_offset == 0 {
            frame.bytes().clone()
        } else {
            frame.with_id(&id.to_string()).into_bytes()
        }
    }

    fn on_hub_cancel(&mut self, frame: &Frame) -> Option<Bytes> {
        let id = frame.request_id()?.parse::<u64>().ok()? + self.id_offset;
        self.hub_requests.remove(&id);
        let id = id.to_string();
        let splice = Splice { request_id: Some(&id), ..Splice::default() };
        Some(frame.spliced(splice).into_bytes())
    }

    fn on_hub_notification(&mut self, frame: &Frame) -> Option<Bytes> {
        if let (Some(session), Some(seq)) = (frame.session_id(), event_seq(frame)) {
            let first = || ReplayPosition::up_to(0);
            let position = self.sessions.entry(session.into_owned()).or_insert_with(first);
            if !position.accept_frame(seq) {
                return None;
            }
            let is_prompt = frame.update().is_some_and(|it| it == "user_message_chunk");
            if is_prompt && self.keys.has_own_key(frame) {
                // The client has shown its own prompt. A new connection cannot know whose it was.
                return None;
            }
        }
        Some(if self.wants_hub_meta { frame.bytes().clone() } else { without_hub_meta(frame) })
    }

    /// Another host of a fleet serves the session from now on. This relay has one connection, so requests fail.
    fn on_moved(&mut self, frame: &Frame) -> Vec<Bytes> {
        let session = frame.session_id().unwrap_or_default().into_owned();
        self.sessions.remove(&session);
        let fault = Fault::Fenced { session: session.clone() };
        let unanswered = self.requests.take_of_session(&session);
        unanswered.iter().map(|it| Frame::error_for(it.id(), &fault).into_bytes()).collect()
    }

    /// The connection ended: withdraws the requests of the hub at the client.
    pub fn on_hub_lost(&mut self) -> Vec<Bytes> {
        self.id_offset = self.last_hub_request;
        self.attaching.clear();
        self.sessions.values_mut().for_each(ReplayPosition::on_connection_lost);
        let cancel = |id: u64| {
            let params = json!({ "requestId": id }).to_string();
            Frame::notification(Method::CancelRequest.name(), &params).into_bytes()
        };
        std::mem::take(&mut self.hub_requests).into_iter().map(cancel).collect()
    }

    /// A new connection is open: repeats the handshake, attaches the client to its sessions after what it has received,
    /// and repeats the requests without a response.
    pub fn on_hub_connected(&mut self) -> RelayOutput {
        let mut output = RelayOutput::default();
        if !self.wants_hub_meta {
            let relay = Frame::notification(Method::ControlRelay.name(), "{}");
            output.to_hub.push(relay.into_bytes());
        }
        for frame in self.handshake.clone() {
            let is_request = frame.kind() == Kind::Request;
            let is_pending = self.requests.get(&frame).is_some();
            let own_id = self.next_own_id();
            let sent = if is_request && !is_pending { frame.with_id(&own_id) } else { frame };
            output.to_hub.push(sent.into_bytes());
        }
        self.attach_sessions(&mut output);
        for request in self.requests.take_unrepeatable() {
            let why = "the daemon ended before it answered; send the request again".to_owned();
            let refusal = Frame::error_for(request.id(), &Fault::Interrupted { why });
            output.to_client.push(refusal.into_bytes());
        }
        for request in self.requests.in_order() {
            let frame = request.frame();
            if is_handshake(frame) {
                continue;
            }
            output.to_hub.push(frame.bytes().clone());
            if request.is_canceled() && frame.is_method(Method::SessionPrompt) {
                let session = frame.session_id().unwrap_or_default();
                output.to_hub.push(cancel_frame(&session).into_bytes());
            }
        }
        output
    }

    fn attach_sessions(&mut self, output: &mut RelayOutput) {
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        for session in sessions {
            let own_id = self.next_own_id();
            let Some(after) =
                self.sessions.get_mut(&session).and_then(ReplayPosition::resume_after)
            else {
                continue;
            };
            // A request that replays the session is sent again; attaching as well would replay it twice.
            if self.requests.has_replay_of(&session) {
                continue;
            }
            let params = json!({ "sessionId": session, "after": after }).to_string();
            let attach = Frame::request(&own_id, Method::ControlAttach.name(), &params);
            output.to_hub.push(attach.into_bytes());
            self.attaching.insert(own_id, session);
        }
    }

    /// No connection can be opened: answers all requests.
    pub fn refuse_requests(&mut self, why: &str) -> Vec<Bytes> {
        let fault = Fault::Interrupted { why: why.to_owned() };
        let unanswered = self.requests.take_all();
        unanswered.iter().map(|it| Frame::error_for(it.id(), &fault).into_bytes()).collect()
    }

    fn next_own_id(&mut self) -> String {
        self.last_own_id += 1;
        format!("{OWN_ID_START}{}\"", self.last_own_id)
    }
}

fn is_handshake(frame: &Frame) -> bool {
    matches!(frame.known_method(), Some(Method::Initialize | Method::ControlConnect))
}

fn cancel_frame(session: &str) -> Frame {
    let params = json!({ "sessionId": session }).to_string();
    Frame::notification(Method::SessionCancel.name(), &params)
}

fn asks_for_hub_meta(initialize: &Frame) -> bool {
    let params = initialize.params().and_then(|it| serde_json::from_str::<Value>(it).ok());
    params.is_some_and(|it| it.pointer("/clientCapabilities/_meta/jackfield").is_some())
}
