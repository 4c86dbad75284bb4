//! The opening of a session: it is requested from the agent, whose answer starts the log.

use super::{
    Session, SessionStage,
    agent_params::{AgentParams, check_configured_servers},
};
use crate::{
    AgentId, ConnId, Launch, Note, SandboxRequest, Seq, SessionId,
    agent::{Agent, error_of, is_journaled},
    budget::ByteCharge,
    context::HubContext,
    fallback::{self, FailedAgent},
    fanout::{EventSubscriber, Phase},
    limits,
    message::HubMessage,
    parts::HubParts,
    peer::{Clients, error_frame},
};
use jackfield_events::{EventBody, RawJson, RequestKey, SessionOpened, SessionSummary};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A pending `session/new`.
#[derive(Debug)]
pub(crate) struct SessionOpening {
    pub(crate) conn: ConnId,
    pub(crate) request: Box<str>,
    frame: Frame,
    key: Option<RequestKey>,
    /// The bytes of the request.
    _charge: ByteCharge,
    /// The agent that will serve it.
    pub(crate) launch: Launch,
    /// Agents that could not be started.
    pub(super) fallen: Vec<FailedAgent>,
}

impl SessionOpening {
    pub(crate) fn new(
        conn: ConnId,
        request: &str,
        frame: &Frame,
        key: Option<RequestKey>,
        charge: ByteCharge,
        launch: Launch,
        fallen: Vec<FailedAgent>,
    ) -> SessionOpening {
        let (request, frame) = (request.into(), frame.clone());
        SessionOpening { conn, request, frame, key, _charge: charge, launch, fallen }
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.key.as_ref().is_some_and(|it| &*it.key == key)
    }

    pub(super) fn params(&self) -> &str {
        self.frame.params().unwrap_or("{}")
    }

    /// The parameters of `session/new` as the agent gets them.
    pub(super) fn agent_params(&self, parts: &HubParts, agent: &Agent) -> Result<String, Fault> {
        let config = &parts.cx.config;
        let params: Value = serde_json::from_str(self.params()).unwrap_or_default();
        check_configured_servers(config, agent, &params)?;
        let connection = parts.clients.connections.get(&self.conn);
        let unenforced = connection.is_some_and(|it| it.unenforced);
        let (agent, cwd) = (&*agent.launch.name, &*self.cwd().to_string_lossy());
        AgentParams { config, agent, cwd, unenforced }.compose(self.params())
    }

    fn cwd(&self) -> &Path {
        &self.launch.cwd
    }
}

/// The directories of a session beside its working directory.
pub(super) fn additional_directories(params: &Value) -> Vec<PathBuf> {
    let directories = params["additionalDirectories"].as_array().into_iter().flatten();
    directories.filter_map(Value::as_str).map(PathBuf::from).collect()
}

impl Clients {
    /// The agent that the request names, else that of the connection, else the default one.
    pub(crate) fn choose_launch(
        &self,
        cx: &HubContext,
        conn: ConnId,
        params: &Value,
        cwd: &str,
    ) -> Result<Launch, Fault> {
        let named = params.pointer("/_meta/jackfield/agent").and_then(Value::as_str);
        let client = self.connections.get(&conn);
        let of_conn = client.and_then(|it| it.launch.clone());
        let mut launch = match (named, of_conn) {
            (Some(name), Some(launch)) if cx.config.is_name_of(name, &launch.name) => launch,
            (Some(name), _) => cx.config.find_agent_launch(name)?,
            (None, Some(launch)) => launch,
            (None, None) => {
                let why = || "no agent was named and none is configured as default".into();
                let name = cx.config.default_agent.as_ref();
                cx.config.find_agent_launch(name.ok_or_else(|| Fault::NoAgent { why: why() })?)?
            }
        };
        launch.cwd = PathBuf::from(cwd);
        launch.env = launch.env.or_else(|| client?.env.clone());
        let chosen = &params["_meta"]["jackfield"]["sandbox"];
        self.check_sandbox_choice(conn, chosen)?;
        let profile = chosen.as_str();
        launch.sandbox = SandboxRequest {
            profile: profile
                .map(Into::into)
                .or_else(|| client?.sandbox.clone())
                .or_else(|| cx.config.sandbox_profile(&launch.name, cwd)),
            directories: additional_directories(params),
        };
        Ok(launch)
    }

    /// Whether a rule denies something there, and the client has not accepted that it is not enforced.
    fn must_enforce_policy(&self, cx: &HubContext, opening: &SessionOpening) -> bool {
        let accepts = self.connections.get(&opening.conn).is_some_and(|it| it.unenforced);
        !accepts && cx.config.policies.has_deny_rules(&opening.cwd().to_string_lossy())
    }
}

impl Session {
    pub(crate) fn opening(id: SessionId, opening: SessionOpening) -> Session {
        Session::new(id, SessionSummary::default(), SessionStage::Opening(opening))
    }

    /// Whether this client is opening the session.
    pub(crate) fn is_opened_by(&self, conn: ConnId) -> bool {
        matches!(&self.stage, SessionStage::Opening(it) if it.conn == conn)
    }

    /// The agent of a session that is being opened.
    pub(super) fn opening_launch(&self) -> Option<&Launch> {
        if let SessionStage::Opening(it) = &self.stage { Some(&it.launch) } else { None }
    }

    /// Whether the session is being opened with this key.
    pub(crate) fn is_opening_with_key(&self, key: &str) -> bool {
        matches!(&self.stage, SessionStage::Opening(it) if it.has_key(key))
    }

    /// No process can be started for the session.
    pub(crate) fn on_agent_refused(&mut self, parts: &mut HubParts, fault: &Fault) {
        if matches!(self.stage, SessionStage::Opening(_)) {
            self.open_with_fallback(parts, fault, None);
        } else {
            self.refuse_waiting(parts, fault);
        }
    }

    /// The agent answered `session/new`. `name` is its session id, if it is valid.
    pub(crate) fn on_opened(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
        name: Option<&str>,
    ) {
        let SessionStage::Opening(opening) = &self.stage else { return };
        let Some(process) = parts.agents.processes.get(&agent) else { return };
        let (launch, variant) = (process.launch.clone(), process.variant.clone());
        let prompt_capabilities = process.prompt_capabilities;
        let (Some(result), Some(name)) = (frame.result(), name) else {
            return self.on_opening_refused(parts, agent, frame);
        };
        let mode = current_mode(result);
        let (agents, cx) = (&parts.agents, &parts.cx);
        let unenforced =
            agents.why_policy_is_unenforced(cx, Some(agent), &launch.name, mode.as_deref());
        if let Some(why) = &unenforced
            && parts.clients.must_enforce_policy(&parts.cx, opening)
        {
            self.leave_agent(parts, agent, name);
            return self.fail_opening(parts, &unenforced_fault(why));
        }
        let SessionStage::Opening(opening) =
            std::mem::replace(&mut self.stage, SessionStage::Bound)
        else {
            return;
        };
        let opened = SessionOpened {
            agent: launch.name.clone(),
            argv: launch.argv,
            cwd: opening.cwd().to_string_lossy().into_owned(),
            params: RawJson::trusted(opening.params().to_owned()),
            agent_session: name.into(),
            setup: RawJson::trusted(without_session_id(result)),
            variant,
            fallback: fallback::to_json(&opening.fallen),
            sandbox: parts.agents.sandbox_profile_of(agent),
            prompt_capabilities,
        };
        self.append_event(&mut parts.cx, EventBody::Opened(opened));
        self.log_sandbox(parts, agent);
        self.subscribe(parts, opening.conn, EventSubscriber::new(Seq(0), Phase::Live));
        let (request, fallen) = (&opening.request, &opening.fallen);
        let answer =
            fallback::opened_answer(frame, request, fallen, &launch.name, unenforced.as_deref());
        let answer = answer.with_session_id(&self.id);
        self.opener = Some((opening.conn, opening.request));
        self.answer_after_log(parts, opening.conn, &answer);
        for update in parts.agents.take_early_updates(agent, name) {
            let is_journaled = is_journaled(&update);
            self.on_update(parts, agent, update, is_journaled);
        }
        parts.cx.note(Note::SessionOpened { session: self.id.clone(), agent });
        parts.agents.keep_warm(&mut parts.cx, agent);
    }

    /// The agent refused the session, for example because a login is required. The process stays for the next try.
    fn on_opening_refused(&mut self, parts: &mut HubParts, agent: AgentId, frame: &Frame) {
        let SessionStage::Opening(opening) = &self.stage else { return };
        let (conn, request) = (opening.conn, opening.request.clone());
        let answer = error_frame(&request, &error_of(frame));
        parts.clients.finish_request(conn, &request);
        parts.clients.send(&mut parts.cx, conn, answer.bytes().clone());
        match parts.clients.connections.get_mut(&conn) {
            Some(it) if it.spare.is_none() => {
                it.spare = Some(agent);
                parts.agents.return_to_spare(agent, conn, &self.id);
            }
            _ => self.leave_agent(parts, agent, ""),
        }
        self.agent = None;
        parts.cx.post(HubMessage::RemoveOpening(self.id.clone()));
    }

    /// The client that opens the session, and its request.
    pub(super) fn opening_request(&self) -> Option<(ConnId, &str)> {
        match &self.stage {
            SessionStage::Opening(opening) => Some((opening.conn, &opening.request)),
            _ => None,
        }
    }

    /// The session cannot be opened: its client gets the error, and the session is removed.
    pub(super) fn fail_opening(&mut self, parts: &mut HubParts, fault: &Fault) {
        let SessionStage::Opening(opening) = &self.stage else { return };
        let (conn, request) = (opening.conn, opening.request.clone());
        self.agent = None;
        parts.clients.answer_request(&mut parts.cx, conn, &request, Err(fault));
        parts.cx.post(HubMessage::RemoveOpening(self.id.clone()));
    }

    pub(super) fn subscribe(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        subscriber: EventSubscriber,
    ) {
        let Some(it) = parts.clients.connections.get_mut(&conn) else { return };
        it.attached.insert(self.id.clone());
        self.subscribers.insert(conn, subscriber);
    }
}

fn unenforced_fault(why: &str) -> Fault {
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
pub(super) fn without_session_id(result: &str) -> String {
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
