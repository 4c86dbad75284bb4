//! Turns: one at a time, in the order of the prompts, each with exactly one outcome in the log.

use super::{Session, SessionStage};
use crate::{
    AgentId, ConnId, Hub, Note, Output, SessionId, Time,
    agent::PendingRequest,
    context::HubContext,
    fanout::{EventSubscriber, Phase},
    limits,
    log::Effect,
    session::Sessions,
    timer::HubTimer,
};
use jackfield_events::{
    AgentSessionId, EventBody, RawJson, TurnCancelled, TurnEnded, TurnOutcome, TurnStarted,
};
use jackfield_protocol::{Fault, Frame, Splice, acp::Method, is_planted};
use std::collections::BTreeSet;

/// The running turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// The client whose prompt it is. It may have disconnected.
    pub(crate) driver: ConnId,
    /// The request id of the prompt at the agent.
    pub(super) our_id: u64,
    /// The stage of canceling; 0 if it is not canceled.
    cancelled: u64,
    began: Time,
    /// Tool calls that a permission was requested for.
    pub(super) asked: BTreeSet<Box<str>>,
    /// Command lines and paths that a person has allowed.
    pub(super) approved: BTreeSet<String>,
    /// The agent did something without asking that a rule requires asking for.
    pub(super) unasked: bool,
    /// Why the hub itself cancels it.
    overdue: Option<String>,
}

impl Session {
    /// Whether the running turn was started by this request of this client.
    pub(super) fn runs_for(&self, conn: ConnId, request: &str) -> bool {
        let owed = self
            .turn
            .as_ref()
            .and_then(|turn| self.subscribers.get(&conn).and_then(|it| it.owed.get(&turn.number)));
        owed.is_some_and(|it| it.iter().any(|it| &**it == request))
    }
}

impl Turn {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled != 0
    }

    /// Whether it counts as interrupted, whatever the agent answers.
    pub(super) fn is_overdue(&self) -> bool {
        self.overdue.is_some()
    }
}

impl Sessions {
    /// The process that the session had, and its session id there.
    fn mark_suspended(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
    ) -> Option<(AgentId, AgentSessionId)> {
        let session = self.by_id.get_mut(id)?;
        let agent_session_id = session.known_agent_session_id();
        session.stage = SessionStage::Asleep;
        session.calls.clear();
        let agent = session.agent.take();
        cx.schedule_unattended_check(id);
        agent.map(|agent| (agent, agent_session_id))
    }

    /// After a restart: ends turns and requests whose agents ended with the last daemon.
    pub(crate) fn end_interrupted_turns(&mut self, cx: &mut HubContext) {
        let ids: Vec<SessionId> = self.by_id.keys().cloned().collect();
        for id in ids {
            self.end_turn_of_last_daemon(cx, &id);
            self.by_id.get_mut(&id).expect("listed above").count_queue(&cx.retained_bytes);
            cx.schedule_unattended_check(&id);
        }
    }

    pub(super) fn end_turn_of_last_daemon(&mut self, cx: &mut HubContext, id: &SessionId) {
        self.end_open_work(cx, id, "the daemon was restarted", "the daemon ended during the turn");
    }

    /// Ends what is open in the log, because no agent will end it.
    pub(super) fn end_open_work(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        asks_why: &str,
        turn_why: &str,
    ) {
        let state = &self.by_id[id].summary();
        let turn = state.open_turn.filter(|_| !is_planted("forget-interrupted-turn"));
        let asks: Vec<u64> = state.open_asks.iter().copied().collect();
        for ask in asks {
            self.remember_closed_request(cx, id, ask, asks_why.into());
            self.append_event(cx, id, super::ask::voided(ask, asks_why));
        }
        if let Some(turn) = turn {
            let fault = Fault::Interrupted { why: turn_why.into() };
            let outcome = TurnOutcome::Interrupted(RawJson::trusted(fault.to_json()));
            self.append_event(cx, id, EventBody::Ended(TurnEnded { turn, outcome }));
        }
    }
}

impl Hub {
    pub(super) fn start_turn(&mut self, id: &SessionId, agent: AgentId) {
        if self.sessions.by_id[id].turn.is_some() {
            return;
        }
        let Some(prompt) = self.sessions.take_next_prompt(id) else { return };
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        let turn = session.summary().turns + 1;
        let agent_session_id = session.summary().agent_session.clone();
        let durable = session.log.durable();
        let waiting = PendingRequest::Prompt(id.clone(), turn);
        let our_id =
            self.parts.agents.processes.get_mut(&agent).expect("bound to it").expect(waiting);
        let (driver, began) = (prompt.conn, self.parts.cx.now);
        session.turn = Some(Turn {
            number: turn,
            driver,
            our_id,
            cancelled: 0,
            began,
            asked: BTreeSet::new(),
            approved: BTreeSet::new(),
            unasked: false,
            overdue: None,
        });
        self.with_session(id, |it, parts| it.mark_agent_used(parts, true));
        let session = self.sessions.by_id.get_mut(id).expect("found above");
        if !session.subscribers.contains_key(&driver) {
            self.subscribe(id, driver, EventSubscriber::new(durable, Phase::Live));
        }
        for (conn, request) in prompt.waiters {
            self.owe(id, conn, turn, request);
        }
        let (by, frame) = (prompt.by, RawJson::trusted(prompt.frame.bytes().clone()));
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Prompted(TurnStarted { turn, by, prompt: prompt.number, frame }),
        );
        let our_id = our_id.to_string();
        let splice =
            Splice { id: Some(&our_id), session_id: Some(&agent_session_id), request_id: None };
        let text =
            self.sessions.with_digest(id, turn, &prompt.frame).spliced(splice).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
        self.parts.cx.note(Note::TurnStarted { session: id.clone(), turn });
    }

    /// Ends the turn. Its client is answered when the event is delivered to it.
    pub(crate) fn end_turn(&mut self, id: &SessionId, number: u64, outcome: TurnOutcome) {
        let alone = self.has_own_process(id);
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let Some(mut turn) = session.turn.take_if(|it| it.number == number) else {
            return; // It ended otherwise before the agent answered.
        };
        session.calls.clear();
        let agent = session.agent.filter(|_| turn.cancelled != 0);
        if let Some(agent) = agent.filter(|_| alone) {
            // Many agents leave the processes of canceled tools running. In a process with several sessions it is
            // unknown which session a tool belongs to.
            let age_ms = self.parts.cx.now.since(turn.began);
            self.parts.cx.outputs.push_back(Output::EndTools { agent, age_ms });
        }
        let outcome = match (turn.overdue.take(), outcome) {
            (Some(why), _) => {
                TurnOutcome::Interrupted(RawJson::trusted(Fault::Interrupted { why }.to_json()))
            }
            (None, TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error))
                if turn.is_cancelled() && !self.parts.cx.is_stopping =>
            {
                cancelled_with(&error)
            }
            (None, other) => other,
        };
        if matches!(outcome, TurnOutcome::Stopped(_)) {
            session.restarts.forgive();
            if let Some(agent) = session.agent {
                self.parts.agents.close_breaker(agent);
            }
        }
        self.void_asks(id, "the turn is over");
        let (how, reason) = (outcome.name(), outcome.stop_reason());
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Ended(TurnEnded { turn: number, outcome }),
        );
        self.parts.cx.note(Note::TurnEnded { session: id.clone(), turn: number, how, reason });
        self.pump(id);
    }

    /// Cancels the running turn, first with `session/cancel`.
    pub(crate) fn stop_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.cancelled != 0 {
            return;
        }
        turn.cancelled = 1;
        let number = turn.number;
        let params =
            serde_json::json!({ "sessionId": &*session.summary().agent_session }).to_string();
        // An agent that refused the prompt and is asked for another session has nothing to cancel.
        let has_it = session.is_bound();
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Cancelled(TurnCancelled { turn: number, step: 1 }),
        );
        if has_it {
            let text = Frame::notification(Method::SessionCancel.name(), &params).bytes().clone();
            self.after_log(id, Effect::ToAgent { agent, text });
        }
        self.void_asks(id, "the turn was cancelled");
        let at = self.parts.cx.now.plus(limits::CANCEL_GRACE_MS);
        self.parts.cx.timers.set(at, HubTimer::Cancel(id.clone(), number, 1));
    }

    /// The turn was silent for longer than permitted.
    pub(crate) fn stop_overdue(&mut self, id: &SessionId, why: String) {
        let turn = self.sessions.by_id.get_mut(id).and_then(|it| it.turn.as_mut());
        if let Some(turn) = turn.filter(|it| it.cancelled == 0) {
            turn.overdue = Some(why);
            self.stop_turn(id);
        }
    }

    /// The agent did not stop: sends `session/cancel` again, then ends its process.
    pub(crate) fn on_cancel_deadline(&mut self, id: &SessionId, number: u64, step: u64) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.number != number || turn.cancelled != step {
            return;
        }
        turn.cancelled = step + 1;
        let our_id = turn.our_id;
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Cancelled(TurnCancelled { turn: number, step: step + 1 }),
        );
        if step == 1 {
            let params = format!(r#"{{"requestId":{our_id}}}"#);
            let text = Frame::notification(Method::CancelRequest.name(), &params).bytes().clone();
            self.after_log(id, Effect::ToAgent { agent, text });
            let at = self.parts.cx.now.plus(limits::CANCEL_GRACE_MS);
            if !is_planted("stop-after-first-cancel") {
                self.parts.cx.timers.set(at, HubTimer::Cancel(id.clone(), number, 2));
            }
        } else {
            if let Some((agent, _)) = self.sessions.mark_suspended(&mut self.parts.cx, id) {
                self.cut_off(agent, id);
            }
            let cancelled = RawJson::trusted(r#"{"stopReason":"cancelled"}"#);
            self.end_turn(id, number, TurnOutcome::Stopped(cancelled));
        }
    }

    /// Suspends the session and gives up its agent.
    pub(crate) fn release_agent(&mut self, id: &SessionId) {
        if let Some((agent, agent_session_id)) =
            self.sessions.mark_suspended(&mut self.parts.cx, id)
        {
            self.leave(agent, id, &agent_session_id);
        }
    }

    /// Interrupts everything that a session does.
    pub(crate) fn abandon(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.by_id.get(id) else { return };
        let turn = session.turn.as_ref().map(|it| it.number);
        if !is_planted("keep-agent-of-closed-session") {
            self.release_agent(id);
        }
        self.refuse_waiting(id, fault);
        self.sessions.withdraw_held_prompts(&mut self.parts.cx, id, &fault.to_string());
        if let Some(turn) = turn {
            self.end_turn(id, turn, TurnOutcome::Interrupted(RawJson::trusted(fault.to_json())));
        }
        self.void_asks(id, "the session was ended");
    }

    /// Requests to a suspended session restore it and wait.
    pub(crate) fn forward_in(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        frame: Frame,
    ) -> Result<(), Fault> {
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        if let (SessionStage::Bound, Some(agent)) = (&session.stage, session.agent) {
            self.forward(agent, Some(id), conn, &frame);
            return Ok(());
        }
        if self.parts.cx.config.limits.parked_max <= session.parked.len() {
            return Err(Fault::Overloaded { what: "too many requests wait for the agent".into() });
        }
        let charge = self.parts.cx.retained_bytes.charge(&session.kept, frame.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        session.parked.push_back((conn, frame, charge));
        self.pump(id);
        Ok(())
    }
}

/// A client that canceled a turn gets the outcome `cancelled`, whatever the agent answered.
fn cancelled_with(error: &RawJson) -> TurnOutcome {
    let error = error.as_str();
    let meta = format!(r#"{{"jackfield":{{"error":{error}}}}}"#);
    TurnOutcome::Stopped(RawJson::trusted(format!(
        r#"{{"stopReason":"cancelled","_meta":{meta}}}"#
    )))
}
