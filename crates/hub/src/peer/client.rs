//! What clients say, sorted by the method table: to the hub itself, to an agent, or back to an ask.

use super::{Issued, Route};
use crate::{
    AgentId, ConnId, Hub, Output, SessionId, agent::Waiting, budget::ByteOwner,
    fanout::moved_notice, limits, log::Effect, session::Attach,
};
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method, is_planted};

impl Hub {
    pub(crate) fn on_client(&mut self, conn: ConnId, frame: &Frame) {
        if !self.conns.contains_key(&conn) {
            return;
        }
        match frame.kind() {
            Kind::Request => self.on_request(conn, frame),
            Kind::Notification => self.on_notification(conn, frame),
            Kind::Response => self.on_answer(conn, frame),
        }
    }

    pub(crate) fn on_invalid_frame(&mut self, conn: ConnId, fault: &Fault) {
        let frame = Frame::error_for(fault.request_id(), fault);
        self.send(conn, frame.bytes().clone());
    }

    fn on_request(&mut self, conn: ConnId, frame: &Frame) {
        let id = frame.id().expect("a request has an id").to_owned();
        if let Err(fault) = self.begin_request(conn, &id) {
            // Not `answer`: that would end the open request of the same id.
            let refused = Frame::error_for(&id, &fault);
            return self.send(conn, refused.bytes().clone());
        }
        let allowed = self.may_ask(conn, frame).and_then(|()| self.require_operator(conn, frame));
        let outcome = allowed.and_then(|()| self.serve_in_time(conn, &id, frame));
        match outcome {
            Ok(()) => {}
            Err(Fault::SessionNotFound { session }) if self.seeks(conn, frame) => {
                self.finish_request(conn, &id);
                self.send(conn, moved_notice(&session.into()));
            }
            Err(fault) => self.answer(conn, &id, Err(&fault)),
        }
    }

    /// Serves a request unless it comes too late.
    fn serve_in_time(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        match self.too_late_for(frame) {
            Some(session) if self.is_left_to_ask_again(&session, conn, id) => Ok(()),
            Some(session) => Err(Fault::Fenced { session: session.to_string() }),
            None if self.cx.is_stopping => Err(Fault::Stopping),
            None => self.serve(conn, id, frame),
        }
    }

    /// Whether a session that is not here may be elsewhere, and a gateway will look. What is being
    /// imported on this connection is nowhere else.
    fn seeks(&self, conn: ConnId, frame: &Frame) -> bool {
        self.is_relay(conn) && !frame.is_method(Method::ControlImport)
    }

    /// Starts serving a request. An error is the answer; otherwise the answer comes when it comes.
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
            Method::SessionLoad => self.on_attach(conn, id, frame, Attach::Load),
            Method::SessionResume => self.on_attach(conn, id, frame, Attach::Resume),
            Method::SessionList => self.on_list(conn, id, frame),
            Method::SessionClose => self.on_close(conn, id, frame),
            Method::SessionDelete => self.on_delete(conn, id, frame),
            Method::SessionPrompt => self.on_prompt(conn, id, frame),
            Method::SessionFork => self.on_fork(conn, id, frame),
            Method::ControlConnect => self.on_connect_request(conn, id, frame),
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
                self.on_stop_request(conn, id);
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
            // Only the hub could serve these for every agent alike, and it does not.
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

    /// Passes a request on to the agent of the session that it names, or to the client's agent.
    fn forward_request(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        if frame.session_id().is_some() {
            let session = self.session_of(frame)?;
            return self.forward_in(&session, conn, frame.clone());
        }
        self.forward_out(conn, frame)
    }

    /// The session a frame names, or the answer that there is none.
    pub(crate) fn session_of(&self, frame: &Frame) -> Result<SessionId, Fault> {
        let named = frame.session_id();
        let Some(named) = named else {
            return Err(Fault::InvalidParams { why: "`sessionId` is missing".into() });
        };
        match self.sessions.get_key_value(named.as_ref()) {
            Some((id, session)) if !session.is_opening() => Ok(id.clone()),
            _ => Err(Fault::SessionNotFound { session: named.into_owned() }),
        }
    }

    /// A request for the agent process rather than for a session: to the one kept for this client,
    /// or to one that serves a session of it.
    fn forward_out(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        let Some(agent) = self.agent_for(conn) else {
            let method = frame.method().unwrap_or_default().into_owned();
            return Err(Fault::MethodNotFound { method });
        };
        self.forward(agent, None, conn, frame);
        Ok(())
    }

    fn agent_for(&self, conn: ConnId) -> Option<AgentId> {
        let conn = self.conns.get(&conn)?;
        let of_sessions = conn.attached.iter().filter_map(|id| self.sessions.get(id)?.agent);
        let is_ready =
            |it: &AgentId| self.agents.get(it).is_some_and(crate::agent::Agent::is_ready);
        conn.spare.into_iter().chain(of_sessions).find(is_ready)
    }

    /// Sends a client's request to an agent under an id of ours.
    pub(crate) fn forward(
        &mut self,
        agent: AgentId,
        session: Option<&SessionId>,
        conn: ConnId,
        frame: &Frame,
    ) {
        let id: Box<str> = frame.id().expect("a request has an id").into();
        let gone = ByteOwner::default();
        let owner = self.conns.get(&conn).map_or(&gone, |it| &it.kept);
        let charge = match self.cx.retained_bytes.charge(owner, frame.bytes().len()) {
            Ok(charge) => charge,
            Err(over) => {
                let fault = Fault::Overloaded { what: over.to_string() };
                return self.answer(conn, &id, Err(&fault));
            }
        };
        let journaled = crate::agent::is_journaled(frame);
        let waiting = Waiting::Client {
            conn,
            id: id.clone(),
            session: session.cloned(),
            setting: journaled.then(|| frame.clone()),
            _charge: charge,
        };
        let Some(our_id) = self.agents.get_mut(&agent).map(|it| it.expect(waiting)) else { return };
        if let Some(it) = self.conns.get_mut(&conn) {
            it.requests.insert(id, Route::Agent(agent, our_id));
        }
        let theirs = session
            .and_then(|it| self.sessions.get(it))
            .map(|it| it.summary().agent_session.clone());
        let our_id = our_id.to_string();
        let id = if is_planted("keep-client-request-id") { frame.id() } else { Some(&*our_id) };
        let splice = Splice { id, session_id: theirs.as_deref(), request_id: None };
        let text = frame.spliced(splice).bytes().clone();
        match session {
            Some(session) => self.after_log(session, Effect::ToAgent { agent, text }),
            None => self.cx.outputs.push_back(Output::ToAgent { agent, text }),
        }
    }

    fn on_notification(&mut self, conn: ConnId, frame: &Frame) {
        let is_foreign = self.may_ask(conn, frame).is_err() && !is_planted("cancel-foreign-turn");
        if is_foreign || self.require_operator(conn, frame).is_err() {
            return; // Nobody waits for an answer.
        }
        match frame.known_method() {
            Some(Method::ControlTenant) => return self.on_bind(conn, frame),
            Some(Method::CancelRequest) => return self.on_cancel_request(conn, frame),
            Some(Method::ControlConnect) => return drop(self.on_connect(conn, frame)),
            Some(Method::ControlRelay) => return self.on_relay(conn),
            _ => {}
        }
        if let Ok(session) = self.session_of(frame) {
            if frame.is_method(Method::SessionCancel) {
                return self.cancel_turn(&session);
            }
            let Some(bound) = self.sessions.get(&session).filter(|it| it.is_bound()) else {
                return;
            };
            let (Some(agent), theirs) = (bound.agent, bound.summary().agent_session.clone()) else {
                return;
            };
            if self.cx.config.limits.held_bytes_max < bound.log.pending_bytes()
                && limits::KEPT_BYTES_MIN < frame.bytes().len()
            {
                let what = "the journal is slower than the notifications of this client".to_owned();
                return self.on_invalid_frame(conn, &Fault::Overloaded { what });
            }
            let text = frame.with_session_id(&theirs).bytes().clone();
            self.after_log(&session, Effect::ToAgent { agent, text });
        } else if frame.session_id().is_none()
            && let Some(agent) = self.agent_for(conn)
        {
            self.cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
        }
    }

    /// A client withdraws a request of its own: hop by hop, so the id is translated.
    fn on_cancel_request(&mut self, conn: ConnId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        let route = self.conns.get(&conn).and_then(|it| it.requests.get(request)).cloned();
        match route {
            Some(Route::Agent(agent, our_id)) => {
                let (id, our_id) = (our_id, our_id.to_string());
                let splice = Splice { request_id: Some(&our_id), ..Splice::default() };
                let text = frame.spliced(splice).bytes().clone();
                match self.session_of_request(agent, id) {
                    Some(session) => self.after_log(&session, Effect::ToAgent { agent, text }),
                    None => self.cx.outputs.push_back(Output::ToAgent { agent, text }),
                }
            }
            Some(Route::Turn(session)) => {
                let request = request.to_owned();
                self.withdraw_own(&session, conn, &request);
            }
            Some(Route::Hub) | None => {}
        }
    }

    /// The session whose log a request waited for, so that nothing about it overtakes it.
    pub(crate) fn session_of_request(&self, agent: AgentId, our_id: u64) -> Option<SessionId> {
        self.agents.get(&agent)?.waiting.get(&our_id)?.session().cloned()
    }

    /// A client answers what it was asked.
    fn on_answer(&mut self, conn: ConnId, frame: &Frame) {
        let our_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let Some(it) = self.conns.get_mut(&conn) else { return };
        let Some(issued) = our_id.and_then(|id| it.asked.remove(&id)) else { return };
        match issued {
            Issued::Ask(session, ask) => {
                if self.may_settle(conn, &session, ask) {
                    self.settle_ask(&session, ask, conn, frame);
                }
            }
            Issued::Passing { agent, theirs, .. } => {
                let text = frame.with_id(&theirs).bytes().clone();
                self.cx.outputs.push_back(Output::ToAgent { agent, text });
            }
        }
    }

    /// A client has said everything: it hears what it waits for, and can answer nothing any more.
    pub(crate) fn on_client_finished(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.finished = true;
        self.finished += 1;
        let passing = conn.asked.extract_if(.., |_, it| matches!(it, Issued::Passing { .. }));
        let passing = passing.map(|(_, it)| it).collect();
        self.refuse_passing(passing);
    }

    /// Agents that asked this one client get no answer from it.
    fn refuse_passing(&mut self, asked: Vec<Issued>) {
        for issued in asked {
            if let Issued::Passing { agent, theirs, .. } = issued {
                let why = "the client that was asked is gone".to_owned();
                let frame = Frame::error_for(&theirs, &Fault::Internal { why });
                self.cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
            }
        }
    }

    pub(crate) fn on_client_gone(&mut self, id: ConnId) {
        let Some(conn) = self.conns.remove(&id) else { return };
        self.finished -= usize::from(conn.finished);
        for session in &conn.attached {
            if let Some(it) = self.sessions.get_mut(session) {
                it.subscribers.remove(&id);
                self.is_unattended(session);
            }
        }
        self.refuse_passing(conn.asked.into_values().collect());
        if let Some(spare) = conn.spare {
            self.leave_spare(spare, id);
        }
        self.abandon_openings(id);
        self.abandon_imports(id);
    }
}
