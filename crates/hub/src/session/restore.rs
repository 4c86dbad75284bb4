//! Restores a session in a new agent process, with the first step that works: `session/resume`, `session/load`, the
//! agent's own `session/fork`, or a new session that gets a summary of the conversation. One event records which step
//! worked and why the steps before it did not.

use super::{
    Session, SessionRestore, SessionStage,
    open::without_session_id,
    refusal::AgentRefusal,
    restore_method::MethodCheck,
    restore_state::{RestoredSession, Step},
    restore_trial::RestoreTrial,
};
use crate::{
    AgentId, Note,
    agent::{Agent, PendingRequest, RestoreMethod, is_journaled},
    limits,
    message::HubMessage,
    parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::{AgentBound, AgentSessionId, EventBody, RawJson, RestoreStep, TurnOutcome};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::Value;

impl Session {
    pub(super) fn restoring(&mut self) -> Option<&mut SessionRestore> {
        match &mut self.stage {
            SessionStage::Restoring(restoring) => Some(restoring),
            _ => None,
        }
    }

    /// Tries the next restore step. `is_at_fork_point` says whether the session that this one was forked from is unchanged.
    pub(crate) fn try_next_step(&mut self, parts: &mut HubParts, is_at_fork_point: bool) {
        let Some(agent) = self.agent else { return };
        let process = parts.agents.processes.get(&agent);
        let Some(capabilities) = process.map(|it| it.capabilities) else { return };
        for way in RestoreMethod::ALL {
            let verdict = self.check_method(&parts.cx, capabilities, way, is_at_fork_point);
            let Some(restoring) = self.restoring() else { return };
            if restoring.was_tried(way) {
                continue;
            }
            match verdict {
                MethodCheck::Try => return self.try_method(parts, agent, way),
                MethodCheck::Not(why) => restoring.give_reason(way.step(), why),
                MethodCheck::NoMatter => {}
            }
        }
        self.abandon_restore(parts);
    }

    fn try_method(&mut self, parts: &mut HubParts, agent: AgentId, way: RestoreMethod) {
        let params = self.restore_params(&parts.cx, way);
        let Some(restoring) = self.restoring() else { return };
        (restoring.way, restoring.step) = (Some(way), Step::Asked);
        (restoring.retells, restoring.tells) = (false, false);
        let pending = PendingRequest::Reopen(self.id.clone(), way);
        self.send_agent_request(parts, agent, way.method(), &params, pending);
    }

    /// The agent answered the current step. `name` is its session id, if it is valid.
    pub(crate) fn on_reopened(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        way: RestoreMethod,
        frame: &Frame,
        name: Option<&str>,
    ) {
        if self.agent != Some(agent) || self.restoring().is_none() {
            return; // The session left this process.
        }
        let Some(result) = frame.result() else {
            return self.on_refused(parts, way, frame);
        };
        match (way, name.map(AgentSessionId::from)) {
            (RestoreMethod::Resume, _) => {
                self.on_step_worked(parts, agent, RestoreStep::Resumed, result, None);
            }
            (RestoreMethod::Load, _) => self.await_replay(parts, agent, result),
            (RestoreMethod::Fork | RestoreMethod::New, Some(name)) => {
                self.on_step_worked(parts, agent, way.step(), result, Some(name));
            }
            (RestoreMethod::Fork | RestoreMethod::New, None) => {
                self.on_refused(parts, way, frame);
            }
        }
    }

    fn on_refused(&mut self, parts: &mut HubParts, way: RestoreMethod, frame: &Frame) {
        let until = parts.cx.now.plus(limits::LOCK_RETRY_MS);
        let Some(restoring) = self.restoring() else { return };
        let refusal = AgentRefusal::of(frame);
        if refusal.is_lock() && !restoring.was_locked {
            // The other process may be about to end: one retry shows it.
            (restoring.was_locked, restoring.step) = (true, Step::Pausing { until });
            return parts.cx.timers.set(until, HubTimer::Restore(self.id.clone()));
        }
        restoring.give_reason(way.step(), refusal.message());
        if refusal.wants_login() {
            return self.abandon_restore(parts); // It may have the session, and says so only after a login.
        }
        parts.cx.post(HubMessage::TryRestoreStep(self.id.clone()));
    }

    /// `session/load` was answered. The agent may still be replaying, or may have no conversation.
    fn await_replay(&mut self, parts: &mut HubParts, agent: AgentId, result: &str) {
        let now = parts.cx.now;
        let knows = 0 < self.summary().turns;
        let SessionStage::Restoring(restoring) = &mut self.stage else { return };
        let wait = match (restoring.retells, restoring.tells || !knows) {
            (true, _) => limits::LOAD_QUIET_MS,
            (false, true) => {
                return self.on_step_worked(parts, agent, RestoreStep::Reloaded, result, None);
            }
            (false, false) => limits::LOAD_SILENCE_MS,
        };
        let (quiet_at, latest) = (now.plus(wait), now.plus(limits::LOAD_QUIET_MS_MAX));
        restoring.step = Step::Listening { setup: result.to_owned(), quiet_at, latest };
        parts.cx.timers.set(quiet_at, HubTimer::Restore(self.id.clone()));
    }

    /// The deadline of the current step has passed.
    pub(crate) fn on_restore_timer(&mut self, parts: &mut HubParts) {
        let now = parts.cx.now;
        let ready = |it: &AgentId| parts.agents.processes.get(it).is_some_and(Agent::is_ready);
        // A process that was given up meanwhile is not bound; its end answers the waiting requests.
        let Some(agent) = self.agent.filter(ready) else { return };
        let Some(restoring) = self.restoring() else { return };
        match &restoring.step {
            Step::Listening { quiet_at, .. } if *quiet_at <= now => {
                self.on_replay_ended(parts, agent);
            }
            Step::Listening { quiet_at, .. } => {
                let at = *quiet_at;
                parts.cx.timers.set(at, HubTimer::Restore(self.id.clone()));
            }
            Step::Pausing { until } if *until <= now => {
                if let Some(way) = restoring.way {
                    self.try_method(parts, agent, way);
                }
            }
            Step::Settling(it) if it.is_over(now) => self.finish_settings(parts, agent),
            Step::Recalling(it) if it.is_due(now) => {
                self.continue_recall(&mut parts.cx);
            }
            _ => {}
        }
    }

    /// The agent has finished its replay. An agent that replayed nothing may know nothing: it keeps its session and gets
    /// a summary of the conversation.
    fn on_replay_ended(&mut self, parts: &mut HubParts, agent: AgentId) {
        let reseed = self.may_reseed(&parts.cx);
        let Some(restoring) = self.restoring() else { return };
        let Step::Listening { setup, .. } = std::mem::take(&mut restoring.step) else { return };
        if restoring.tells {
            return self.on_step_worked(parts, agent, RestoreStep::Reloaded, &setup, None);
        }
        restoring.give_reason(
            RestoreStep::Reloaded,
            "it was answered, and nothing of the conversation was replayed",
        );
        let step = if reseed { RestoreStep::Reseeded } else { RestoreStep::Reloaded };
        self.on_step_worked(parts, agent, step, &setup, None);
    }

    /// A step worked: the agent gets a digest if it needs one, then the settings, then waiting prompts.
    fn on_step_worked(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        step: RestoreStep,
        setup: &str,
        agent_session_id: Option<AgentSessionId>,
    ) {
        let now = parts.cx.now;
        let Some(restoring) = self.restoring() else { return };
        let setup = without_session_id(setup);
        restoring.found = Some(RestoredSession {
            step,
            setup,
            agent_session_id: agent_session_id.clone(),
            digest: None,
        });
        let updates =
            agent_session_id.map(|it| parts.agents.take_early_updates(agent, it.as_str()));
        for update in updates.into_iter().flatten() {
            let is_journaled = is_journaled(&update);
            let may_replay = step == RestoreStep::Forked && is_journaled;
            if !may_replay || !self.restoring().is_some_and(|it| it.is_past(&update, now)) {
                self.on_update(parts, agent, update, is_journaled);
            }
        }
        if step == RestoreStep::Reseeded {
            self.begin_recall(parts, agent);
        } else {
            self.restore_settings(parts, agent);
        }
    }

    /// The session is restored.
    pub(super) fn bind(&mut self, parts: &mut HubParts, agent: AgentId) {
        let SessionStage::Restoring(restoring) = &mut self.stage else { return };
        let mut restoring = std::mem::take(restoring);
        let Some(found) = restoring.found.take() else { return };
        self.stage = SessionStage::Bound;
        let (step, loaded) = (found.step, restoring.way == Some(RestoreMethod::Load));
        self.restore_history.digest = found.digest.filter(|_| !is_planted("reseed-without-digest"));
        if found.agent_session_id.is_some() {
            self.restore_history.former = Some(self.summary().agent_session.clone());
        }
        // A step that only claims to have worked is verified by the first prompt.
        self.restore_history.trial =
            (restoring.way != Some(RestoreMethod::New)).then(|| RestoreTrial {
                step: if loaded { RestoreStep::Reloaded } else { step },
                tried: restoring.tried.clone(),
                prompt: None,
            });
        let tried = tried_json(restoring.tried);
        let setup = RawJson::trusted(found.setup);
        self.append_event(
            &mut parts.cx,
            EventBody::Bound(AgentBound {
                restore: step,
                setup,
                agent_session: found.agent_session_id,
                sandbox: parts.agents.sandbox_profile_of(agent),
                tried,
            }),
        );
        self.log_sandbox(parts, agent);
        parts.cx.note(Note::SessionWoke { session: self.id.clone(), agent, step: step.as_str() });
        if let Some((turn, prompt)) = restoring.again {
            self.send_prompt_again(parts, agent, turn, &prompt);
        }
        parts.agents.start_warm_agents(&mut parts.cx);
        self.advance(parts);
    }

    /// No step worked: waiting requests are refused, and the session is suspended. Its log is kept.
    pub(super) fn abandon_restore(&mut self, parts: &mut HubParts) {
        let now = parts.cx.now;
        let Some(restoring) = self.restoring() else { return };
        let tried = std::mem::take(&mut restoring.tried);
        let again = restoring.again.take();
        let reason = |it: &Value| {
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            format!("not {} ({})", text("restore"), text("why"))
        };
        let reasons: Vec<String> = tried.iter().map(reason).collect();
        let why = format!(
            "{}; its log is kept (`jackfield log {}`), and a new session can be opened",
            reasons.join(", "),
            self.id
        );
        let fault = Fault::CannotResume { session: self.id.to_string(), why };
        let (setup, tried) = (RawJson::null(), tried_json(tried));
        self.append_event(
            &mut parts.cx,
            EventBody::Bound(AgentBound {
                restore: RestoreStep::Failed,
                setup,
                agent_session: None,
                sandbox: None,
                tried,
            }),
        );
        self.restarts.ended(now);
        self.release_agent(parts);
        self.refuse_waiting(parts, &fault);
        if let Some((turn, _)) = again {
            self.end_turn(parts, turn, TurnOutcome::Failed(RawJson::trusted(fault.to_json())));
        }
    }
}

fn tried_json(tried: Vec<Value>) -> Option<RawJson> {
    (!tried.is_empty()).then(|| RawJson::trusted(Value::from(tried).to_string()))
}
