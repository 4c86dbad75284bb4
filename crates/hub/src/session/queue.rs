//! The prompt queue: prompts that cannot run yet, in order. Each is logged before clients see it, and leaves the queue
//! with an event: it starts a turn or is withdrawn, exactly once.
//!
//! Prompts that an earlier daemon left are *held*: they are listed, and run when a client runs them.

use super::{Session, SessionStage};
use crate::{
    ConnId, SessionId, context::HubContext, message::HubMessage, parts::HubParts,
    peer::RequestRoute,
};
use jackfield_events::{
    EventBody, PromptQueued, PromptWithdrawn, QueuedPrompt, RawJson, RequestKey, SESSION_CANCELLED,
    WITHDRAWN_BY_PREFIX, WITHDRAWN_BY_SENDER, first_prompt_line,
};
use jackfield_protocol::{Fault, Frame, is_planted, rfc3339};
use serde_json::{Value, json};
use std::sync::Arc;

/// A prompt that waits for its turn.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The client that sent it.
    pub(crate) conn: ConnId,
    /// The clients that wait for the answer, with their request ids; none for a held prompt.
    pub(crate) waiters: Vec<(ConnId, Box<str>)>,
    pub(crate) by: Arc<str>,
    pub(crate) frame: Frame,
    /// Its number in the log, if it was queued.
    pub(crate) number: Option<u64>,
    /// It runs before prompts that do not steer.
    pub(super) steers: bool,
}

impl Prompt {
    /// A prompt that an earlier daemon left and that a client runs.
    pub(super) fn held(conn: ConnId, number: u64, queued: QueuedPrompt) -> Prompt {
        let QueuedPrompt { by, frame, .. } = queued;
        let frame = Frame::parse(frame.bytes().clone()).expect("it was a frame when it came");
        let number = Some(number);
        Prompt { conn, waiters: Vec::new(), by, frame, number, steers: false }
    }
}

impl Session {
    /// Whether a prompt would start a turn now.
    fn is_free(&self) -> bool {
        self.is_bound() && self.turn.is_none() && self.queue.is_empty()
    }

    /// Whether the prompt with this number will run, as opposed to being held.
    pub(super) fn is_queued(&self, number: u64) -> bool {
        self.queue.iter().any(|it| it.number == Some(number))
    }

    /// Prompts that an earlier daemon left, in order.
    pub(super) fn held(&self) -> impl Iterator<Item = (u64, &QueuedPrompt)> {
        self.summary().queue_in_order().filter(|(number, _)| !self.is_queued(*number))
    }

    /// A queued prompt that clients may see, because it is durable.
    pub(super) fn waiting(&self, number: u64) -> Option<&QueuedPrompt> {
        self.summary().queue.get(&number).filter(|it| it.seq <= self.log.durable().0)
    }
}

impl Session {
    fn append_queued_prompt(&mut self, cx: &mut HubContext, prompt: &Prompt) -> u64 {
        let number = self.summary().prompts + 1;
        let frame = RawJson::trusted(prompt.frame.bytes().clone());
        self.append_event(
            cx,
            EventBody::Queued(PromptQueued { prompt: number, by: prompt.by.clone(), frame }),
        );
        number
    }

    /// Withdraws all held prompts when the session ends.
    pub(super) fn withdraw_held_prompts(&mut self, cx: &mut HubContext, why: &str) {
        let held: Vec<u64> = self.held().map(|(number, _)| number).collect();
        for prompt in held {
            self.append_event(
                cx,
                EventBody::Withdrawn(PromptWithdrawn { prompt, why: why.into() }),
            );
        }
    }

    /// `session/prompt`. A prompt with a `key` that is known is not run again.
    pub(crate) fn on_prompt(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
        key: Option<RequestKey>,
    ) -> Result<(), Fault> {
        let forgets = is_planted("forget-prompt-key") && parts.cx.now.0.is_multiple_of(3);
        let known = key.filter(|_| !forgets).and_then(|it| self.find_keyed_prompt(&parts.cx, &it));
        if let Some(known) = known {
            self.join_keyed_prompt(parts, conn, id, &known);
            return Ok(());
        }
        parts.storage.require_working()?;
        if parts.cx.config.limits.queue_max <= self.summary().queue.len() {
            return Err(Fault::Overloaded { what: "too many prompts wait in this session".into() });
        }
        let (runs_now, has_turn) = (self.is_free(), self.turn.is_some());
        if !runs_now {
            let room = parts.cx.retained_bytes.check(&self.kept, frame.bytes().len());
            room.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        }
        let Some(it) = parts.clients.connections.get_mut(&conn) else {
            return Err(Fault::Stopping);
        };
        it.requests.insert(id.into(), RequestRoute::Turn(self.id.clone()));
        let (by, waiters) = (it.shown(conn), vec![(conn, id.into())]);
        let steers = has_turn && steers(frame);
        let mut prompt = Prompt { conn, waiters, by, frame: frame.clone(), number: None, steers };
        if !runs_now {
            prompt.number = Some(self.append_queued_prompt(&mut parts.cx, &prompt));
        }
        if steers {
            let behind = self.queue.iter().take_while(|it| it.steers).count();
            let behind = if is_planted("steer-behind-queue") { self.queue.len() } else { behind };
            self.queue.insert(behind, prompt);
            self.cancel_turn_at_agent(parts);
        } else {
            self.queue.push_back(prompt);
        }
        self.advance(parts);
        Ok(())
    }

    /// Withdraws a prompt: the log says why, then its clients are answered.
    fn withdraw_prompt(
        &mut self,
        parts: &mut HubParts,
        prompt: &Prompt,
        why: &str,
        answer: impl Fn(&str) -> Frame,
    ) {
        if let Some(number) = prompt.number {
            self.append_event(
                &mut parts.cx,
                EventBody::Withdrawn(PromptWithdrawn { prompt: number, why: why.into() }),
            );
        }
        for (conn, request) in &prompt.waiters {
            self.answer_after_log(parts, *conn, &answer(request));
        }
    }

    /// Cancels the session: queued prompts are withdrawn, and the turn is canceled.
    pub(crate) fn cancel_turn(&mut self, parts: &mut HubParts) {
        let cancelled = r#"{"stopReason":"cancelled"}"#;
        for prompt in std::mem::take(&mut self.queue) {
            self.withdraw_prompt(parts, &prompt, SESSION_CANCELLED, |it| {
                Frame::result_for(it, cancelled)
            });
        }
        self.cancel_turn_at_agent(parts);
    }

    /// Cancels a prompt of a client: removes it from the queue, or cancels it at the agent.
    pub(crate) fn cancel_own_prompt(&mut self, parts: &mut HubParts, conn: ConnId, request: &str) {
        let waits = |it: &(ConnId, Box<str>)| it.0 == conn && &*it.1 == request;
        let is_it = |it: &Prompt| it.waiters.iter().any(waits);
        if let Some(at) = self.queue.iter().position(is_it) {
            let prompt = self.queue.remove(at).expect("found above");
            return self.withdraw_prompt(parts, &prompt, WITHDRAWN_BY_SENDER, |it| {
                Frame::error_for(it, &Fault::Cancelled)
            });
        }
        if self.runs_for(conn, request) {
            self.cancel_turn_at_agent(parts);
        }
    }

    /// Refuses all requests that wait for an agent that cannot be started. Prompts that are queued when the daemon stops
    /// stay in the log; the next daemon holds them.
    pub(crate) fn refuse_waiting(&mut self, parts: &mut HubParts, fault: &Fault) {
        let queue = std::mem::take(&mut self.queue);
        let parked = std::mem::take(&mut self.parked);
        for prompt in queue {
            if *fault != Fault::Stopping {
                let why = fault.to_string();
                self.withdraw_prompt(parts, &prompt, &why, |it| Frame::error_for(it, fault));
                continue;
            }
            for (conn, request) in &prompt.waiters {
                self.answer_after_log(parts, *conn, &Frame::error_for(request, fault));
            }
        }
        for (conn, frame, _) in parked {
            let request = frame.id().expect("parked requests have ids");
            self.answer_after_log(parts, conn, &Frame::error_for(request, fault));
        }
    }

    /// `_jackfield/queue`: the queued prompts in order, then the held ones.
    pub(crate) fn list_queue(&self, parts: &mut HubParts, conn: ConnId, id: &str) {
        let row = |number: u64, held: bool, steers: bool| {
            let it = self.waiting(number)?;
            let (by, since) = (&*it.by, rfc3339(it.at));
            let text = first_prompt_line(&it.frame);
            Some(json!({
                "prompt": number, "by": by, "text": text, "since": since, "held": held, "steers": steers,
            }))
        };
        let queued = self.queue.iter().filter_map(|it| row(it.number?, false, it.steers));
        let held = self.held().filter_map(|(number, _)| row(number, true, false));
        let rows: Vec<Value> = queued.chain(held).collect();
        parts.clients.answer_request(
            &mut parts.cx,
            conn,
            id,
            Ok(&json!({ "prompts": rows }).to_string()),
        );
    }

    /// `_jackfield/withdraw`: removes a prompt of any client from the queue.
    pub(crate) fn withdraw_queued_prompt(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let Some(number) = number_in(frame) else {
            return Err(Fault::InvalidParams { why: "`prompt` must be a number".into() });
        };
        let why = format!("{WITHDRAWN_BY_PREFIX}{}", parts.clients.describe_client(conn));
        if self.waiting(number).is_none() {
            return Err(not_waiting(&self.id, number));
        }
        let at = self.queue.iter().position(|it| it.number == Some(number));
        if let Some(prompt) = at.and_then(|it| self.queue.remove(it)) {
            let answer = |it: &str| Frame::error_for(it, &Fault::Cancelled);
            self.withdraw_prompt(parts, &prompt, &why, answer);
        } else {
            self.append_event(
                &mut parts.cx,
                EventBody::Withdrawn(PromptWithdrawn { prompt: number, why: why.into() }),
            );
        }
        self.answer_after_log(parts, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }

    /// `_jackfield/release`: runs one or all held prompts. The client that requests it is their driver, and gets no
    /// answer to them.
    pub(crate) fn run_held_prompts(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let wanted = number_in(frame);
        let held = self.held().filter(|(number, _)| wanted.is_none_or(|it| it == *number));
        let held: Vec<(u64, QueuedPrompt)> =
            held.map(|(number, it)| (number, it.clone())).collect();
        if let (Some(number), true) = (wanted, held.is_empty()) {
            return Err(not_waiting(&self.id, number));
        }
        let numbers: Vec<u64> = held.iter().map(|(number, _)| *number).collect();
        for (number, queued) in held {
            self.queue.push_back(Prompt::held(conn, number, queued));
        }
        let result = json!({ "released": numbers }).to_string();
        self.answer_after_log(parts, conn, &Frame::result_for(id, &result));
        self.advance(parts);
        Ok(())
    }

    /// Does what is possible next for a session: restore it, serve waiting requests, start a turn.
    pub(crate) fn advance(&mut self, parts: &mut HubParts) {
        if self.release.is_some() && !is_planted("start-turn-in-released-session") {
            return self.continue_release(parts);
        }
        match (&self.stage, self.agent) {
            (SessionStage::Asleep, _) => {
                if !self.queue.is_empty() || !self.parked.is_empty() {
                    parts.cx.post(HubMessage::FindAgent(self.id.clone()));
                }
            }
            (SessionStage::Bound, Some(agent)) => {
                while let Some((conn, frame, _)) = self.parked.pop_front() {
                    self.send_client_request(parts, agent, conn, &frame);
                }
                self.start_turn(parts, agent);
            }
            (
                SessionStage::Bound
                | SessionStage::Opening(_)
                | SessionStage::Importing(_)
                | SessionStage::Restoring(_),
                _,
            ) => {}
        }
    }
}

fn number_in(frame: &Frame) -> Option<u64> {
    let params: Value = serde_json::from_str(frame.params()?).ok()?;
    params.get("prompt")?.as_u64()
}

/// Whether a prompt cancels the running turn.
fn steers(frame: &Frame) -> bool {
    let params = frame.params().filter(|it| it.contains("\"steer\""));
    let params: Option<Value> = params.and_then(|it| serde_json::from_str(it).ok());
    params.is_some_and(|it| it.pointer("/_meta/jackfield/steer") == Some(&Value::Bool(true)))
}

pub(super) fn not_waiting(id: &SessionId, number: u64) -> Fault {
    Fault::PromptNotWaiting { session: id.to_string(), prompt: number.to_string() }
}
