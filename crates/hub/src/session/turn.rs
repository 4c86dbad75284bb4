//! Turns: one at a time, in the order asked, each with exactly one outcome in the log.

use super::{Session, Stage};
use crate::{
    AgentId, ConnId, Hub, Note, Output, SessionId, Time,
    agent::Waiting,
    fanout::{Phase, Subscriber},
    limits,
    log::Effect,
    timer::Timer,
};
use jackfield_events::{
    AgentSessionId, EventBody, RawJson, TurnCancelled, TurnEnded, TurnOutcome, TurnStarted,
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Splice, is_planted};
use std::collections::BTreeSet;

/// The turn that runs.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// The client whose prompt it is; it may have left.
    pub(crate) driver: ConnId,
    /// The agent has the prompt under this id.
    pub(super) our_id: u64,
    /// How hard it was asked to stop; 0 is not at all.
    cancelled: u64,
    began: Time,
    /// Tool calls that somebody was asked about.
    pub(super) asked: BTreeSet<Box<str>>,
    /// Command lines and paths that a person has allowed.
    pub(super) approved: BTreeSet<String>,
    /// The agent did something in it without asking that a rule wants asked.
    pub(super) unasked: bool,
    /// Why the hub itself wants it to stop.
    overdue: Option<String>,
}

impl Session {
    /// Whether the running turn is this client's, begun with that request.
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

    /// Whether it is interrupted, whatever the agent answers.
    pub(super) fn is_overdue(&self) -> bool {
        self.overdue.is_some()
    }
}

impl Hub {
    pub(super) fn start_turn(&mut self, id: &SessionId, agent: AgentId) {
        if self.sessions[id].turn.is_some() {
            return;
        }
        let Some(prompt) = self.next_prompt(id) else { return };
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        let turn = session.summary().turns + 1;
        let theirs = session.summary().agent_session.clone();
        let durable = session.log.durable();
        let waiting = Waiting::Prompt(id.clone(), turn);
        let our_id = self.agents.get_mut(&agent).expect("bound to it").expect(waiting);
        let (driver, began) = (prompt.conn, self.cx.now);
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
        self.told(id, true);
        let session = self.sessions.get_mut(id).expect("found above");
        if !session.subscribers.contains_key(&driver) {
            self.subscribe(id, driver, Subscriber::new(durable, Phase::Live));
        }
        for (conn, request) in prompt.waiters {
            self.owe(id, conn, turn, request);
        }
        let (by, frame) = (prompt.by, RawJson::trusted(prompt.frame.bytes().clone()));
        self.append(
            id,
            EventBody::Prompted(TurnStarted { turn, by, prompt: prompt.number, frame }),
        );
        let our_id = our_id.to_string();
        let splice = Splice { id: Some(&our_id), session_id: Some(&theirs), request_id: None };
        let text = self.worded(id, turn, &prompt.frame).spliced(splice).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
        self.note(Note::TurnStarted { session: id.clone(), turn });
    }

    /// The turn is over. Its client is answered when the event reaches it.
    pub(crate) fn end_turn(&mut self, id: &SessionId, number: u64, outcome: TurnOutcome) {
        let alone = self.has_own_process(id);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(mut turn) = session.turn.take_if(|it| it.number == number) else {
            return; // It ended otherwise before the agent answered.
        };
        session.calls.clear();
        let agent = session.agent.filter(|_| turn.cancelled != 0);
        if let Some(agent) = agent.filter(|_| alone) {
            // Many agents forget a tool that they are told to stop. Whose a tool is that runs in a
            // process with several sessions, nobody can tell.
            let age_ms = self.cx.now.since(turn.began);
            self.cx.outputs.push_back(Output::EndTools { agent, age_ms });
        }
        let outcome = match (turn.overdue.take(), outcome) {
            (Some(why), _) => {
                TurnOutcome::Interrupted(RawJson::trusted(Fault::Interrupted { why }.to_json()))
            }
            (None, TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error))
                if turn.is_cancelled() && !self.cx.is_stopping =>
            {
                cancelled_with(&error)
            }
            (None, other) => other,
        };
        if matches!(outcome, TurnOutcome::Stopped(_)) {
            session.restarts.forgive();
            if let Some(agent) = session.agent {
                self.close_breaker(agent);
            }
        }
        self.void_asks(id, "the turn is over");
        let (how, reason) = (outcome.name(), outcome.stop_reason());
        self.append(id, EventBody::Ended(TurnEnded { turn: number, outcome }));
        self.note(Note::TurnEnded { session: id.clone(), turn: number, how, reason });
        self.pump(id);
    }

    /// Asks the running turn to stop, politely at first.
    pub(crate) fn stop_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.cancelled != 0 {
            return;
        }
        turn.cancelled = 1;
        let number = turn.number;
        let params =
            serde_json::json!({ "sessionId": &*session.summary().agent_session }).to_string();
        // One that refused the prompt and is asked for another session has nothing to stop.
        let has_it = session.is_bound();
        self.append(id, EventBody::Cancelled(TurnCancelled { turn: number, step: 1 }));
        if has_it {
            let text = Frame::notification(Method::SessionCancel.name(), &params).bytes().clone();
            self.after_log(id, Effect::ToAgent { agent, text });
        }
        self.void_asks(id, "the turn was cancelled");
        let at = self.cx.now.plus(limits::CANCEL_GRACE_MS);
        self.cx.timers.set(at, Timer::Cancel(id.clone(), number, 1));
    }

    /// The turn was silent for longer than it may be.
    pub(crate) fn stop_overdue(&mut self, id: &SessionId, why: String) {
        let turn = self.sessions.get_mut(id).and_then(|it| it.turn.as_mut());
        if let Some(turn) = turn.filter(|it| it.cancelled == 0) {
            turn.overdue = Some(why);
            self.stop_turn(id);
        }
    }

    /// The agent did not stop: ask harder, then end its process. The next prompt wakes a new one.
    pub(crate) fn on_cancel_deadline(&mut self, id: &SessionId, number: u64, step: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.number != number || turn.cancelled != step {
            return;
        }
        turn.cancelled = step + 1;
        let our_id = turn.our_id;
        self.append(id, EventBody::Cancelled(TurnCancelled { turn: number, step: step + 1 }));
        if step == 1 {
            let params = format!(r#"{{"requestId":{our_id}}}"#);
            let text = Frame::notification(Method::CancelRequest.name(), &params).bytes().clone();
            self.after_log(id, Effect::ToAgent { agent, text });
            let at = self.cx.now.plus(limits::CANCEL_GRACE_MS);
            if !is_planted("stop-after-first-cancel") {
                self.cx.timers.set(at, Timer::Cancel(id.clone(), number, 2));
            }
        } else {
            if let Some((agent, _)) = self.fall_asleep(id) {
                self.cut_off(agent, id);
            }
            let cancelled = RawJson::trusted(r#"{"stopReason":"cancelled"}"#);
            self.end_turn(id, number, TurnOutcome::Stopped(cancelled));
        }
    }

    /// The session sleeps, and lets go of its agent.
    pub(crate) fn release_agent(&mut self, id: &SessionId) {
        if let Some((agent, theirs)) = self.fall_asleep(id) {
            self.leave(agent, id, &theirs);
        }
    }

    /// The process that it had, and its name there.
    fn fall_asleep(&mut self, id: &SessionId) -> Option<(AgentId, AgentSessionId)> {
        let session = self.sessions.get_mut(id)?;
        let theirs = session.told_as();
        session.stage = Stage::Asleep;
        session.calls.clear();
        let agent = session.agent.take();
        self.is_unattended(id);
        agent.map(|agent| (agent, theirs))
    }

    /// Ends whatever a session does, for good reason.
    pub(crate) fn abandon(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.get(id) else { return };
        let turn = session.turn.as_ref().map(|it| it.number);
        if !is_planted("keep-agent-of-closed-session") {
            self.release_agent(id);
        }
        self.refuse_waiting(id, fault);
        self.withdraw_held(id, &fault.to_string());
        if let Some(turn) = turn {
            self.end_turn(id, turn, TurnOutcome::Interrupted(RawJson::trusted(fault.to_json())));
        }
        self.void_asks(id, "the session was ended");
    }

    /// After a restart: turns and asks whose agent died with the last daemon are over.
    pub(crate) fn settle_interrupted(&mut self) {
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.settle_here(&id);
            self.sessions.get_mut(&id).expect("listed above").count_queue(&self.cx.retained_bytes);
            self.is_unattended(&id);
        }
    }

    pub(super) fn settle_here(&mut self, id: &SessionId) {
        self.settle(id, "the daemon was restarted", "the daemon ended during the turn");
    }

    /// The log says that something is open, and no agent will ever end it.
    pub(super) fn settle(&mut self, id: &SessionId, asks_why: &str, turn_why: &str) {
        let state = &self.sessions[id].summary();
        let turn = state.open_turn.filter(|_| !is_planted("forget-interrupted-turn"));
        let asks: Vec<u64> = state.open_asks.iter().copied().collect();
        for ask in asks {
            self.remember_settled(id, ask, asks_why.into());
            self.append(id, super::ask::voided(ask, asks_why));
        }
        if let Some(turn) = turn {
            let fault = Fault::Interrupted { why: turn_why.into() };
            let outcome = TurnOutcome::Interrupted(RawJson::trusted(fault.to_json()));
            self.append(id, EventBody::Ended(TurnEnded { turn, outcome }));
        }
    }

    /// Requests to a sleeping session wake it and wait; to a waking one they wait.
    pub(crate) fn forward_in(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        frame: Frame,
    ) -> Result<(), Fault> {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        if let (Stage::Bound, Some(agent)) = (&session.stage, session.agent) {
            self.forward(agent, Some(id), conn, &frame);
            return Ok(());
        }
        if self.cx.config.limits.parked_max <= session.parked.len() {
            return Err(Fault::Overloaded { what: "too many requests wait for the agent".into() });
        }
        let charge = self.cx.retained_bytes.charge(&session.kept, frame.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        session.parked.push_back((conn, frame, charge));
        self.pump(id);
        Ok(())
    }
}

/// Who asked for a turn to stop got that, however the agent put it.
fn cancelled_with(error: &RawJson) -> TurnOutcome {
    let error = error.as_str();
    let meta = format!(r#"{{"jackfield":{{"error":{error}}}}}"#);
    TurnOutcome::Stopped(RawJson::trusted(format!(
        r#"{{"stopReason":"cancelled","_meta":{meta}}}"#
    )))
}
