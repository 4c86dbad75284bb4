//! Turns: one at a time, in the order asked, each with exactly one outcome in the log.

use super::Stage;
use crate::{
    AgentId, ConnId, Hub, Note, Output, SessionId, Time,
    agent::Waiting,
    fanout::{Phase, Subscriber},
    limits,
    log::{Body, Effect, Json, Outcome},
    peer::Route,
    timer::Timer,
};
use jackfield_wire::{Fault, Frame, Splice};
use std::collections::BTreeSet;

/// A prompt that waits for its turn.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) conn: ConnId,
    pub(crate) request: Box<str>,
    frame: Frame,
}

/// The turn that runs.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// The client whose prompt it is; it may have left.
    pub(crate) driver: ConnId,
    /// The agent has the prompt under this id.
    our_id: u64,
    /// How hard it was asked to stop; 0 is not at all.
    cancelled: u64,
    began: Time,
    /// Tool calls that somebody was asked about.
    pub(super) asked: BTreeSet<Box<str>>,
    /// The agent did something in it without asking that a rule wants asked.
    pub(super) unasked: bool,
}

impl Hub {
    pub(crate) fn on_prompt(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session_id = self.session_of(frame)?;
        let session = self.sessions.get_mut(&session_id).expect("named by session_of");
        if self.config.limits.queue_max <= session.queue.len() {
            return Err(Fault::Overloaded { what: "too many prompts wait in this session".into() });
        }
        session.queue.push_back(Prompt { conn, request: id.into(), frame: frame.clone() });
        if let Some(it) = self.conns.get_mut(&conn) {
            it.requests.insert(id.into(), Route::Turn(session_id.clone()));
        }
        self.pump(&session_id);
        Ok(())
    }

    /// Does what can be done next for a session: wake its agent, serve what is parked, start a turn.
    pub(crate) fn pump(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match (&session.stage, session.agent) {
            (Stage::Asleep, _) => {
                if !session.queue.is_empty() || !session.parked.is_empty() {
                    self.wake(id);
                }
            }
            (Stage::Bound, Some(agent)) => {
                while let Some((conn, frame)) =
                    self.sessions.get_mut(id).and_then(|it| it.parked.pop_front())
                {
                    self.forward(agent, Some(id), conn, &frame);
                }
                self.start_turn(id, agent);
            }
            (Stage::Bound | Stage::Opening(_) | Stage::Importing(_) | Stage::Waking(_), _) => {}
        }
    }

    fn start_turn(&mut self, id: &SessionId, agent: AgentId) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        if session.turn.is_some() {
            return;
        }
        let Some(prompt) = session.queue.pop_front() else { return };
        let number = session.state.turns + 1;
        let theirs = session.state.agent_session.clone();
        let durable = session.gate.durable();
        let waiting = Waiting::Prompt(id.clone(), number);
        let our_id = self.agents.get_mut(&agent).expect("bound to it").expect(waiting);
        let (driver, began) = (prompt.conn, self.now);
        session.turn = Some(Turn {
            number,
            driver,
            our_id,
            cancelled: 0,
            began,
            asked: BTreeSet::new(),
            unasked: false,
        });
        if !session.subscribers.contains_key(&prompt.conn) {
            self.subscribe(id, prompt.conn, Subscriber::new(durable, Phase::Live));
        }
        let subscriber =
            self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&prompt.conn));
        if let Some(subscriber) = subscriber {
            subscriber.owed.insert(number, prompt.request);
        }
        let by =
            self.conns.get(&prompt.conn).map_or_else(|| "gone".into(), |it| it.shown(prompt.conn));
        let frame = Json::trusted(prompt.frame.bytes().clone());
        self.append(id, Body::Prompted { turn: number, by, prompt: None, frame });
        let our_id = our_id.to_string();
        let splice = Splice { id: Some(&our_id), session_id: Some(&theirs), request_id: None };
        let text = prompt.frame.spliced(splice).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
        self.note(Note::TurnStarted { session: id.clone(), turn: number });
    }

    /// The turn is over. Its client is answered when the event reaches it.
    pub(crate) fn end_turn(&mut self, id: &SessionId, number: u64, outcome: Outcome) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.take_if(|it| it.number == number) else {
            return; // It ended otherwise before the agent answered.
        };
        session.calls.clear();
        if let Some(agent) = session.agent.filter(|_| turn.cancelled != 0) {
            // Many agents forget a tool that they are told to stop.
            let age_ms = self.now.since(turn.began);
            self.outputs.push_back(Output::EndTools { agent, age_ms });
        }
        if matches!(outcome, Outcome::Stopped(_)) {
            session.restarts.forgive();
        }
        self.void_asks(id, "the turn is over");
        let (how, reason) = (outcome.name(), outcome.stop_reason());
        self.append(id, Body::Ended { turn: number, outcome });
        self.note(Note::TurnEnded { session: id.clone(), turn: number, how, reason });
        self.pump(id);
    }

    /// Someone wants the turn to stop: it, and every prompt behind it.
    pub(crate) fn cancel_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let cancelled = r#"{"stopReason":"cancelled"}"#;
        for prompt in std::mem::take(&mut session.queue) {
            self.answer_in(id, prompt.conn, &Frame::result_for(&prompt.request, cancelled));
        }
        self.stop_turn(id);
    }

    /// Asks the running turn to stop, politely at first.
    fn stop_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.cancelled != 0 {
            return;
        }
        turn.cancelled = 1;
        let number = turn.number;
        let params = serde_json::json!({ "sessionId": &*session.state.agent_session }).to_string();
        self.append(id, Body::Cancelled { turn: number, rung: 1 });
        let text = Frame::notification("session/cancel", &params).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
        self.void_asks(id, "the turn was cancelled");
        let at = self.now.plus(limits::CANCEL_GRACE_MS);
        self.timers.set(at, Timer::Cancel(id.clone(), number, 1));
    }

    /// The agent did not stop: ask harder, then end its process. The next prompt wakes a new one.
    pub(crate) fn on_cancel_deadline(&mut self, id: &SessionId, number: u64, rung: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (Some(turn), Some(agent)) = (&mut session.turn, session.agent) else { return };
        if turn.number != number || turn.cancelled != rung {
            return;
        }
        turn.cancelled = rung + 1;
        let our_id = turn.our_id;
        self.append(id, Body::Cancelled { turn: number, rung: rung + 1 });
        if rung == 1 {
            let params = format!(r#"{{"requestId":{our_id}}}"#);
            let text = Frame::notification("$/cancel_request", &params).bytes().clone();
            self.after_log(id, Effect::ToAgent { agent, text });
            let at = self.now.plus(limits::CANCEL_GRACE_MS);
            self.timers.set(at, Timer::Cancel(id.clone(), number, 2));
        } else {
            self.release_agent(id);
            let cancelled = Json::trusted(r#"{"stopReason":"cancelled"}"#);
            self.end_turn(id, number, Outcome::Stopped(cancelled));
        }
    }

    /// A client withdraws a prompt: out of the queue, or off the agent.
    pub(crate) fn withdraw_prompt(&mut self, id: &SessionId, conn: ConnId, request: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let queued = |it: &Prompt| it.conn == conn && &*it.request == request;
        if session.queue.iter().any(queued) {
            session.queue.retain(|it| !queued(it));
            return self.answer_in(id, conn, &Frame::error_for(request, &Fault::Cancelled));
        }
        let running = session.subscribers.get(&conn).and_then(|it| {
            it.owed.iter().find(|(_, owed)| &***owed == request).map(|(&turn, _)| turn)
        });
        if running.is_some() && session.turn.as_ref().map(|it| it.number) == running {
            self.stop_turn(id);
        }
    }

    /// Lets go of the session's agent: its process ends, the session sleeps.
    pub(crate) fn release_agent(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stage = Stage::Asleep;
        session.calls.clear();
        if let Some(agent) = session.agent.take() {
            self.stop_agent(agent);
        }
    }

    /// Ends whatever a session does, for good reason.
    pub(crate) fn abandon(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.get(id) else { return };
        let turn = session.turn.as_ref().map(|it| it.number);
        self.release_agent(id);
        self.refuse_waiting(id, fault);
        if let Some(turn) = turn {
            self.end_turn(id, turn, Outcome::Interrupted(Json::trusted(fault.to_json())));
        }
        self.void_asks(id, "the session was ended");
    }

    /// After a restart: turns and asks whose agent died with the last daemon are over.
    pub(crate) fn settle_interrupted(&mut self) {
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            let fault = Fault::Interrupted { why: "the daemon ended during the turn".into() };
            self.settle(&id, "the daemon was restarted", &fault);
        }
    }

    /// Ends what the log has open and nobody serves any more.
    pub(super) fn settle(&mut self, id: &SessionId, why: &str, fault: &Fault) {
        let state = &self.sessions[id].state;
        let turn = state.open_turn;
        let asks: Vec<u64> = state.open_asks.iter().copied().collect();
        for ask in asks {
            self.remember_settled(id, ask, why.into());
            self.append(id, super::ask::voided(ask, why));
        }
        if let Some(turn) = turn {
            let outcome = Outcome::Interrupted(Json::trusted(fault.to_json()));
            self.append(id, Body::Ended { turn, outcome });
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
        if self.config.limits.parked_max <= session.parked.len() {
            return Err(Fault::Overloaded { what: "too many requests wait for the agent".into() });
        }
        session.parked.push_back((conn, frame));
        self.pump(id);
        Ok(())
    }

    /// Everyone who waits for an agent that cannot be had is told why.
    pub(crate) fn refuse_waiting(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let queue = std::mem::take(&mut session.queue);
        let parked = std::mem::take(&mut session.parked);
        for prompt in queue {
            self.answer_in(id, prompt.conn, &Frame::error_for(&prompt.request, fault));
        }
        for (conn, frame) in parked {
            let request = frame.id().expect("parked requests have ids");
            self.answer_in(id, conn, &Frame::error_for(request, fault));
        }
    }
}
