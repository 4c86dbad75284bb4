//! Messages of clients, dispatched by the method table: to a session, to an agent, or as the answer to a request.

use crate::{
    ConnId, Hub, Output,
    fanout::moved_notice,
    log::Effect,
    peer::{Clients, IssuedRequest, RequestRoute, on_listen_request},
    session::AttachMode,
};
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method, is_planted};

impl Hub {
    pub(crate) fn on_client_message(&mut self, conn: ConnId, frame: &Frame) {
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
        let allowed = self.parts.clients.check_tenant_rules(conn, frame);
        let allowed =
            allowed.and_then(|()| self.sessions.require_operator(&mut self.parts, conn, frame));
        let outcome = allowed.and_then(|()| self.serve_unless_released(conn, &id, frame));
        match outcome {
            Ok(()) => {}
            Err(Fault::SessionNotFound { session })
                if may_be_elsewhere(&self.parts.clients, conn, frame) =>
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
    fn serve_unless_released(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        if let Some(session) = self.sessions.find_released_session(frame) {
            let is_left = session.leave_to_next_host(&mut self.parts, conn, id);
            let fenced = Fault::Fenced { session: session.id.to_string() };
            return if is_left { Ok(()) } else { Err(fenced) };
        }
        if self.parts.cx.is_stopping { Err(Fault::Stopping) } else { self.serve(conn, id, frame) }
    }

    /// Starts to serve a request. An error is answered at once; otherwise the answer follows later.
    #[expect(clippy::too_many_lines, reason = "one arm per method")]
    fn serve(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        let name = || frame.method().expect("a request has a method").into_owned();
        let method = match frame.known_method() {
            Some(method) => method,
            None if frame.is_control() => return Err(Fault::MethodNotFound { method: name() }),
            None => return sessions.forward_request(parts, conn, frame),
        };
        match method {
            Method::Initialize => sessions.initialize_client(parts, conn, id, frame),
            Method::SessionNew => sessions.open_session(parts, conn, id, frame),
            Method::SessionLoad => {
                sessions.find_session(frame)?.attach(parts, conn, id, AttachMode::Load)
            }
            Method::SessionResume => {
                sessions.find_session(frame)?.attach(parts, conn, id, AttachMode::Resume)
            }
            Method::SessionList => sessions.list_sessions(parts, conn, id, frame),
            Method::SessionClose => {
                sessions.find_session(frame)?.on_close(parts, conn, id, frame);
                Ok(())
            }
            Method::SessionDelete => sessions.delete_session(parts, conn, id, frame),
            Method::SessionPrompt => sessions.prompt_session(parts, conn, id, frame),
            Method::SessionFork => sessions.fork_session(parts, conn, id, frame),
            Method::ControlConnect => {
                parts.clients.on_connect_request(&mut parts.cx, conn, id, frame)
            }
            Method::ControlAttach => {
                let mode = AttachMode::from_attach_params(frame);
                sessions.find_session(frame)?.attach(parts, conn, id, mode)
            }
            Method::ControlSessions => {
                sessions.describe_sessions(parts, conn, id, frame);
                Ok(())
            }
            Method::ControlImport => sessions.import_session(parts, conn, id, frame),
            Method::ControlAsks => {
                sessions.list_user_requests(parts, conn, id);
                Ok(())
            }
            Method::ControlAnswer => {
                sessions.find_session(frame)?.on_answer_request(parts, conn, id, frame)
            }
            Method::ControlMove => {
                sessions.find_session(frame)?.move_queued_prompt(parts, conn, id, frame)
            }
            Method::ControlOperator => sessions.check_operation(parts, conn, id, frame),
            Method::ControlFindKey => sessions.on_find_key(parts, conn, id, frame),
            Method::ControlReadLog => sessions.read_log(parts, conn, id, frame),
            Method::ControlRename => sessions.rename_session(parts, conn, id, frame),
            Method::ControlQueue => {
                sessions.find_session(frame)?.list_queue(parts, conn, id);
                Ok(())
            }
            Method::ControlWithdraw => {
                sessions.find_session(frame)?.withdraw_queued_prompt(parts, conn, id, frame)
            }
            Method::ControlRelease => {
                sessions.find_session(frame)?.run_held_prompts(parts, conn, id, frame)
            }
            Method::ControlSettings => {
                sessions.find_session(frame)?.describe_settings(parts, conn, id);
                Ok(())
            }
            Method::ControlStatus => {
                sessions.describe_status(parts, conn, id);
                Ok(())
            }
            Method::ControlWatch => {
                sessions.watch_sessions(parts, conn, id);
                Ok(())
            }
            Method::ControlListen => on_listen_request(&mut parts.cx, conn, id, frame),
            Method::ControlStop => {
                parts.clients.on_stop_request(&mut parts.cx, conn, id);
                Ok(())
            }
            // These are notifications, or belong to the transport.
            Method::ControlAsk
            | Method::ControlAuth
            | Method::ControlChallenge
            | Method::ControlChanges
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
            | Method::TerminalWaitForExit => sessions.forward_request(parts, conn, frame),
        }
    }

    fn on_notification(&mut self, conn: ConnId, frame: &Frame) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        let is_foreign = parts.clients.check_tenant_rules(conn, frame).is_err()
            && !is_planted("cancel-foreign-turn");
        if is_foreign || sessions.require_operator(parts, conn, frame).is_err() {
            return; // A notification has no answer.
        }
        match frame.known_method() {
            Some(Method::ControlTenant) => return sessions.bind_tenant(parts, conn, frame),
            Some(Method::CancelRequest) => return self.on_cancel_request(conn, frame),
            Some(Method::ControlConnect) => {
                return drop(parts.clients.set_connect_options(&parts.cx, conn, frame));
            }
            Some(Method::ControlRelay) => return parts.clients.mark_as_relay(conn),
            _ => {}
        }
        match sessions.find_session(frame) {
            Ok(session) if frame.is_method(Method::SessionCancel) => session.cancel_turn(parts),
            Ok(session) => session.forward_notification(parts, conn, frame),
            Err(_) if frame.session_id().is_none() => {
                if let Some(agent) = sessions.find_client_agent(parts, conn) {
                    let text = frame.bytes().clone();
                    parts.cx.outputs.push_back(Output::ToAgent { agent, text });
                }
            }
            Err(_) => {}
        }
    }

    /// A client cancels a request: the id is translated for the agent.
    fn on_cancel_request(&mut self, conn: ConnId, frame: &Frame) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        let Some(request) = frame.request_id() else { return };
        let route = parts.clients.connections.get(&conn).and_then(|it| it.requests.get(request));
        match route.cloned() {
            Some(RequestRoute::Agent(agent, hub_id)) => {
                let session = parts.agents.session_of_request(agent, hub_id);
                let hub_id = hub_id.to_string();
                let splice = Splice { request_id: Some(&hub_id), ..Splice::default() };
                let text = frame.spliced(splice).bytes().clone();
                match session {
                    Some(session) => sessions.with(&session, |it| {
                        it.run_after_log(parts, Effect::ToAgent { agent, text });
                    }),
                    None => parts.cx.outputs.push_back(Output::ToAgent { agent, text }),
                }
            }
            Some(RequestRoute::Turn(session)) => {
                sessions.with(&session, |it| it.cancel_own_prompt(parts, conn, request));
            }
            Some(RequestRoute::Hub) | None => {}
        }
    }

    /// A client answers a request.
    fn on_answer(&mut self, conn: ConnId, frame: &Frame) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        let hub_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let Some(it) = parts.clients.connections.get_mut(&conn) else { return };
        let Some(issued) = hub_id.and_then(|id| it.asked.remove(&id)) else { return };
        match issued {
            IssuedRequest::Ask(session, ask) => {
                if sessions.may_answer_user_request(parts, conn, &session, ask) {
                    sessions.with(&session, |it| it.answer_user_request(parts, ask, conn, frame));
                }
            }
            IssuedRequest::Direct { agent, agent_request_id, .. } => {
                let text = frame.with_id(&agent_request_id).bytes().clone();
                parts.cx.outputs.push_back(Output::ToAgent { agent, text });
            }
        }
    }
}

/// Whether a session that is unknown here may be at another host, where a gateway looks for it. A session that is being
/// imported on this connection is not.
fn may_be_elsewhere(clients: &Clients, conn: ConnId, frame: &Frame) -> bool {
    clients.is_relay(conn) && !frame.is_method(Method::ControlImport)
}
