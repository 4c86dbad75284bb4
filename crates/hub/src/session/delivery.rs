//! Delivers durable events, and events that were read from the journal, to the subscribers of a session.

use super::Session;
use crate::{
    ConnId, Note, Output, Seq,
    context::HubContext,
    fanout::{Phase, Rendering, missing_notice},
    log::{Effect, Released},
    message::HubMessage,
    parts::HubParts,
    peer::{Clients, outcome_frame},
};
use bytes::Bytes;
use jackfield_events::{
    AgentMessage, EventBody, SessionEvent, TurnEnded, TurnOutcome, TurnStarted, UserAnswered,
    UserAsked,
};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::ops::Bound;

impl Clients {
    pub(crate) fn has_full_outbox(&self, cx: &HubContext, conn: ConnId) -> bool {
        let max = cx.config.limits.outbox_bytes_max;
        let unwritten = self.connections.get(&conn).map_or(0, |it| it.outbox.bytes());
        max < unwritten || cx.outbox_bytes.is_exceeded_by(unwritten)
    }
}

impl Session {
    /// All events up to `upto` are durable: live subscribers get them, and effects that waited for them run.
    pub(crate) fn release_events(&mut self, parts: &mut HubParts, upto: Seq) {
        for released in self.log.release_events(upto) {
            match released {
                Released::Event(event) => self.publish_event(parts, &event),
                Released::Effect(seq, effect) => self.run_effect(parts, seq, effect),
            }
        }
    }

    /// Runs an effect now, or when all events that were appended until now are durable.
    pub(crate) fn run_after_log(&mut self, parts: &mut HubParts, effect: Effect) {
        if let Some((head, effect)) = self.log.defer_effect(effect) {
            self.run_effect(parts, head, effect);
        }
    }

    /// Answers a request about the session, after the events before the answer.
    pub(crate) fn answer_after_log(&mut self, parts: &mut HubParts, conn: ConnId, frame: &Frame) {
        parts.clients.finish_request(conn, frame.id().expect("an answer has an id"));
        self.run_after_log(parts, Effect::ToClient { conn, text: frame.bytes().clone() });
    }

    fn run_effect(&mut self, parts: &mut HubParts, seq: Seq, effect: Effect) {
        match effect {
            Effect::ToAgent { agent, text } => {
                self.mark_agent_used(parts, false);
                parts.cx.outputs.push_back(Output::ToAgent { agent, text });
            }
            Effect::ToClient { conn, text } => self.send_after_events(parts, seq, conn, text),
            Effect::Serve { agent, frame } => {
                let dirs = self.summary().dirs();
                parts.cx.outputs.push_back(Output::Serve { agent, frame, dirs });
            }
            Effect::ToSubscribers { text } => self.for_each_live(parts, |_, parts, conn| {
                parts.clients.send(&mut parts.cx, conn, text.clone());
            }),
        }
    }

    /// Sends a message that must not overtake the events before it.
    fn send_after_events(&mut self, parts: &mut HubParts, seq: Seq, conn: ConnId, text: Bytes) {
        let subscriber = self.subscribers.get_mut(&conn).filter(|it| it.must_wait(seq));
        let Some(subscriber) = subscriber else {
            return parts.clients.send(&mut parts.cx, conn, text);
        };
        let Some(it) = parts.clients.connections.get(&conn) else { return };
        match parts.cx.retained_bytes.charge(&it.kept, text.len()) {
            Ok(charge) => subscriber.defer(seq, text, charge),
            Err(over) => {
                let what = format!("answers that were not read: {over}");
                parts.clients.close_overloaded(&mut parts.cx, conn, what);
            }
        }
    }

    fn publish_event(&mut self, parts: &mut HubParts, event: &SessionEvent) {
        let id = self.id.clone();
        if let EventBody::Answered(answered) = &event.body {
            parts.cx.post(HubMessage::RequestAnswered(id.clone(), Box::new(answered.clone())));
        }
        let rendering = Rendering::new(&id, event);
        self.for_each_live(parts, |it, parts, conn| it.deliver_event(parts, conn, &rendering));
    }

    /// Does something for each live subscriber whose outbox has space. The others fall behind.
    fn for_each_live(
        &mut self,
        parts: &mut HubParts,
        mut act: impl FnMut(&mut Session, &mut HubParts, ConnId),
    ) {
        let mut after = Bound::Unbounded;
        loop {
            let mut rest = self.subscribers.range((after, Bound::Unbounded));
            let Some((&conn, _)) = rest.find(|(_, it)| it.phase == Phase::Live) else { return };
            after = Bound::Excluded(conn);
            let is_full = parts.clients.has_full_outbox(&parts.cx, conn);
            if is_full && !is_planted("ignore-slow-client") {
                self.fall_behind(parts, conn);
            } else {
                act(self, parts, conn);
            }
        }
    }

    /// The journal returned the events after `after` for a subscriber that catches up.
    pub(crate) fn on_read(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        after: Seq,
        events: &[SessionEvent],
    ) {
        if !self.subscribers.get(&conn).is_some_and(|it| it.awaits_read(after)) {
            return;
        }
        if parts.clients.has_full_outbox(&parts.cx, conn) {
            return self.fall_behind(parts, conn);
        }
        let (id, durable) = (self.id.clone(), self.log.durable());
        // The journal may have stored more than it has reported: those events are delivered when it does.
        let is_due = |it: &&SessionEvent| it.seq <= durable || is_planted("read-past-the-gate");
        for event in events.iter().take_while(is_due) {
            self.deliver_event(parts, conn, &Rendering::new(&id, event));
        }
        if parts.clients.has_full_outbox(&parts.cx, conn) {
            self.fall_behind(parts, conn);
        } else {
            self.request_read(&mut parts.cx, conn);
        }
    }

    /// The event after `after` is damaged for good. A subscriber that skips damaged events continues behind it; any
    /// other is removed.
    pub(crate) fn on_damaged_read(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        after: Seq,
        why: &str,
    ) {
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return };
        if !subscriber.skips_damaged {
            let rest = "`jackfield sessions export --skip-damaged` writes the other events";
            let fault = Fault::Internal { why: format!("{why}; {rest}") };
            return self.remove_reader(parts, conn, &fault);
        }
        if !subscriber.awaits_read(after) {
            return;
        }
        let missing = after.next();
        subscriber.heard = missing;
        parts.clients.send(&mut parts.cx, conn, missing_notice(&self.id, missing, why));
        self.flush_deferred(parts, conn);
        self.request_read(&mut parts.cx, conn);
    }

    /// Reads the next events for a subscriber, or makes it live if it has all of them.
    pub(crate) fn request_read(&mut self, cx: &mut HubContext, conn: ConnId) {
        let durable = self.log.durable();
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return };
        if subscriber.heard < durable {
            subscriber.phase = Phase::CatchingUp;
            let after = subscriber.heard;
            cx.outputs.push_back(Output::Read { conn, session: self.id.clone(), after });
        } else {
            subscriber.phase = Phase::Live;
        }
    }

    /// The outbox of a client has space again.
    pub(crate) fn resume_subscriber(&mut self, cx: &mut HubContext, conn: ConnId) {
        if self.subscribers.get(&conn).is_some_and(|it| it.phase == Phase::Behind) {
            self.request_read(cx, conn);
        }
    }

    fn fall_behind(&mut self, parts: &mut HubParts, conn: ConnId) {
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return };
        subscriber.phase = Phase::Behind;
        if let Some(it) = parts.clients.connections.get_mut(&conn) {
            it.behind = true;
        }
        parts.cx.note(Note::ClientBehind { session: self.id.clone(), conn });
    }

    /// Delivers one event to one subscriber, and the messages that waited for it.
    fn deliver_event(&mut self, parts: &mut HubParts, conn: ConnId, rendering: &Rendering<'_>) {
        let event = rendering.event;
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return };
        assert_eq!(event.seq, subscriber.heard.next(), "each event once, in order");
        subscriber.heard = event.seq;
        let (is_observer, wants_facts) = (subscriber.observer, subscriber.facts);
        let has_deferred = subscriber.has_deferred();
        if wants_facts {
            parts.clients.send(&mut parts.cx, conn, rendering.fact());
        } else {
            self.send_as_acp(parts, conn, rendering, is_observer);
        }
        match &event.body {
            EventBody::Ended(TurnEnded { turn, outcome }) => {
                self.answer_prompt(parts, conn, *turn, outcome);
            }
            EventBody::Answered(UserAnswered { ask, .. }) => {
                parts.clients.withdraw_user_request(&mut parts.cx, &self.id, conn, *ask);
            }
            _ => {}
        }
        if has_deferred {
            self.flush_deferred(parts, conn);
        }
    }

    /// Sends one event as ACP messages, and as a notice of the hub to clients that know these.
    fn send_as_acp(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        rendering: &Rendering<'_>,
        is_observer: bool,
    ) {
        let it = parts.clients.connections.get(&conn);
        let (aware, notices) = it.map_or((false, false), |it| (it.aware, it.notices));
        if (notices || is_planted("send-notices-to-plain-clients"))
            && let Some(text) = rendering.notice()
        {
            parts.clients.send(&mut parts.cx, conn, text);
        }
        match &rendering.event.body {
            EventBody::Said(AgentMessage { frame, .. }) => {
                parts.clients.send(&mut parts.cx, conn, rendering.said(frame.bytes(), aware));
            }
            EventBody::Prompted(TurnStarted { turn, frame, .. })
                if !self.subscribers.get(&conn).is_some_and(|it| it.owed.contains_key(turn)) =>
            {
                for text in rendering.user_chunks(frame.bytes(), aware) {
                    parts.clients.send(&mut parts.cx, conn, text.clone());
                }
            }
            EventBody::Asked(UserAsked { ask, frame, .. }) if !is_observer => {
                let text = self.issue_user_request(&mut parts.clients, conn, *ask, frame.bytes());
                if let Some(text) = text {
                    parts.clients.send(&mut parts.cx, conn, text);
                }
            }
            _ => {}
        }
    }

    /// Sends the messages whose events the subscriber has received.
    pub(crate) fn flush_deferred(&mut self, parts: &mut HubParts, conn: ConnId) {
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return };
        while let Some(text) = subscriber.next_due() {
            parts.clients.send(&mut parts.cx, conn, text);
        }
    }

    /// Answers the prompts of this client that started the turn.
    fn answer_prompt(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        turn: u64,
        outcome: &TurnOutcome,
    ) {
        let requests = self.subscribers.get_mut(&conn).and_then(|it| it.owed.remove(&turn));
        for request in requests.into_iter().flatten() {
            parts.clients.finish_request(conn, &request);
            let answer = outcome_frame(&request, outcome);
            parts.clients.send(&mut parts.cx, conn, answer.bytes().clone());
        }
    }
}
