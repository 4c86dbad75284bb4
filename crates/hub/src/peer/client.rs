//! Messages of clients, dispatched by the method table: to the hub, to an agent, or as the answer to a request.

use super::{IssuedRequest, RequestRoute};
use crate::{
    AgentId, ConnId, Hub, Output, SessionId,
    agent::{Agents, PendingRequest},
    budget::ByteOwner,
    context::HubContext,
    fanout::moved_notice,
    limits,
    log::Effect,
    peer::Clients,
    session::{AttachMode, Sessions},
};
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method, is_planted};

impl Clients {
    pub(crate) fn answer_invalid_frame(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        fault: &Fault,
    ) {
        let frame = Frame::error_for(fault.request_id(), fault);
        self.send(cx, conn, frame.bytes().clone());
    }

    /// Whether a session that is unknown here may be at another host, where a gateway looks for it. A session that is being
    /// imported on this connection is not.
    fn may_find_elsewhere(&self, conn: ConnId, frame: &Frame) -> bool {
        self.is_relay(conn) && !frame.is_method(Method::ControlImport)
    }

    /// A client sends nothing more: it gets its answers, and requests to it are refused.
    pub(crate) fn on_client_finished(&mut self, cx: &mut HubContext, id: ConnId) {
        let Some(conn) = self.connections.get_mut(&id) else { return };
        conn.finished = true;
        self.finished += 1;
        let passing =
            conn.asked.extract_if(.., |_, it| matches!(it, IssuedRequest::Passing { .. }));
        let passing = passing.map(|(_, it)| it).collect();
        cx.refuse_relayed_requests(passing);
    }
}

impl Agents {
    /// The session whose log a request waited for, so that messages about the request do not overtake it.
    pub(crate) fn session_of_request(&self, agent: AgentId, our_id: u64) -> Option<SessionId> {
        self.processes.get(&agent)?.waiting.get(&our_id)?.session().cloned()
    }
}

impl HubContext {
    /// Refuses the requests of agents that only this client has.
    fn refuse_relayed_requests(&mut self, asked: Vec<IssuedRequest>) {
        for issued in asked {
            if let IssuedRequest::Passing { agent, agent_request_id, .. } = issued {
                let why = "the client that was asked is gone".to_owned();
                let frame = Frame::error_for(&agent_request_id, &Fault::Internal { why });
                self.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
            }
        }
    }
}

impl Sessions {
    /// The session that a frame names, or an error that there is none.
    pub(crate) fn find_session(&self, frame: &Frame) -> Result<SessionId, Fault> {
        let named = frame.session_id();
        let Some(named) = named else {
            return Err(Fault::InvalidParams { why: "`sessionId` is missing".into() });
        };
        match self.by_id.get_key_value(named.as_ref()) {
            Some((id, session)) if !session.is_opening() => Ok(id.clone()),
            _ => Err(Fault::SessionNotFound { session: named.into_owned() }),
        }
    }
}

impl Hub {
    pub(crate) fn on_client(&mut self, conn: ConnId, frame: &Frame) {
        if !self.parts.clients.connections.contains_key(&conn) {
            return;
        }
        match frame.kind() {
            Kind::Request => self.on_request(conn, frame),
            Kind::Notification => self.on_notification(conn, frame),
            Kind::Response => self.on_answer(conn, frame),
        }
    }

    fn on_request(&mut self, conn: ConnId, frame: &Frame) {
        let id = frame.id().expect("a request has an id").to_owned();
        if let Err(fault) = self.parts.clients.begin_request(&self.parts.cx, conn, &id) {
            // Not `answer_request`, which would finish the pending request with the same id.
            let refused = Frame::error_for(&id, &fault);
            return self.parts.clients.send(&mut self.parts.cx, conn, refused.bytes().clone());
        }
        let allowed = self
            .parts
            .clients
            .check_tenant_rules(conn, frame)
            .and_then(|()| self.require_operator(conn, frame));
        let outcome = allowed.and_then(|()| self.serve_in_time(conn, &id, frame));
        match outcome {
            Ok(()) => {}
            Err(Fault::SessionNotFound { session })
                if self.parts.clients.may_find_elsewhere(conn, frame) =>
            {
                self.parts.clients.finish_request(conn, &id);
                self.parts.clients.send(&mut self.parts.cx, conn, moved_notice(&session.into()));
            }
            Err(fault) => {
                self.parts.clients.answer_request(&mut self.parts.cx, conn, &id, Err(&fault));
            }
        }
    }

    /// Serves a request, unless its session is released.
    fn serve_in_time(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        match self.sessions.find_released_session(frame) {
            Some(session) if self.is_left_to_ask_again(&session, conn, id) => Ok(()),
            Some(session) => Err(Fault::Fenced { session: session.to_string() }),
            None if self.parts.cx.is_stopping => Err(Fault::Stopping),
            None => self.serve(conn, id, frame),
        }
    }

    /// Starts to serve a request. An error is answered at once; otherwise the answer follows later.
    #[expect(clippy::too_many_lines, reason = "one arm per method")]
    fn serve(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let name = || frame.method().expect("a request has a method").into_owned();
        let method = match frame.known_method() {
            Some(method) => method,
            None if frame.is_control() => return Err(Fault::MethodNotFound { method: name() }),
            None => return self.forward_request(conn, frame),
        };
        match method {
            Method::Initialize => self.on_initialize(conn, id, frame),
            Method::SessionNew => self.on_new(conn, id, frame),
            Method::SessionLoad => self.on_attach(conn, id, frame, AttachMode::Load),
            Method::SessionResume => self.on_attach(conn, id, frame, AttachMode::Resume),
            Method::SessionList => self.on_list(conn, id, frame),
            Method::SessionClose => self.on_close(conn, id, frame),
            Method::SessionDelete => self.on_delete(conn, id, frame),
            Method::SessionPrompt => self.on_prompt(conn, id, frame),
            Method::SessionFork => self.on_fork(conn, id, frame),
            Method::ControlConnect => {
                self.parts.clients.on_connect_request(&mut self.parts.cx, conn, id, frame)
            }
            Method::ControlAttach => self.on_control_attach(conn, id, frame),
            Method::ControlSessions => {
                self.on_sessions(conn, id);
                Ok(())
            }
            Method::ControlImport => self.on_import(conn, id, frame),
            Method::ControlAsks => {
                self.on_asks(conn, id);
                Ok(())
            }
            Method::ControlAnswer => self.on_control_answer(conn, id, frame),
            Method::ControlOperator => self.on_operator(conn, id, frame),
            Method::ControlFindKey => self.on_find_key(conn, id, frame),
            Method::ControlQueue => self.on_queue(conn, id, frame),
            Method::ControlWithdraw => self.on_withdraw(conn, id, frame),
            Method::ControlRelease => self.on_release(conn, id, frame),
            Method::ControlStatus => {
                self.on_status(conn, id);
                Ok(())
            }
            Method::ControlStop => {
                self.parts.clients.on_stop_request(&mut self.parts.cx, conn, id);
                Ok(())
            }
            // These are notifications, or belong to the transport.
            Method::ControlAsk
            | Method::ControlAuth
            | Method::ControlChallenge
            | Method::ControlEvent
            | Method::ControlGap
            | Method::ControlRelay
            | Method::ControlMoved
            | Method::ControlSession
            | Method::ControlStorage
            | Method::ControlTenant
            | Method::ControlTurn => Err(Fault::MethodNotFound { method: name() }),
            // The hub would have to serve these for every agent, and it does not.
            Method::CancelRequest | Method::ProxyInitialize | Method::ProxySuccessor => {
                Err(Fault::NotServed { method: name() })
            }
            Method::AuthStatus
            | Method::AuthStatusUpdate
            | Method::Authenticate
            | Method::ElicitationComplete
            | Method::ElicitationCreate
            | Method::FsReadTextFile
            | Method::FsWriteTextFile
            | Method::Logout
            | Method::McpMessage
            | Method::ProvidersDisable
            | Method::ProvidersList
            | Method::ProvidersSet
            | Method::SessionArchive
            | Method::SessionCancel
            | Method::SessionRequestPermission
            | Method::SessionSetConfigOption
            | Method::SessionSetMode
            | Method::SessionSetModel
            | Method::SessionSetTitle
            | Method::SessionStatus
            | Method::SessionUnarchive
            | Method::SessionUpdate
            | Method::TerminalCreate
            | Method::TerminalKill
            | Method::TerminalOutput
            | Method::TerminalRelease
            | Method::TerminalWaitForExit => self.forward_request(conn, frame),
        }
    }

    /// Forwards a request to the agent of the session that it names, or to the agent of the client.
    fn forward_request(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        if frame.session_id().is_some() {
            let session = self.sessions.find_session(frame)?;
            return self.forward_in(&session, conn, frame.clone());
        }
        self.forward_out(conn, frame)
    }

    /// Forwards a request for the agent process: to the one that was started for this client, or to one that serves a
    /// session of it.
    fn forward_out(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        let Some(agent) = self.agent_for(conn) else {
            let method = frame.method().unwrap_or_default().into_owned();
            return Err(Fault::MethodNotFound { method });
        };
        self.forward(agent, None, conn, frame);
        Ok(())
    }

    fn agent_for(&self, conn: ConnId) -> Option<AgentId> {
        let conn = self.parts.clients.connections.get(&conn)?;
        let of_sessions = conn.attached.iter().filter_map(|id| self.sessions.by_id.get(id)?.agent);
        let is_ready = |it: &AgentId| {
            self.parts.agents.processes.get(it).is_some_and(crate::agent::Agent::is_ready)
        };
        conn.spare.into_iter().chain(of_sessions).find(is_ready)
    }

    /// Sends a request of a client to an agent with a request id of the hub.
    pub(crate) fn forward(
        &mut self,
        agent: AgentId,
        session: Option<&SessionId>,
        conn: ConnId,
        frame: &Frame,
    ) {
        let id: Box<str> = frame.id().expect("a request has an id").into();
        let gone = ByteOwner::default();
        let owner = self.parts.clients.connections.get(&conn).map_or(&gone, |it| &it.kept);
        let charge = match self.parts.cx.retained_bytes.charge(owner, frame.bytes().len()) {
            Ok(charge) => charge,
            Err(over) => {
                let fault = Fault::Overloaded { what: over.to_string() };
                return self.parts.clients.answer_request(
                    &mut self.parts.cx,
                    conn,
                    &id,
                    Err(&fault),
                );
            }
        };
        let journaled = crate::agent::is_journaled(frame);
        let waiting = PendingRequest::Client {
            conn,
            id: id.clone(),
            session: session.cloned(),
            setting: journaled.then(|| frame.clone()),
            _charge: charge,
        };
        let Some(our_id) = self.parts.agents.processes.get_mut(&agent).map(|it| it.expect(waiting))
        else {
            return;
        };
        if let Some(it) = self.parts.clients.connections.get_mut(&conn) {
            it.requests.insert(id, RequestRoute::Agent(agent, our_id));
        }
        let agent_session_id = session
            .and_then(|it| self.sessions.by_id.get(it))
            .map(|it| it.summary().agent_session.clone());
        let our_id = our_id.to_string();
        let id = if is_planted("keep-client-request-id") { frame.id() } else { Some(&*our_id) };
        let splice = Splice { id, session_id: agent_session_id.as_deref(), request_id: None };
        let text = frame.spliced(splice).bytes().clone();
        match session {
            Some(session) => self.after_log(session, Effect::ToAgent { agent, text }),
            None => self.parts.cx.outputs.push_back(Output::ToAgent { agent, text }),
        }
    }

    fn on_notification(&mut self, conn: ConnId, frame: &Frame) {
        let is_foreign = self.parts.clients.check_tenant_rules(conn, frame).is_err()
            && !is_planted("cancel-foreign-turn");
        if is_foreign || self.require_operator(conn, frame).is_err() {
            return; // Nobody waits for an answer.
        }
        match frame.known_method() {
            Some(Method::ControlTenant) => return self.on_bind(conn, frame),
            Some(Method::CancelRequest) => return self.on_cancel_request(conn, frame),
            Some(Method::ControlConnect) => {
                return drop(self.parts.clients.set_connect_options(&self.parts.cx, conn, frame));
            }
            Some(Method::ControlRelay) => return self.parts.clients.mark_as_relay(conn),
            _ => {}
        }
        if let Ok(session) = self.sessions.find_session(frame) {
            if frame.is_method(Method::SessionCancel) {
                return self.cancel_turn(&session);
            }
            let Some(bound) = self.sessions.by_id.get(&session).filter(|it| it.is_bound()) else {
                return;
            };
            let (Some(agent), agent_session_id) =
                (bound.agent, bound.summary().agent_session.clone())
            else {
                return;
            };
            if self.parts.cx.config.limits.held_bytes_max < bound.log.pending_bytes()
                && limits::KEPT_BYTES_MIN < frame.bytes().len()
            {
                let what = "the journal is slower than the notifications of this client".to_owned();
                return self.parts.clients.answer_invalid_frame(
                    &mut self.parts.cx,
                    conn,
                    &Fault::Overloaded { what },
                );
            }
            let text = frame.with_session_id(&agent_session_id).bytes().clone();
            self.after_log(&session, Effect::ToAgent { agent, text });
        } else if frame.session_id().is_none()
            && let Some(agent) = self.agent_for(conn)
        {
            self.parts.cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
        }
    }

    /// A client cancels a request: the id is translated for the agent.
    fn on_cancel_request(&mut self, conn: ConnId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        let route = self
            .parts
            .clients
            .connections
            .get(&conn)
            .and_then(|it| it.requests.get(request))
            .cloned();
        match route {
            Some(RequestRoute::Agent(agent, our_id)) => {
                let (id, our_id) = (our_id, our_id.to_string());
                let splice = Splice { request_id: Some(&our_id), ..Splice::default() };
                let text = frame.spliced(splice).bytes().clone();
                match self.parts.agents.session_of_request(agent, id) {
                    Some(session) => self.after_log(&session, Effect::ToAgent { agent, text }),
                    None => self.parts.cx.outputs.push_back(Output::ToAgent { agent, text }),
                }
            }
            Some(RequestRoute::Turn(session)) => {
                let request = request.to_owned();
                self.withdraw_own(&session, conn, &request);
            }
            Some(RequestRoute::Hub) | None => {}
        }
    }

    /// A client answers a request.
    fn on_answer(&mut self, conn: ConnId, frame: &Frame) {
        let our_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let Some(it) = self.parts.clients.connections.get_mut(&conn) else { return };
        let Some(issued) = our_id.and_then(|id| it.asked.remove(&id)) else { return };
        match issued {
            IssuedRequest::Ask(session, ask) => {
                if self.may_settle(conn, &session, ask) {
                    self.settle_ask(&session, ask, conn, frame);
                }
            }
            IssuedRequest::Passing { agent, agent_request_id, .. } => {
                let text = frame.with_id(&agent_request_id).bytes().clone();
                self.parts.cx.outputs.push_back(Output::ToAgent { agent, text });
            }
        }
    }

    pub(crate) fn on_client_gone(&mut self, id: ConnId) {
        let Some(conn) = self.parts.clients.connections.remove(&id) else { return };
        self.parts.clients.finished -= usize::from(conn.finished);
        for session in &conn.attached {
            if let Some(it) = self.sessions.by_id.get_mut(session) {
                it.subscribers.remove(&id);
                self.parts.cx.schedule_unattended_check(session);
            }
        }
        self.parts.cx.refuse_relayed_requests(conn.asked.into_values().collect());
        if let Some(spare) = conn.spare {
            self.parts.agents.leave_spare(&mut self.parts.cx, spare, id);
        }
        self.abandon_openings(id);
        self.abandon_imports(id);
    }
}
