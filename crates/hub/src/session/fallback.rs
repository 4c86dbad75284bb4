//! Uses the configured fallback of an agent that cannot be started. The answer, the log and the list of sessions say
//! which agent is used and why.

use super::{SessionStage, open::SessionOpening};
use crate::{ConnId, Hub, Launch, Note, SessionId, context::HubContext};
use jackfield_events::{AgentName, RawJson};
use jackfield_protocol::{Fault, Frame, is_planted, redact};
use serde_json::{Map, Value, json};

/// An agent that could not be started.
#[derive(Debug, Clone)]
pub(crate) struct FailedAgent {
    agent: AgentName,
    why: String,
}

/// As it is in the log and in `_meta.jackfield.fallback`.
pub(crate) fn to_json(fallen: &[FailedAgent]) -> Option<RawJson> {
    (!fallen.is_empty()).then(|| RawJson::trusted(rows(fallen).to_string()))
}

fn rows(fallen: &[FailedAgent]) -> Value {
    let row = |it: &FailedAgent| json!({ "agent": &*it.agent, "why": redact::text(&it.why) });
    fallen.iter().map(row).collect()
}

/// Adds to a result which agent it is of, if that is not the requested one.
pub(crate) fn tell(result: &str, agent: &str, fallen: &[FailedAgent]) -> Option<String> {
    with_facts(result, facts(agent, fallen, None))
}

/// What is reported about a session beside the answer of the agent, in `_meta.jackfield`.
fn facts(agent: &str, fallen: &[FailedAgent], unheard: Option<&str>) -> Map<String, Value> {
    let mut facts = Map::new();
    if !fallen.is_empty() {
        facts.extend([("agent".to_owned(), json!(agent)), ("fallback".to_owned(), rows(fallen))]);
    }
    facts.extend(unheard.map(|it| ("unheard".to_owned(), json!(it))));
    facts
}

fn with_facts(result: &str, facts: Map<String, Value>) -> Option<String> {
    if facts.is_empty() {
        return None;
    }
    let mut result: Map<String, Value> = serde_json::from_str(result).ok()?;
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    let hub_meta = &mut meta["jackfield"];
    if !hub_meta.is_object() {
        *hub_meta = json!({});
    }
    hub_meta.as_object_mut()?.extend(facts);
    Some(Value::from(result).to_string())
}

impl HubContext {
    /// The fallback of this agent. Each agent is tried once.
    fn choose_fallback(
        &mut self,
        launch: &Launch,
        mut fallen: Vec<FailedAgent>,
        fault: &Fault,
    ) -> Option<(Launch, Vec<FailedAgent>)> {
        if self.is_stopping || matches!(fault, Fault::Quota { .. }) {
            return None; // Another would be one too many just as well.
        }
        let pool = self.config.pools.get(&launch.name)?;
        let name = pool.fallback.clone()?;
        fallen.push(FailedAgent { agent: launch.name.clone(), why: fault.to_string() });
        if fallen.iter().any(|it| it.agent == name) {
            return None;
        }
        let other = self.config.agents.get(&name)?.clone();
        let (agent, instead) = (launch.name.to_string(), name.to_string());
        self.note(Note::FellBack { agent, instead, why: fault.to_string() });
        Some((Launch { cwd: launch.cwd.clone(), env: launch.env.clone(), ..other }, fallen))
    }
}

impl Hub {
    /// The agent of a session that is being opened cannot be started: its fallback is tried, or the client is answered.
    pub(crate) fn open_elsewhere(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        session.agent = None;
        let SessionStage::Opening(opening) = &session.stage else { return };
        let (launch, fallen) = (opening.launch.clone(), opening.fallen.clone());
        let (conn, request) = (opening.conn, opening.request.clone());
        let other = self.parts.cx.choose_fallback(&launch, fallen, fault);
        let session = self.sessions.by_id.get_mut(id).expect("found above");
        if let (Some((launch, fallen)), SessionStage::Opening(opening)) =
            (other, &mut session.stage)
        {
            (opening.launch, opening.fallen) = (launch, fallen);
            return self.find_agent(id);
        }
        self.sessions.by_id.remove(id);
        self.parts.clients.answer_request(&mut self.parts.cx, conn, &request, Err(fault));
    }

    /// The agent of a client that waits for `initialize` cannot be started. The fallback also serves its sessions.
    pub(crate) fn introduce_elsewhere(&mut self, conn: ConnId, request: &str, fault: &Fault) {
        let Some(it) = self.parts.clients.connections.get(&conn) else { return };
        let (launch, fallen) = (it.launch.clone(), it.fallen.clone());
        match launch.and_then(|it| self.parts.cx.choose_fallback(&it, fallen, fault)) {
            Some((launch, fallen)) => {
                if let Some(it) = self.parts.clients.connections.get_mut(&conn) {
                    (it.launch, it.fallen) = (Some(launch), fallen);
                }
                self.introduce(conn, request);
            }
            None => {
                self.parts.clients.answer_request(&mut self.parts.cx, conn, request, Err(fault));
            }
        }
    }
}

/// The answer to `session/new`.
pub(super) fn opened_answer(
    frame: &Frame,
    opening: &SessionOpening,
    agent: &str,
    unheard: Option<&str>,
) -> Frame {
    let hides = is_planted("fall-back-without-event");
    let facts = facts(agent, if hides { &[] } else { &opening.fallen }, unheard);
    let result = frame.result().and_then(|it| with_facts(it, facts));
    let request = &opening.request;
    result.map_or_else(|| frame.with_id(request), |it| Frame::result_for(request, &it))
}
