//! Holds appended events, and what follows from them, until the journal reports them durable.

use crate::{AgentId, ConnId};
use bytes::Bytes;
use jackfield_events::{Seq, SessionEvent};
use jackfield_protocol::{Frame, Kind, is_planted};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct DurabilityGate {
    /// The sequence number of the last appended event.
    head: Seq,
    /// The sequence number of the last durable event. Invariant: `durable <= head`.
    durable: Seq,
    /// Exactly the events `durable+1..=head`, in order.
    pending: VecDeque<SessionEvent>,
    /// The size of the pending events and effects.
    pending_bytes: usize,
    /// Effects in order, each with the event that must be durable first. Invariant: that event is pending.
    effects: VecDeque<(Seq, Effect)>,
}

/// An action that must not happen before the events ahead of it are durable.
#[derive(Debug, Clone)]
pub enum Effect {
    ToAgent { agent: AgentId, text: Bytes },
    ToClient { conn: ConnId, text: Bytes },
    ToSubscribers { text: Bytes },
    Serve { agent: AgentId, frame: Frame },
}

impl Effect {
    fn size_bytes(&self) -> usize {
        match self {
            Effect::ToAgent { text, .. }
            | Effect::ToClient { text, .. }
            | Effect::ToSubscribers { text } => text.len(),
            Effect::Serve { frame, .. } => frame.bytes().len(),
        }
    }
}

/// An event that has become durable, or an effect that waited for it, in the original order.
#[derive(Debug)]
pub enum Released {
    Event(SessionEvent),
    Effect(Seq, Effect),
}

impl DurabilityGate {
    /// Continues a log whose last durable event is `durable`.
    pub fn recovered(durable: Seq) -> DurabilityGate {
        let durable = if is_planted("restart-at-event-1") { Seq::default() } else { durable };
        DurabilityGate { head: durable, durable, ..DurabilityGate::default() }
    }

    pub fn head(&self) -> Seq {
        self.head
    }

    pub fn durable(&self) -> Seq {
        self.durable
    }

    pub fn pending_events(&self) -> impl Iterator<Item = &SessionEvent> {
        self.pending.iter()
    }

    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Whether a message for this client waits for an event.
    pub fn has_message_for(&self, conn: ConnId) -> bool {
        let is_for = |it: &Effect| matches!(it, Effect::ToClient { conn: to, .. } if *to == conn);
        self.effects.iter().any(|(_, effect)| is_for(effect))
    }

    /// Messages for clients that will never become durable, because the session is removed.
    pub fn into_client_messages(self) -> impl Iterator<Item = (ConnId, Bytes)> {
        self.effects.into_iter().filter_map(|(_, effect)| match effect {
            Effect::ToClient { conn, text } => Some((conn, text)),
            Effect::ToAgent { .. } | Effect::ToSubscribers { .. } | Effect::Serve { .. } => None,
        })
    }

    pub fn is_all_durable(&self) -> bool {
        self.durable == self.head
    }

    pub fn hold_event(&mut self, event: SessionEvent) {
        assert_eq!(event.seq, self.head.next());
        self.head = event.seq;
        self.pending_bytes += event.body.size_bytes();
        self.pending.push_back(event);
        self.check();
    }

    /// Keeps an effect until all pending events are durable. The caller runs it at once if there is none.
    pub fn defer_effect(&mut self, effect: Effect) {
        assert!(!self.is_all_durable(), "nothing to wait for");
        self.pending_bytes += effect.size_bytes();
        self.effects.push_back((self.head, effect));
    }

    /// Removes requests and notifications that were not sent to this agent yet. Responses to requests of
    /// the agent stay.
    pub fn withdraw_agent_frames(&mut self, of: AgentId) -> Vec<Frame> {
        let mut taken = Vec::new();
        for (at, effect) in std::mem::take(&mut self.effects) {
            let frame = match &effect {
                Effect::ToAgent { agent, text } if *agent == of => Frame::parse(text.clone()).ok(),
                _ => None,
            };
            match frame.filter(|it| it.kind() != Kind::Response) {
                Some(frame) => {
                    self.pending_bytes -= effect.size_bytes();
                    taken.push(frame);
                }
                None => self.effects.push_back((at, effect)),
            }
        }
        taken
    }

    /// All events up to `upto` are durable. Returns them and the effects that waited for them, oldest first.
    pub fn release_events(&mut self, upto: Seq) -> Vec<Released> {
        assert!(upto <= self.head, "the journal reports an event that was not appended");
        let upto = if is_planted("release-pending-events") { self.head } else { upto };
        let mut released = Vec::new();
        while let Some(event) = self.pending.pop_front_if(|event| event.seq <= upto) {
            self.pending_bytes -= event.body.size_bytes();
            let seq = event.seq;
            released.push(Released::Event(event));
            while let Some((at, effect)) = self.effects.pop_front_if(|(at, _)| *at <= seq) {
                self.pending_bytes -= effect.size_bytes();
                released.push(Released::Effect(at, effect));
            }
        }
        self.durable = self.durable.max(upto);
        self.check();
        released
    }

    fn check(&self) {
        assert!(self.durable <= self.head);
        assert_eq!(self.pending.len() as u64, self.head.0 - self.durable.0);
        assert!(self.effects.front().is_none_or(|(at, _)| self.durable < *at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_events::{EventBody, Time};

    fn event(seq: u64) -> SessionEvent {
        SessionEvent { seq: Seq(seq), at: Time(0), body: EventBody::Closed }
    }

    #[test]
    fn pending_bytes_count_events_and_effects_until_release() {
        let mut gate = DurabilityGate::recovered(Seq(4));
        gate.hold_event(event(5));
        let event_bytes = gate.pending_bytes();
        gate.defer_effect(Effect::ToSubscribers { text: Bytes::from_static(b"12345") });
        assert_eq!(gate.pending_bytes(), event_bytes + 5);
        assert_eq!(gate.release_events(Seq(5)).len(), 2);
        assert_eq!(gate.pending_bytes(), 0);
    }

    #[test]
    fn effect_is_released_between_the_events_around_it() {
        let mut gate = DurabilityGate::default();
        gate.hold_event(event(1));
        gate.defer_effect(Effect::ToClient { conn: ConnId(1), text: Bytes::new() });
        gate.hold_event(event(2));
        assert!(gate.has_message_for(ConnId(1)) && !gate.has_message_for(ConnId(2)));
        let released = gate.release_events(Seq(2));
        let shape: Vec<bool> =
            released.iter().map(|it| matches!(it, Released::Effect(..))).collect();
        assert_eq!(shape, [false, true, false]);
    }

    #[test]
    fn unsent_requests_to_an_agent_can_be_withdrawn_but_responses_cannot() {
        let mut gate = DurabilityGate::default();
        gate.hold_event(event(1));
        let pending = gate.pending_bytes();
        let request = Frame::request("7", "session/prompt", "{}");
        for frame in [&request, &Frame::notification("session/cancel", "{}")] {
            gate.defer_effect(Effect::ToAgent { agent: AgentId(1), text: frame.bytes().clone() });
        }
        assert!(gate.withdraw_agent_frames(AgentId(2)).is_empty());
        assert_eq!(gate.withdraw_agent_frames(AgentId(1))[0].id(), Some("7"));
        assert_eq!(gate.pending_bytes(), pending);
        let answer = Frame::result_for("7", "{}").bytes().clone();
        gate.defer_effect(Effect::ToAgent { agent: AgentId(1), text: answer });
        assert!(gate.withdraw_agent_frames(AgentId(1)).is_empty());
        assert_eq!(gate.release_events(Seq(1)).len(), 2);
    }

    #[test]
    fn messages_for_clients_are_kept_when_the_log_is_removed() {
        let mut gate = DurabilityGate::default();
        gate.hold_event(event(1));
        gate.defer_effect(Effect::ToClient { conn: ConnId(7), text: Bytes::from_static(b"x") });
        gate.defer_effect(Effect::ToAgent { agent: AgentId(1), text: Bytes::new() });
        let messages: Vec<_> = gate.into_client_messages().collect();
        assert_eq!(messages, [(ConnId(7), Bytes::from_static(b"x"))]);
    }
}
