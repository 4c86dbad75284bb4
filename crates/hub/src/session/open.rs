//! `session/new`: finds or starts an agent and requests a session from it. The answer starts the log.

use super::{FailedAgent, Session, SessionStage, fallback};
use crate::{
    AgentId, ConnId, Hub, Launch, Note, SessionId,
    agent::{AgentStart, PendingRequest, SlotOwner},
    budget::ByteCharge,
    context::HubContext,
    fanout::{EventSubscriber, Phase},
    limits,
    peer::{Clients, check_setup, error_frame},
    session::Sessions,
    session_name::{named_for, tenant_of},
};
use jackfield_events::{EventBody, RawJson, RequestKey, SessionOpened, SessionSummary};
use jackfield_protocol::{Fault, Frame, acp::Method};
use serde_json::Value;
use std::path::PathBuf;

/// A pending `session/new`.
#[derive(Debug)]
pub(crate) struct SessionOpening {
    pub(crate) conn: ConnId,
    pub(crate) request: Box<str>,
    frame: Frame,
    key: Option<RequestKey>,
    /// The bytes of the request.
    _charge: ByteCharge,
    cwd: String,
    /// The agent that will serve it.
    pub(crate) launch: Launch,
    /// Agents that could not be started.
    pub(crate) fallen: Vec<FailedAgent>,
}

impl SessionOpening {
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.key.as_ref().is_some_and(|it| &*it.key == key)
    }
}

impl Clients {
    /// The agent that the request names, else that of the connection, else the default one.
    fn choose_launch(
        &self,
        cx: &HubContext,
        conn: ConnId,
        params: &Value,
        cwd: &str,
    ) -> Result<Launch, Fault> {
        let named = params.pointer("/_meta/jackfield/agent").and_then(Value::as_str);
        let of_conn = self.connections.get(&conn).and_then(|it| it.launch.clone());
        let mut launch = match (named, of_conn) {
            (Some(name), Some(launch)) if &*launch.name == name => launch,
            (Some(name), _) => cx.config.find_agent_launch(name)?,
            (None, Some(launch)) => launch,
            (None, None) => {
                let why = || "no agent was named and none is configured as default".into();
                let name = cx.config.default_agent.as_ref();
                cx.config.find_agent_launch(name.ok_or_else(|| Fault::NoAgent { why: why() })?)?
            }
        };
        launch.cwd = PathBuf::from(cwd);
        Ok(launch)
    }

    /// Whether a rule denies something there, and the client has not accepted that it is not enforced.
    fn must_enforce_policy(&self, cx: &HubContext, opening: &SessionOpening) -> bool {
        let accepts = self.connections.get(&opening.conn).is_some_and(|it| it.unenforced);
        !accepts && cx.config.policies.has_deny_rules(&opening.cwd)
    }
}

impl Sessions {
    /// A new session id of this tenant.
    pub(super) fn new_session_id(
        &mut self,
        cx: &mut HubContext,
        tenant: Option<&str>,
    ) -> SessionId {
        loop {
            let name = named_for(tenant, &cx.session_names.session());
            if !self.by_id.contains_key(&name) && !self.forks.contains_key(&name) {
                return name;
            }
        }
    }
}

impl Hub {
    pub(crate) fn on_new(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        check_setup(frame)?;
        let key = RequestKey::from_frame(frame).map_err(|why| Fault::InvalidParams { why })?;
        if let Some(key) = &key
            && self.open_known(conn, id, key)?
        {
            return Ok(());
        }
        let params: Value = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let Some(cwd) = params.get("cwd").and_then(Value::as_str) else {
            return Err(Fault::InvalidParams { why: "`cwd` is missing".into() });
        };
        self.parts.storage.require_working()?;
        self.may_be_awake(self.parts.clients.tenant_name(conn))?;
        let launch = self.parts.clients.choose_launch(&self.parts.cx, conn, &params, cwd)?;
        // A request that names an agent gets that one; otherwise it gets the agent of the connection.
        let names = params.pointer("/_meta/jackfield/agent").is_some();
        let of_conn = self
            .parts
            .clients
            .connections
            .get(&conn)
            .filter(|_| !names)
            .map(|it| it.fallen.clone());
        let fallen = of_conn.unwrap_or_default();
        let Some(it) = self.parts.clients.connections.get(&conn) else {
            return Err(Fault::Stopping);
        };
        let charge = self.parts.cx.retained_bytes.charge(&it.kept, frame.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        let session = self.sessions.new_session_id(
            &mut self.parts.cx,
            self.parts.clients.tenant_name(conn).map(str::to_owned).as_deref(),
        );
        let opening = SessionOpening {
            conn,
            request: id.into(),
            frame: frame.clone(),
            key,
            _charge: charge,
            cwd: cwd.to_owned(),
            launch,
            fallen,
        };
        let state = SessionSummary::default();
        self.sessions.by_id.insert(
            session.clone(),
            Session::new(session.clone(), state, SessionStage::Opening(opening)),
        );
        self.find_agent(&session);
        Ok(())
    }

    /// Gives a session that is being opened a process, or queues its start if no process may be started.
    pub(crate) fn find_agent(&mut self, id: &SessionId) {
        let Some(SessionStage::Opening(opening)) = self.sessions.by_id.get(id).map(|it| &it.stage)
        else {
            return;
        };
        let (conn, launch) = (opening.conn, opening.launch.clone());
        let initialize_params =
            self.parts.clients.connections.get(&conn).and_then(|it| it.initialize_params.clone());
        match self.seat(id, &launch, Some(conn), initialize_params) {
            Ok(Some(agent)) => self.assign_session(agent, id),
            Ok(None) => {}
            Err(fault) => self.open_elsewhere(id, &fault),
        }
    }

    /// Finds a process for a session: the one that was started for the client, one that runs, a warm one, or a new one if
    /// another process may be started and the circuit breaker of the agent is closed.
    pub(super) fn seat(
        &mut self,
        id: &SessionId,
        launch: &Launch,
        asker: Option<ConnId>,
        initialize_params: Option<Box<str>>,
    ) -> Result<Option<AgentId>, Fault> {
        let seat = SlotOwner::Session(id.clone());
        let found = asker
            .and_then(|it| self.take_spare(it, launch, id))
            .or_else(|| self.take_seat(launch, initialize_params.as_deref(), &seat));
        if found.is_some() {
            return Ok(found);
        }
        self.may_be_alive(tenant_of(id))?;
        if let Some(warm) = self.parts.agents.take_warm_agent(
            &self.parts.cx,
            launch,
            initialize_params.as_deref(),
            &seat,
        ) {
            return Ok(Some(warm));
        }
        self.parts.agents.check_breaker(&self.parts.cx, &launch.name)?;
        let place = self.has_place(&AgentStart::Session(id.clone()));
        Ok(place.then(|| {
            self.parts.agents.spawn_agent(
                &mut self.parts.cx,
                launch.clone(),
                initialize_params,
                Some(seat),
            )
        }))
    }

    /// The session has a process. If that is ready, the session is requested.
    pub(super) fn assign_session(&mut self, agent: AgentId, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        (session.agent, session.last) = (Some(agent), None);
        self.with_session(id, |it, parts| it.mark_agent_used(parts, true));
        if self.parts.agents.processes[&agent].is_ready() {
            self.on_agent_ready(agent, id);
        }
    }

    /// The process that was started for this client, if it is of this agent.
    fn take_spare(
        &mut self,
        conn: ConnId,
        launch: &Launch,
        session: &SessionId,
    ) -> Option<AgentId> {
        let spare = self.parts.clients.connections.get(&conn)?.spare?;
        let agent = self.parts.agents.processes.get(&spare)?;
        let same = agent.launch.name == launch.name
            && agent.launch.argv == launch.argv
            && self.parts.clients.tenant_of_agent(agent) == tenant_of(session);
        if agent.stopping || !same {
            return None;
        }
        self.parts.clients.connections.get_mut(&conn)?.spare = None;
        self.parts.agents.give_spare_to_session(spare, conn, session);
        Some(spare)
    }

    /// The agent of a session that is being opened or restored is ready.
    pub(crate) fn on_agent_ready(&mut self, agent: AgentId, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get(id) else { return };
        match &session.stage {
            SessionStage::Opening(opening) => {
                let params = opening.frame.params().unwrap_or("{}").to_owned();
                self.ask_agent(
                    agent,
                    Method::SessionNew.name(),
                    &params,
                    PendingRequest::New(id.clone()),
                );
            }
            SessionStage::Restoring(_) => self.try_next_step(agent, id),
            SessionStage::Importing(_) | SessionStage::Asleep | SessionStage::Bound => {}
        }
    }

    /// The agent answered `session/new`.
    pub(crate) fn on_opened(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        let named = frame.session_id().map(std::borrow::Cow::into_owned);
        let named = named.filter(|it| self.is_free_name(agent, id, it));
        let session = self.sessions.by_id.get_mut(id).expect("who leaves waits for no answer");
        let SessionStage::Opening(opening) =
            std::mem::replace(&mut session.stage, SessionStage::Bound)
        else {
            unreachable!("an opening session waits for this answer");
        };
        let (Some(result), Some(named)) = (frame.result(), named) else {
            self.sessions.by_id.remove(id);
            return self.on_not_opened(agent, id, &opening, frame);
        };
        let launch = self.parts.agents.processes[&agent].launch.clone();
        let setup = without_session_id(result);
        let unheard = self.parts.agents.why_policy_is_unenforced(
            &self.parts.cx,
            Some(agent),
            &launch.name,
            current_mode(result).as_deref(),
        );
        if let Some(why) = unheard
            .as_ref()
            .filter(|_| self.parts.clients.must_enforce_policy(&self.parts.cx, &opening))
        {
            self.sessions.by_id.remove(id);
            self.parts.clients.answer_request(
                &mut self.parts.cx,
                opening.conn,
                &opening.request,
                Err(&unenforced(why)),
            );
            return self.leave(agent, id, &named);
        }
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Opened(SessionOpened {
                agent: launch.name.clone(),
                argv: launch.argv,
                cwd: opening.cwd.clone(),
                params: RawJson::trusted(opening.frame.params().unwrap_or("{}").to_owned()),
                agent_session: named.as_str().into(),
                setup: RawJson::trusted(setup),
                fallback: fallback::to_json(&opening.fallen),
            }),
        );
        self.subscribe(id, opening.conn, EventSubscriber::new(crate::Seq(0), Phase::Live));
        let answer = fallback::opened_answer(frame, &opening, &launch.name, unheard.as_deref());
        let answer = answer.with_session_id(id);
        let session = self.sessions.by_id.get_mut(id).expect("opened above");
        session.opener = Some((opening.conn, opening.request));
        self.answer_in(id, opening.conn, &answer);
        for update in self.parts.agents.take_updates_before_session_id(agent, &named) {
            self.on_agent(agent, update);
        }
        self.parts.cx.note(Note::SessionOpened { session: id.clone(), agent });
        self.parts.agents.keep_warm(&mut self.parts.cx, agent);
    }

    /// The agent refused the session, for example because a login is required. The process stays for the next try.
    fn on_not_opened(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        opening: &SessionOpening,
        frame: &Frame,
    ) {
        let error = crate::agent::error_of(frame);
        let answer = error_frame(&opening.request, &error);
        self.parts.clients.finish_request(opening.conn, &opening.request);
        self.parts.clients.send(&mut self.parts.cx, opening.conn, answer.bytes().clone());
        match self.parts.clients.connections.get_mut(&opening.conn) {
            Some(conn) if conn.spare.is_none() => {
                conn.spare = Some(agent);
                self.parts.agents.return_to_spare(agent, opening.conn, id);
            }
            _ => self.leave(agent, id, ""),
        }
    }

    /// A client disconnected while its sessions were being opened: they are removed.
    pub(crate) fn abandon_openings(&mut self, conn: ConnId) {
        let of_conn =
            |it: &Session| matches!(&it.stage, SessionStage::Opening(it) if it.conn == conn);
        let abandoned = self.sessions.by_id.iter().filter(|(_, it)| of_conn(it));
        let abandoned: Vec<SessionId> = abandoned.map(|(id, _)| id.clone()).collect();
        for id in abandoned {
            let session = self.sessions.by_id.remove(&id).expect("found above");
            if let Some(agent) = session.agent {
                self.leave(agent, &id, "");
            }
        }
    }

    pub(crate) fn subscribe(&mut self, id: &SessionId, conn: ConnId, subscriber: EventSubscriber) {
        let Some(it) = self.parts.clients.connections.get_mut(&conn) else { return };
        it.attached.insert(id.clone());
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        session.subscribers.insert(conn, subscriber);
    }
}

fn unenforced(why: &str) -> Fault {
    let why = format!(
        "{why}, and there are rules that deny something; choose an agent or a mode that asks, or \
         accept it with `--unenforced` (`unenforced` in the API)"
    );
    Fault::NotAllowed { why }
}

/// The mode in the answer to `session/new`.
fn current_mode(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    Some(result.pointer("/modes/currentModeId")?.as_str()?.to_owned())
}

/// What the agent offered with the session: modes, config options, extensions. If it is too large to be stored, only
/// the client that opens the session gets it.
pub(crate) fn without_session_id(result: &str) -> String {
    if limits::SETUP_BYTES_MAX < result.len() {
        return "null".to_owned();
    }
    match serde_json::from_str::<Value>(result) {
        Ok(Value::Object(mut map)) => {
            map.remove("sessionId");
            Value::Object(map).to_string()
        }
        _ => "null".to_owned(),
    }
}
