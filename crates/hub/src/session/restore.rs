//! Restores a session in a new agent process, with the first step that works: `session/resume`, `session/load`, the
//! agent's own `session/fork`, or a new session that gets a summary of the conversation. One event records which step
//! worked and why the steps before it did not.

use super::{
    SessionStage,
    open::without_session_id,
    refusal::AgentRefusal,
    reseed::LogRecall,
    restore_method::{MethodCheck, RestoreMethod},
    restore_trial::RestoreTrial,
    settings::PendingSettings,
};
use crate::{
    AgentId, Hub, Note, SessionId, Time,
    agent::{Agent, PendingRequest, is_journaled},
    limits,
    session::Sessions,
    timer::HubTimer,
};
use jackfield_events::{AgentBound, AgentSessionId, EventBody, RawJson, Rung, TurnOutcome};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Value, json};

/// Updates about the current state of a session. Titles and modes are not among them: in a replay they are old, and
/// the journal has the latest.
const PRESENT: [&str; 3] = ["available_commands_update", "config_option_update", "usage_update"];

/// Updates that are part of the conversation. An agent that has no conversation sends none of them.
const TOLD: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

/// The progress of restoring a session.
#[derive(Debug, Default)]
pub(crate) struct SessionRestore {
    pub(super) tried: Vec<Value>,
    way: Option<RestoreMethod>,
    pub(super) step: Step,
    /// It sent user messages without a prompt, so it replays the conversation.
    retells: bool,
    /// It sent a part of the conversation.
    tells: bool,
    pub(super) found: Option<RestoredSession>,
    /// It was refused once because another process has the session open.
    was_locked: bool,
    /// The prompt that showed that an earlier step had not worked. It is sent again.
    again: Option<(u64, Frame)>,
}

/// What the session waits for.
#[derive(Debug, Default)]
pub(super) enum Step {
    /// The response of the agent, or its start.
    #[default]
    Asked,
    /// The end of the replay after the response.
    Listening { setup: String, quiet_at: Time, latest: Time },
    /// The time of a retry.
    Pausing { until: Time },
    /// Events from the journal.
    Recalling(LogRecall),
    /// The responses to settings.
    Settling(PendingSettings),
}

/// The step that worked.
#[derive(Debug)]
pub(super) struct RestoredSession {
    rung: Rung,
    setup: String,
    /// The session id of the agent, if it is new.
    agent_session_id: Option<AgentSessionId>,
    pub(super) digest: Option<String>,
}

impl SessionRestore {
    /// The session id of the agent, if it has reported a new one.
    pub(crate) fn agent_session_id(&self) -> Option<&AgentSessionId> {
        self.found.as_ref()?.agent_session_id.as_ref()
    }

    /// Whether a new session was requested and its id is not reported yet.
    pub(crate) fn is_nameless(&self) -> bool {
        self.found.is_none() && matches!(self.way, Some(RestoreMethod::New | RestoreMethod::Fork))
    }

    /// Whether the agent knows which session is meant.
    pub(crate) fn has_named(&self) -> bool {
        self.found.is_some()
            || matches!(self.way, Some(RestoreMethod::Resume | RestoreMethod::Load))
    }

    /// Handles an update during the restore. Returns it if it is not part of a replay.
    pub(crate) fn hear(&mut self, frame: Frame, journaled: bool, now: Time) -> Option<Frame> {
        let past = journaled && self.found.is_none() && self.is_past(&frame, now);
        (!past || is_planted("log-replay-of-load")).then_some(frame)
    }

    /// Whether an update is part of a replay. Some agents replay on `session/resume`, which they should not, and some
    /// continue after they have answered `session/load`.
    fn is_past(&mut self, update: &Frame, now: Time) -> bool {
        let kind = update.update().unwrap_or_default();
        if PRESENT.contains(&&*kind) {
            return false;
        }
        self.retells |= kind == "user_message_chunk";
        self.tells |= TOLD.contains(&&*kind);
        if let Step::Listening { quiet_at, latest, .. } = &mut self.step {
            *quiet_at = now.plus(limits::LOAD_QUIET_MS).min(*latest);
        }
        self.way != Some(RestoreMethod::Resume) || self.retells
    }

    fn give_reason(&mut self, rung: Rung, why: impl Into<String>) {
        self.tried.push(json!({ "rung": rung.as_str(), "why": why.into() }));
    }

    /// A step turned out not to work: the next one is tried, with the prompt that showed it.
    pub(super) fn after_all(
        tried: Vec<Value>,
        rung: Rung,
        why: String,
        again: (u64, Frame),
    ) -> SessionRestore {
        let mut restoring =
            SessionRestore { tried, again: Some(again), ..SessionRestore::default() };
        restoring.tried.retain(|it| it["rung"].is_string() && it["rung"] != rung.as_str());
        restoring.give_reason(rung, why);
        restoring
    }

    fn was_tried(&self, way: RestoreMethod) -> bool {
        self.tried.iter().any(|it| it["rung"] == way.rung().as_str())
    }
}

impl Sessions {
    pub(super) fn restoring(&mut self, id: &SessionId) -> Option<&mut SessionRestore> {
        match &mut self.by_id.get_mut(id)?.stage {
            SessionStage::Restoring(restoring) => Some(restoring),
            _ => None,
        }
    }
}

impl Hub {
    /// Tries the next restore step.
    pub(crate) fn try_next_step(&mut self, agent: AgentId, id: &SessionId) {
        for way in RestoreMethod::ALL {
            let verdict = self.check_method(agent, id, way);
            let Some(restoring) = self.sessions.restoring(id) else { return };
            if restoring.was_tried(way) {
                continue;
            }
            match verdict {
                MethodCheck::Try => return self.try_method(agent, id, way),
                MethodCheck::Not(why) => restoring.give_reason(way.rung(), why),
                MethodCheck::NoMatter => {}
            }
        }
        self.give_up(id);
    }

    fn try_method(&mut self, agent: AgentId, id: &SessionId, way: RestoreMethod) {
        let params = self.sessions.restore_params(id, way);
        let Some(restoring) = self.sessions.restoring(id) else { return };
        (restoring.way, restoring.step) = (Some(way), Step::Asked);
        (restoring.retells, restoring.tells) = (false, false);
        self.ask_agent(
            agent,
            way.method().name(),
            &params,
            PendingRequest::Reopen(id.clone(), way),
        );
    }

    /// The agent answered the current step.
    pub(crate) fn on_reopened(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        way: RestoreMethod,
        frame: &Frame,
    ) {
        let is_its = self.sessions.by_id.get(id).is_some_and(|it| it.agent == Some(agent));
        if !is_its || self.sessions.restoring(id).is_none() {
            return; // It let go of this process.
        }
        let Some(result) = frame.result() else {
            return self.on_refused(agent, id, way, frame);
        };
        let named = frame.session_id().filter(|it| self.is_free_name(agent, id, it));
        let named = named.map(|it| AgentSessionId::from(it.as_ref()));
        match (way, named) {
            (RestoreMethod::Resume, _) => self.found(agent, id, Rung::Resumed, result, None),
            (RestoreMethod::Load, _) => self.listen(agent, id, result),
            (RestoreMethod::Fork | RestoreMethod::New, Some(name)) => {
                self.found(agent, id, way.rung(), result, Some(name));
            }
            (RestoreMethod::Fork | RestoreMethod::New, None) => {
                self.on_refused(agent, id, way, frame);
            }
        }
    }

    fn on_refused(&mut self, agent: AgentId, id: &SessionId, way: RestoreMethod, frame: &Frame) {
        let until = self.parts.cx.now.plus(limits::LOCK_RETRY_MS);
        let Some(restoring) = self.sessions.restoring(id) else { return };
        let refusal = AgentRefusal::of(frame);
        if refusal.is_lock() && !restoring.was_locked {
            // The other process may be about to end: one retry shows it.
            (restoring.was_locked, restoring.step) = (true, Step::Pausing { until });
            return self.parts.cx.timers.set(until, HubTimer::Restore(id.clone()));
        }
        restoring.give_reason(way.rung(), refusal.words());
        if refusal.wants_login() {
            return self.give_up(id); // It may have the session, and tells nobody yet.
        }
        self.try_next_step(agent, id);
    }

    /// `session/load` was answered. The agent may still be replaying, or may have no conversation.
    fn listen(&mut self, agent: AgentId, id: &SessionId, result: &str) {
        let now = self.parts.cx.now;
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        let knows = 0 < session.summary().turns;
        let SessionStage::Restoring(restoring) = &mut session.stage else { return };
        let wait = match (restoring.retells, restoring.tells || !knows) {
            (true, _) => limits::LOAD_QUIET_MS,
            (false, true) => return self.found(agent, id, Rung::Reloaded, result, None),
            (false, false) => limits::LOAD_SILENCE_MS,
        };
        let (quiet_at, latest) = (now.plus(wait), now.plus(limits::LOAD_QUIET_MS_MAX));
        restoring.step = Step::Listening { setup: result.to_owned(), quiet_at, latest };
        self.parts.cx.timers.set(quiet_at, HubTimer::Restore(id.clone()));
    }

    /// The deadline of the current step has passed.
    pub(crate) fn on_restore_time(&mut self, id: &SessionId) {
        let now = self.parts.cx.now;
        let agent = self.sessions.by_id.get(id).and_then(|it| it.agent);
        let ready = |it: &AgentId| self.parts.agents.processes.get(it).is_some_and(Agent::is_ready);
        // A process that was given up meanwhile is not bound; its end answers the waiting requests.
        let Some(agent) = agent.filter(ready) else { return };
        let Some(restoring) = self.sessions.restoring(id) else { return };
        match &restoring.step {
            Step::Listening { quiet_at, .. } if *quiet_at <= now => self.heard_out(agent, id),
            Step::Listening { quiet_at, .. } => {
                let at = *quiet_at;
                self.parts.cx.timers.set(at, HubTimer::Restore(id.clone()));
            }
            Step::Pausing { until } if *until <= now => {
                if let Some(way) = restoring.way {
                    self.try_method(agent, id, way);
                }
            }
            Step::Settling(it) if it.is_over(now) => self.settled(agent, id),
            Step::Recalling(it) if it.is_due(now) => {
                self.sessions.continue_recall(&mut self.parts.cx, id);
            }
            _ => {}
        }
    }

    /// The agent has finished its replay. An agent that replayed nothing may know nothing: it keeps its session and gets
    /// a summary of the conversation.
    fn heard_out(&mut self, agent: AgentId, id: &SessionId) {
        let reseed = self.sessions.may_reseed(&self.parts.cx, id);
        let Some(restoring) = self.sessions.restoring(id) else { return };
        let Step::Listening { setup, .. } = std::mem::take(&mut restoring.step) else { return };
        if restoring.tells {
            return self.found(agent, id, Rung::Reloaded, &setup, None);
        }
        restoring.give_reason(Rung::Reloaded, "it was answered, and nothing of the past was step");
        let step = if reseed { Rung::Reseeded } else { Rung::Reloaded };
        self.found(agent, id, step, &setup, None);
    }

    /// A step worked: the agent gets a digest if it needs one, then the settings, then waiting prompts.
    fn found(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        rung: Rung,
        setup: &str,
        agent_session_id: Option<AgentSessionId>,
    ) {
        let now = self.parts.cx.now;
        let Some(restoring) = self.sessions.restoring(id) else { return };
        let setup = without_session_id(setup);
        restoring.found = Some(RestoredSession {
            rung,
            setup,
            agent_session_id: agent_session_id.clone(),
            digest: None,
        });
        let updates = agent_session_id
            .map(|it| self.parts.agents.take_updates_before_session_id(agent, it.as_str()));
        for update in updates.into_iter().flatten() {
            let retells = rung == Rung::Forked && is_journaled(&update);
            if !retells || !self.sessions.restoring(id).is_some_and(|it| it.is_past(&update, now)) {
                self.on_agent(agent, update);
            }
        }
        if rung == Rung::Reseeded {
            self.recall(agent, id);
        } else {
            self.set_again(agent, id);
        }
    }

    /// The session is restored.
    pub(super) fn bind(&mut self, agent: AgentId, id: &SessionId) {
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        let SessionStage::Restoring(restoring) =
            std::mem::replace(&mut session.stage, SessionStage::Bound)
        else {
            unreachable!("only a restoring session is bound");
        };
        let found = restoring.found.expect("a rung was found");
        let (rung, loaded) = (found.rung, restoring.way == Some(RestoreMethod::Load));
        session.restore_history.digest =
            found.digest.filter(|_| !is_planted("reseed-without-digest"));
        if found.agent_session_id.is_some() {
            session.restore_history.former = Some(session.summary().agent_session.clone());
        }
        // A step that only claims to have worked is verified by the first prompt.
        session.restore_history.trial =
            (restoring.way != Some(RestoreMethod::New)).then(|| RestoreTrial {
                rung: if loaded { Rung::Reloaded } else { rung },
                tried: restoring.tried.clone(),
                prompt: None,
            });
        let tried = tried_json(restoring.tried);
        let setup = RawJson::trusted(found.setup);
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Bound(AgentBound {
                rung,
                setup,
                agent_session: found.agent_session_id,
                tried,
            }),
        );
        self.parts.cx.note(Note::SessionWoke { session: id.clone(), agent, rung: rung.as_str() });
        if let Some((turn, prompt)) = restoring.again {
            self.prompt_again(agent, id, turn, &prompt);
        }
        self.parts.agents.start_warm_agents(&mut self.parts.cx);
        self.pump(id);
    }

    /// No step worked: waiting requests are refused, and the session is suspended. Its log is kept.
    pub(super) fn give_up(&mut self, id: &SessionId) {
        let now = self.parts.cx.now;
        let Some(restoring) = self.sessions.restoring(id) else { return };
        let tried = std::mem::take(&mut restoring.tried);
        let again = restoring.again.take();
        let reason = |it: &Value| {
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            format!("not {} ({})", text("rung"), text("why"))
        };
        let reasons: Vec<String> = tried.iter().map(reason).collect();
        let why = format!(
            "{}; its log is kept (`jackfield log {id}`), and a new session can be opened",
            reasons.join(", ")
        );
        let fault = Fault::CannotResume { session: id.to_string(), why };
        let (setup, tried) = (RawJson::null(), tried_json(tried));
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Bound(AgentBound { rung: Rung::Failed, setup, agent_session: None, tried }),
        );
        if let Some(session) = self.sessions.by_id.get_mut(id) {
            session.restarts.ended(now);
        }
        self.release_agent(id);
        self.refuse_waiting(id, &fault);
        if let Some((turn, _)) = again {
            self.end_turn(id, turn, TurnOutcome::Failed(RawJson::trusted(fault.to_json())));
        }
    }
}

fn tried_json(tried: Vec<Value>) -> Option<RawJson> {
    (!tried.is_empty()).then(|| RawJson::trusted(Value::from(tried).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_without_end_is_waited_for_only_so_long() {
        let said = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}"#;
        let said = Frame::parse_str(said).unwrap();
        let (quiet_at, latest) = (Time(100), Time(5_000));
        let step = Step::Listening { setup: String::new(), quiet_at, latest };
        let mut restoring =
            SessionRestore { way: Some(RestoreMethod::Load), step, ..SessionRestore::default() };
        let mut quiet_at = |now: u64| {
            assert!(restoring.is_past(&said, Time(now)));
            let Step::Listening { quiet_at, .. } = &restoring.step else { panic!("it listens") };
            *quiet_at
        };
        assert_eq!(quiet_at(90), Time(90 + limits::LOAD_QUIET_MS));
        assert_eq!(quiet_at(4_990), Time(5_000));
    }
}
