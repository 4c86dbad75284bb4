//! Turns: one at a time, in the order of the prompts, each with exactly one outcome in the log.

use super::{Session, SessionStage};
use crate::{
    AgentId, ConnId, Note, Output, Time,
    agent::PendingRequest,
    context::HubContext,
    fanout::{EventSubscriber, Phase},
    limits,
    log::Effect,
    message::HubMessage,
    parts::HubParts,
    timer::HubTimer,
};
use jackfield_events::{
    AgentSessionId, EventBody, INTERRUPTED_LATER_SUFFIX, RawJson, TurnCancelled, TurnEnded,
    TurnOutcome, TurnStarted,
};
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};
use std::collections::BTreeSet;

/// The running turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// The client whose prompt it is. It may have disconnected.
    pub(crate) driver: ConnId,
    /// The request id of the prompt at the agent.
    pub(super) hub_id: u64,
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
    failure: Option<Fault>,
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
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }
}

impl Session {
    /// The session has no agent any more. Returns the process that it had, and its session id there.
    pub(super) fn mark_suspended(
        &mut self,
        cx: &mut HubContext,
    ) -> Option<(AgentId, AgentSessionId)> {
        let agent_session_id = self.known_agent_session_id();
        self.stage = SessionStage::Asleep;
        self.calls.clear();
        let agent = self.agent.take();
        cx.schedule_unattended_check(&self.id);
        agent.map(|agent| (agent, agent_session_id))
    }

    /// After a restart: ends the turn and the requests whose agent ended with the last daemon.
    pub(crate) fn end_turn_of_last_daemon(&mut self, cx: &mut HubContext) {
        let why = format!("the daemon ended{INTERRUPTED_LATER_SUFFIX}");
        self.end_open_work(cx, "the daemon was restarted", &why);
    }

    /// Ends what is open in the log, because no agent will end it.
    pub(crate) fn end_open_work(&mut self, cx: &mut HubContext, asks_why: &str, turn_why: &str) {
        let state = self.summary();
        let turn = state.open_turn.filter(|_| !is_planted("forget-interrupted-turn"));
        let asks: Vec<u64> = state.open_asks.iter().copied().collect();
        for ask in asks {
            self.remember_closed_request(cx, ask, asks_why.into());
            self.append_event(cx, super::ask::voided(ask, asks_why));
        }
        if let Some(turn) = turn {
            let fault = Fault::Interrupted { why: turn_why.into() };
            let outcome = TurnOutcome::Interrupted(RawJson::trusted(fault.to_json()));
            self.append_event(cx, EventBody::Ended(TurnEnded { turn, outcome }));
        }
    }

    pub(super) fn start_turn(&mut self, parts: &mut HubParts, agent: AgentId) {
        if self.turn.is_some() {
            return;
        }
        let Some(process) = parts.agents.processes.get_mut(&agent) else { return };
        let Some(prompt) = self.queue.pop_front() else { return };
        let turn = self.summary().turns + 1;
        let durable = self.log.durable();
        let hub_id = process.expect(PendingRequest::Prompt(self.id.clone(), turn));
        let (driver, began) = (prompt.conn, parts.cx.now);
        self.turn = Some(Turn {
            number: turn,
            driver,
            hub_id,
            cancelled: 0,
            began,
            asked: BTreeSet::new(),
            approved: BTreeSet::new(),
            unasked: false,
            failure: None,
        });
        self.mark_agent_used(parts, true);
        if !self.subscribers.contains_key(&driver) {
            self.subscribe(parts, driver, EventSubscriber::new(durable, Phase::Live));
        }
        for (conn, request) in prompt.waiters {
            self.answer_after_turn(parts, conn, turn, request);
        }
        let (by, frame) = (prompt.by, RawJson::trusted(prompt.frame.bytes().clone()));
        self.append_event(
            &mut parts.cx,
            EventBody::Prompted(TurnStarted { turn, by, prompt: prompt.number, frame }),
        );
        self.send_prompt(parts, agent, turn, hub_id, &prompt.frame);
        parts.cx.note(Note::TurnStarted { session: self.id.clone(), turn });
    }

    /// Ends the turn. Its client is answered when the event is delivered to it.
    pub(crate) fn end_turn(&mut self, parts: &mut HubParts, number: u64, outcome: TurnOutcome) {
        let alone = self.has_own_process(parts);
        let Some(mut turn) = self.turn.take_if(|it| it.number == number) else {
            return; // It ended otherwise before the agent answered.
        };
        self.calls.clear();
        let agent = self.agent.filter(|_| turn.cancelled != 0);
        if let Some(agent) = agent.filter(|_| alone) {
            // Many agents leave the processes of canceled tools running. In a process with several sessions it is
            // unknown which session a tool belongs to.
            let age_ms = parts.cx.now.since(turn.began);
            parts.cx.outputs.push_back(Output::EndTools { agent, age_ms });
        }
        let outcome = match (turn.failure.take(), outcome) {
            (Some(fault), _) => TurnOutcome::Interrupted(RawJson::trusted(fault.to_json())),
            (None, TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error))
                if turn.is_cancelled() && !parts.cx.is_stopping =>
            {
                cancelled_with(&error)
            }
            (None, other) => other,
        };
        if matches!(outcome, TurnOutcome::Stopped(_)) {
            self.restarts.forgive();
            if let Some(agent) = self.agent {
                parts.agents.close_breaker(agent);
            }
        }
        self.close_user_requests(parts, "the turn is over");
        let (how, reason) = (outcome.name(), outcome.stop_reason());
        self.append_event(&mut parts.cx, EventBody::Ended(TurnEnded { turn: number, outcome }));
        parts.cx.note(Note::TurnEnded { session: self.id.clone(), turn: number, how, reason });
        self.advance(parts);
    }

    /// Cancels the running turn, first with `session/cancel`.
    pub(crate) fn cancel_turn_at_agent(&mut self, parts: &mut HubParts) {
        let (Some(turn), Some(agent)) = (&mut self.turn, self.agent) else { return };
        if turn.cancelled != 0 {
            return;
        }
        turn.cancelled = 1;
        let number = turn.number;
        let params = serde_json::json!({ "sessionId": &*self.summary().agent_session }).to_string();
        // An agent that refused the prompt and is asked for another session has nothing to cancel.
        let has_it = self.is_bound();
        self.append_event(
            &mut parts.cx,
            EventBody::Cancelled(TurnCancelled { turn: number, step: 1 }),
        );
        if has_it {
            let text = Frame::notification(Method::SessionCancel.name(), &params).bytes().clone();
            self.run_after_log(parts, Effect::ToAgent { agent, text });
        }
        self.close_user_requests(parts, "the turn was cancelled");
        let at = parts.cx.now.plus(limits::CANCEL_GRACE_MS);
        parts.cx.timers.set(at, HubTimer::Cancel(self.id.clone(), number, 1));
    }

    /// Cancels the running turn and gives it this outcome.
    pub(crate) fn fail_turn(&mut self, parts: &mut HubParts, fault: Fault) {
        if let Some(turn) = self.turn.as_mut().filter(|it| it.cancelled == 0) {
            turn.failure = Some(fault);
            self.cancel_turn_at_agent(parts);
        }
    }

    /// The agent did not stop: sends `session/cancel` again, then ends its process.
    pub(crate) fn on_cancel_deadline(&mut self, parts: &mut HubParts, number: u64, step: u64) {
        let (Some(turn), Some(agent)) = (&mut self.turn, self.agent) else { return };
        if turn.number != number || turn.cancelled != step {
            return;
        }
        turn.cancelled = step + 1;
        let hub_id = turn.hub_id;
        self.append_event(
            &mut parts.cx,
            EventBody::Cancelled(TurnCancelled { turn: number, step: step + 1 }),
        );
        if step == 1 {
            let params = format!(r#"{{"requestId":{hub_id}}}"#);
            let text = Frame::notification(Method::CancelRequest.name(), &params).bytes().clone();
            self.run_after_log(parts, Effect::ToAgent { agent, text });
            let at = parts.cx.now.plus(limits::CANCEL_GRACE_MS);
            if !is_planted("stop-after-first-cancel") {
                parts.cx.timers.set(at, HubTimer::Cancel(self.id.clone(), number, 2));
            }
        } else {
            if let Some((agent, _)) = self.mark_suspended(&mut parts.cx) {
                parts.agents.kill_agent(&mut parts.cx, agent);
                let culprit = self.id.clone();
                parts.cx.post(HubMessage::InterruptSessions { agent, culprit });
            }
            let cancelled = RawJson::trusted(r#"{"stopReason":"cancelled"}"#);
            self.end_turn(parts, number, TurnOutcome::Stopped(cancelled));
        }
    }

    /// Interrupts everything that a session does.
    pub(crate) fn interrupt(&mut self, parts: &mut HubParts, fault: &Fault) {
        let turn = self.turn.as_ref().map(|it| it.number);
        if !is_planted("keep-agent-of-closed-session") {
            self.release_agent(parts);
        }
        self.refuse_waiting(parts, fault);
        self.withdraw_held_prompts(&mut parts.cx, &fault.to_string());
        if let Some(turn) = turn {
            self.end_turn(parts, turn, TurnOutcome::Interrupted(RawJson::trusted(fault.to_json())));
        }
        self.close_user_requests(parts, "the session was ended");
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
