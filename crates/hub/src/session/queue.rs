//! The prompt queue: prompts that cannot run yet, in order. Each is logged before clients see it, and leaves the queue
//! with an event: it starts a turn or is withdrawn, exactly once.
//!
//! Prompts that an earlier daemon left are *held*: they are listed, and run when a client runs them.

use super::{Session, SessionStage, list::rfc3339};
use crate::{ConnId, Hub, SessionId, context::HubContext, peer::RequestRoute, session::Sessions};
use jackfield_events::{
    EventBody, PromptQueued, PromptWithdrawn, QueuedPrompt, RawJson, RequestKey, SESSION_CANCELLED,
    first_prompt_line,
};
use jackfield_protocol::{Fault, Frame, is_planted};
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

    /// Prompts that an earlier daemon left, by number.
    fn held(&self) -> impl Iterator<Item = (u64, &QueuedPrompt)> {
        let all = self.summary().queue.iter().map(|(&number, it)| (number, it));
        all.filter(|(number, _)| !self.is_queued(*number))
    }

    /// A queued prompt that clients may see, because it is durable.
    fn waiting(&self, number: u64) -> Option<&QueuedPrompt> {
        self.summary().queue.get(&number).filter(|it| it.seq <= self.log.durable().0)
    }
}

impl Sessions {
    fn append_queued_prompt(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        prompt: &Prompt,
    ) -> u64 {
        let number = self.by_id[id].summary().prompts + 1;
        let frame = RawJson::trusted(prompt.frame.bytes().clone());
        self.append_event(
            cx,
            id,
            EventBody::Queued(PromptQueued { prompt: number, by: prompt.by.clone(), frame }),
        );
        number
    }

    /// Takes the prompt that runs next.
    pub(super) fn take_next_prompt(&mut self, id: &SessionId) -> Option<Prompt> {
        self.by_id.get_mut(id)?.queue.pop_front()
    }

    /// Withdraws all held prompts when the session ends.
    pub(super) fn withdraw_held_prompts(&mut self, cx: &mut HubContext, id: &SessionId, why: &str) {
        let held: Vec<u64> = self.by_id[id].held().map(|(number, _)| number).collect();
        for prompt in held {
            self.append_event(
                cx,
                id,
                EventBody::Withdrawn(PromptWithdrawn { prompt, why: why.into() }),
            );
        }
    }
}

impl Hub {
    pub(crate) fn on_prompt(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session_id = self.sessions.find_session(frame)?;
        let key = RequestKey::from_frame(frame).map_err(|why| Fault::InvalidParams { why })?;
        if let Some(key) = &key {
            self.sessions.check_key(&self.parts.cx, &session_id, key)?;
        }
        let forgets = is_planted("forget-prompt-key") && self.parts.cx.now.0.is_multiple_of(3);
        if let Some(known) = key
            .filter(|_| !forgets)
            .and_then(|it| self.sessions.find_keyed_prompt(&self.parts.cx, &session_id, &it))
        {
            self.prompt_known(&session_id, conn, id, &known);
            return Ok(());
        }
        self.parts.storage.require_working()?;
        let session = &self.sessions.by_id[&session_id];
        if self.parts.cx.config.limits.queue_max <= session.summary().queue.len() {
            return Err(Fault::Overloaded { what: "too many prompts wait in this session".into() });
        }
        let (free, runs) = (session.is_free(), session.turn.is_some());
        if !free {
            let room = self.parts.cx.retained_bytes.check(&session.kept, frame.bytes().len());
            room.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        }
        let Some(it) = self.parts.clients.connections.get_mut(&conn) else {
            return Err(Fault::Stopping);
        };
        it.requests.insert(id.into(), RequestRoute::Turn(session_id.clone()));
        let (by, waiters) = (it.shown(conn), vec![(conn, id.into())]);
        let steers = runs && steers(frame);
        let mut prompt = Prompt { conn, waiters, by, frame: frame.clone(), number: None, steers };
        if !free {
            prompt.number =
                Some(self.sessions.append_queued_prompt(&mut self.parts.cx, &session_id, &prompt));
        }
        let queue =
            &mut self.sessions.by_id.get_mut(&session_id).expect("named by session_of").queue;
        if steers {
            let behind = queue.iter().take_while(|it| it.steers).count();
            let behind = if is_planted("steer-behind-queue") { queue.len() } else { behind };
            queue.insert(behind, prompt);
            self.stop_turn(&session_id);
        } else {
            queue.push_back(prompt);
        }
        self.pump(&session_id);
        Ok(())
    }

    /// Withdraws a prompt: the log says why, then its clients are answered.
    fn withdraw(
        &mut self,
        id: &SessionId,
        prompt: &Prompt,
        why: &str,
        answer: impl Fn(&str) -> Frame,
    ) {
        if let Some(number) = prompt.number {
            self.sessions.append_event(
                &mut self.parts.cx,
                id,
                EventBody::Withdrawn(PromptWithdrawn { prompt: number, why: why.into() }),
            );
        }
        for (conn, request) in &prompt.waiters {
            self.answer_in(id, *conn, &answer(request));
        }
    }

    /// Cancels the session: queued prompts are withdrawn, and the turn is canceled.
    pub(crate) fn cancel_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let cancelled = r#"{"stopReason":"cancelled"}"#;
        for prompt in std::mem::take(&mut session.queue) {
            self.withdraw(id, &prompt, SESSION_CANCELLED, |it| Frame::result_for(it, cancelled));
        }
        self.stop_turn(id);
    }

    /// Cancels a prompt of a client: removes it from the queue, or cancels it at the agent.
    pub(crate) fn withdraw_own(&mut self, id: &SessionId, conn: ConnId, request: &str) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let waits = |it: &(ConnId, Box<str>)| it.0 == conn && &*it.1 == request;
        let is_it = |it: &Prompt| it.waiters.iter().any(waits);
        if let Some(at) = session.queue.iter().position(is_it) {
            let prompt = session.queue.remove(at).expect("found above");
            let why = "its client withdrew it";
            return self.withdraw(id, &prompt, why, |it| Frame::error_for(it, &Fault::Cancelled));
        }
        if session.runs_for(conn, request) {
            self.stop_turn(id);
        }
    }

    /// Refuses all requests that wait for an agent that cannot be started. Prompts that are queued when the daemon stops
    /// stay in the log; the next daemon holds them.
    pub(crate) fn refuse_waiting(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let queue = std::mem::take(&mut session.queue);
        let parked = std::mem::take(&mut session.parked);
        for prompt in queue {
            if *fault != Fault::Stopping {
                let why = fault.to_string();
                self.withdraw(id, &prompt, &why, |it| Frame::error_for(it, fault));
                continue;
            }
            for (conn, request) in &prompt.waiters {
                self.answer_in(id, *conn, &Frame::error_for(request, fault));
            }
        }
        for (conn, frame, _) in parked {
            let request = frame.id().expect("parked requests have ids");
            self.answer_in(id, conn, &Frame::error_for(request, fault));
        }
    }

    /// `_jackfield/queue`: the queued prompts in order, then the held ones.
    pub(crate) fn on_queue(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session_id = self.sessions.find_session(frame)?;
        let session = &self.sessions.by_id[&session_id];
        let row = |number: u64, held: bool| {
            let it = session.waiting(number)?;
            let (by, since) = (&*it.by, rfc3339(it.at));
            let text = first_prompt_line(&it.frame);
            Some(json!({ "prompt": number, "by": by, "text": text, "since": since, "held": held }))
        };
        let queued = session.queue.iter().filter_map(|it| row(it.number?, false));
        let held = session.held().filter_map(|(number, _)| row(number, true));
        let rows: Vec<Value> = queued.chain(held).collect();
        self.parts.clients.answer_request(
            &mut self.parts.cx,
            conn,
            id,
            Ok(&json!({ "prompts": rows }).to_string()),
        );
        Ok(())
    }

    /// `_jackfield/withdraw`: removes a prompt of any client from the queue.
    pub(crate) fn on_withdraw(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session_id = self.sessions.find_session(frame)?;
        let Some(number) = number_in(frame) else {
            return Err(Fault::InvalidParams { why: "`prompt` must be a number".into() });
        };
        let by = self
            .parts
            .clients
            .connections
            .get(&conn)
            .map_or_else(|| "gone".into(), |it| it.shown(conn));
        let why = format!("withdrawn by {by}");
        let session = self.sessions.by_id.get_mut(&session_id).expect("named by session_of");
        if session.waiting(number).is_none() {
            return Err(not_waiting(&session_id, number));
        }
        let at = session.queue.iter().position(|it| it.number == Some(number));
        if let Some(prompt) = at.and_then(|it| session.queue.remove(it)) {
            let answer = |it: &str| Frame::error_for(it, &Fault::Cancelled);
            self.withdraw(&session_id, &prompt, &why, answer);
        } else {
            self.sessions.append_event(
                &mut self.parts.cx,
                &session_id,
                EventBody::Withdrawn(PromptWithdrawn { prompt: number, why: why.into() }),
            );
        }
        self.answer_in(&session_id, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }

    /// `_jackfield/release`: runs one or all held prompts. The client that requests it is their driver, and gets no
    /// answer to them.
    pub(crate) fn on_release(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session_id = self.sessions.find_session(frame)?;
        let session = &self.sessions.by_id[&session_id];
        let wanted = number_in(frame);
        let held = session.held().filter(|(number, _)| wanted.is_none_or(|it| it == *number));
        let held: Vec<(u64, QueuedPrompt)> =
            held.map(|(number, it)| (number, it.clone())).collect();
        if let (Some(number), true) = (wanted, held.is_empty()) {
            return Err(not_waiting(&session_id, number));
        }
        let numbers: Vec<u64> = held.iter().map(|(number, _)| *number).collect();
        let session = self.sessions.by_id.get_mut(&session_id).expect("named by session_of");
        for (number, queued) in held {
            session.queue.push_back(Prompt::held(conn, number, queued));
        }
        let result = json!({ "released": numbers }).to_string();
        self.answer_in(&session_id, conn, &Frame::result_for(id, &result));
        self.pump(&session_id);
        Ok(())
    }

    /// Does what is possible next for a session: restore it, serve waiting requests, start a turn.
    pub(crate) fn pump(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        if session.release.is_some() && !is_planted("start-turn-in-released-session") {
            return self.continue_release(id);
        }
        match (&session.stage, session.agent) {
            (SessionStage::Asleep, _) => {
                if !session.queue.is_empty() || !session.parked.is_empty() {
                    self.wake(id);
                }
            }
            (SessionStage::Bound, Some(agent)) => {
                while let Some((conn, frame, _)) =
                    self.sessions.by_id.get_mut(id).and_then(|it| it.parked.pop_front())
                {
                    self.forward(agent, Some(id), conn, &frame);
                }
                self.start_turn(id, agent);
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

fn not_waiting(id: &SessionId, number: u64) -> Fault {
    Fault::PromptNotWaiting { session: id.to_string(), prompt: number.to_string() }
}
