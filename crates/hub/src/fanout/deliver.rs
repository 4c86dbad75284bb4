//! Delivery: events that left the gate, and events read back from the journal, reach subscribers.

use super::{
    Phase,
    render::{Rendering, missing_notice},
};
use crate::peer::outcome_frame;
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    budget::OverBudget,
    log::{Effect, Released},
};
use bytes::Bytes;
use jackfield_events::{
    AgentMessage, EventBody, SessionEvent, TurnEnded, TurnOutcome, TurnStarted, UserAnswered,
    UserAsked,
};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::ops::Bound;

impl Hub {
    /// The journal has everything up to `upto`: what was held may be heard.
    pub(crate) fn on_durable(&mut self, id: &SessionId, upto: Seq) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (released, has_recovered) = session.log.release_events(upto);
        for released in released {
            match released {
                Released::Event(event) => self.publish(id, &event),
                Released::Effect(seq, effect) => self.perform(id, seq, effect),
            }
        }
        self.ease_agent(id);
        self.on_all_written(id);
        if has_recovered {
            self.check_storage();
        }
        self.after_stop();
    }

    /// Runs an effect now, or as soon as everything appended so far is durable.
    pub(crate) fn after_log(&mut self, id: &SessionId, effect: Effect) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some((head, effect)) = session.log.defer_effect(effect) {
            self.perform(id, head, effect);
        }
    }

    fn perform(&mut self, id: &SessionId, seq: Seq, effect: Effect) {
        match effect {
            Effect::ToAgent { agent, text } => {
                self.told(id, false);
                self.cx.outputs.push_back(Output::ToAgent { agent, text });
            }
            Effect::ToClient { conn, text } => self.send_after(id, seq, conn, text),
            Effect::Serve { agent, frame } => {
                let dirs = self.sessions[id].summary().dirs();
                self.cx.outputs.push_back(Output::Serve { agent, frame, dirs });
            }
            Effect::ToSubscribers { text } => {
                self.for_live(id, |hub, conn| hub.send(conn, text.clone()));
            }
        }
    }

    /// A message that must not overtake the events before it.
    fn send_after(&mut self, id: &SessionId, seq: Seq, conn: ConnId, text: Bytes) {
        let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
        let Some(subscriber) = subscriber.filter(|it| it.must_wait(seq)) else {
            return self.send(conn, text);
        };
        let Some(it) = self.conns.get(&conn) else { return };
        match self.cx.retained_bytes.charge(&it.kept, text.len()) {
            Ok(charge) => subscriber.defer(seq, text, charge),
            Err(over) => self.cut_off_client(conn, &over),
        }
    }

    /// Closes the connection of a client that does not read while answers for it add up.
    fn cut_off_client(&mut self, conn: ConnId, over: &OverBudget) {
        let what = format!("answers that were not read: {over}");
        let frame = Frame::error_for("null", &Fault::Overloaded { what });
        self.send(conn, frame.bytes().clone());
        self.cx.outputs.push_back(Output::CloseClient { conn });
        self.on_client_gone(conn);
    }

    pub(crate) fn publish(&mut self, id: &SessionId, event: &SessionEvent) {
        let rendering = Rendering::new(id, event);
        self.for_live(id, |hub, conn| hub.deliver(conn, &rendering));
    }

    /// Does something for each live subscriber that has room; the others fall behind.
    fn for_live(&mut self, id: &SessionId, act: impl Fn(&mut Hub, ConnId)) {
        let mut after = Bound::Unbounded;
        loop {
            let Some(session) = self.sessions.get(id) else { return };
            let mut rest = session.subscribers.range((after, Bound::Unbounded));
            let Some((&conn, _)) = rest.find(|(_, it)| it.phase == Phase::Live) else { return };
            after = Bound::Excluded(conn);
            if self.is_full(conn) && !is_planted("ignore-slow-client") {
                self.fall_behind(id, conn);
            } else {
                act(self, conn);
            }
        }
    }

    /// Catches a subscriber up: the journal answered.
    pub(crate) fn on_read(
        &mut self,
        conn: ConnId,
        id: &SessionId,
        after: Seq,
        events: &[SessionEvent],
    ) {
        let Some(session) = self.sessions.get(id) else { return };
        let Some(subscriber) = session.subscribers.get(&conn) else { return };
        if !subscriber.awaits_read(after) {
            return;
        }
        if self.is_full(conn) {
            return self.fall_behind(id, conn);
        }
        // The journal may have more than it has said: the rest is heard when it leaves the gate.
        let durable = session.log.durable();
        for event in
            events.iter().take_while(|it| it.seq <= durable || is_planted("read-past-the-gate"))
        {
            self.deliver(conn, &Rendering::new(id, event));
        }
        if self.is_full(conn) {
            self.fall_behind(id, conn);
        } else {
            self.read_on(id, conn);
        }
    }

    /// The event after `after` is damaged, now and later. A reader that wants the rest hears on behind it; any
    /// other hears no more of the session.
    pub(crate) fn on_damaged_read(&mut self, id: &SessionId, conn: ConnId, after: Seq, why: &str) {
        let session = self.sessions.get_mut(id);
        let Some(subscriber) = session.and_then(|it| it.subscribers.get_mut(&conn)) else { return };
        if !subscriber.skips_damaged {
            let rest = "`jackfield sessions export --skip-damaged` writes the other events";
            return self.lose_reader(id, conn, &Fault::Internal { why: format!("{why}; {rest}") });
        }
        if !subscriber.awaits_read(after) {
            return;
        }
        let missing = after.next();
        subscriber.heard = missing;
        self.send(conn, missing_notice(id, missing, why));
        self.flush_deferred(id, conn);
        self.read_on(id, conn);
    }

    /// Reads the next slice for a subscriber, or makes it live if it has heard everything.
    pub(crate) fn read_on(&mut self, id: &SessionId, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let durable = session.log.durable();
        let Some(subscriber) = session.subscribers.get_mut(&conn) else { return };
        if subscriber.heard < durable {
            subscriber.phase = Phase::CatchingUp;
            let after = subscriber.heard;
            self.cx.outputs.push_back(Output::Read { conn, session: id.clone(), after });
        } else {
            subscriber.phase = Phase::Live;
        }
    }

    /// The client's outbox has room again.
    pub(crate) fn on_client_wrote(&mut self, id: ConnId, bytes: usize) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let unwritten = conn.outbox.bytes();
        assert!(bytes <= unwritten, "the edge wrote more than it was given");
        let counted = if is_planted("count-half-of-written-bytes") { bytes / 2 } else { bytes };
        conn.outbox.resize(unwritten - counted);
        if !conn.behind || self.cx.config.limits.outbox_bytes_low < conn.outbox.bytes() {
            return;
        }
        conn.behind = false;
        for session in conn.attached.clone() {
            let subscriber = self.sessions.get(&session).and_then(|it| it.subscribers.get(&id));
            if subscriber.is_some_and(|it| it.phase == Phase::Behind) {
                self.read_on(&session, id);
            }
        }
    }

    fn is_full(&self, conn: ConnId) -> bool {
        let max = self.cx.config.limits.outbox_bytes_max;
        let unwritten = self.conns.get(&conn).map_or(0, |it| it.outbox.bytes());
        max < unwritten || self.cx.outbox_bytes.is_exceeded_by(unwritten)
    }

    fn fall_behind(&mut self, id: &SessionId, conn: ConnId) {
        let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
        if let Some(subscriber) = subscriber {
            subscriber.phase = Phase::Behind;
            if let Some(it) = self.conns.get_mut(&conn) {
                it.behind = true;
            }
            self.note(Note::ClientBehind { session: id.clone(), conn });
        }
    }

    /// One event to one subscriber, in its words, and whatever waited for it.
    fn deliver(&mut self, conn: ConnId, rendering: &Rendering<'_>) {
        let (id, event) = (rendering.session, rendering.event);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(subscriber) = session.subscribers.get_mut(&conn) else { return };
        assert_eq!(event.seq, subscriber.heard.next(), "each event once, in order");
        subscriber.heard = event.seq;
        let (observer, facts) = (subscriber.observer, subscriber.facts);
        let something_waits = subscriber.has_deferred();
        if facts {
            self.send(conn, rendering.fact());
        } else {
            self.tell(conn, rendering, observer);
        }
        match &event.body {
            EventBody::Ended(TurnEnded { turn, outcome }) => {
                self.answer_turn(id, conn, *turn, outcome);
            }
            EventBody::Answered(UserAnswered { ask, .. }) => self.withdraw_ask(id, conn, *ask),
            _ => {}
        }
        if something_waits {
            self.flush_deferred(id, conn);
        }
    }

    /// One event as ACP has it, and for those who know of the hub also what ACP has no words for.
    fn tell(&mut self, conn: ConnId, rendering: &Rendering<'_>, observer: bool) {
        let (id, event) = (rendering.session, rendering.event);
        let it = self.conns.get(&conn);
        let (aware, notices) = it.map_or((false, false), |it| (it.aware, it.notices));
        if (notices || is_planted("send-notices-to-plain-clients"))
            && let Some(text) = rendering.notice()
        {
            self.send(conn, text);
        }
        match &event.body {
            EventBody::Said(AgentMessage { frame, .. }) => {
                self.send(conn, rendering.said(frame.bytes(), aware));
            }
            EventBody::Prompted(TurnStarted { turn, frame, .. }) if !self.owes(id, conn, *turn) => {
                for text in rendering.user_chunks(frame.bytes(), aware) {
                    self.send(conn, text.clone());
                }
            }
            EventBody::Asked(UserAsked { ask, frame, .. }) if !observer => {
                if let Some(text) = self.issue_ask(id, conn, *ask, frame.bytes()) {
                    self.send(conn, text);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn flush_deferred(&mut self, id: &SessionId, conn: ConnId) {
        loop {
            let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
            let Some(text) = subscriber.and_then(super::Subscriber::next_due) else { return };
            self.send(conn, text);
        }
    }

    fn owes(&self, id: &SessionId, conn: ConnId, turn: u64) -> bool {
        let subscriber = self.sessions.get(id).and_then(|it| it.subscribers.get(&conn));
        subscriber.is_some_and(|it| it.owed.contains_key(&turn))
    }

    fn answer_turn(&mut self, id: &SessionId, conn: ConnId, turn: u64, outcome: &TurnOutcome) {
        let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
        let requests = subscriber.and_then(|it| it.owed.remove(&turn));
        for request in requests.into_iter().flatten() {
            self.finish_request(conn, &request);
            self.send(conn, outcome_frame(&request, outcome).bytes().clone());
        }
    }
}
