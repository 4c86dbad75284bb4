//! Append first, publish after: holds what was appended until the journal says it is safe.

use crate::{AgentId, ConnId};
use bytes::Bytes;
use jackfield_events::{Seq, SessionEvent};
use jackfield_wire::{Frame, Kind};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct Gate {
    /// The last sequence number handed out.
    head: Seq,
    /// The last one known durable. Invariant: `durable <= head`.
    durable: Seq,
    /// Exactly the events in `durable+1..=head`, in order.
    held: VecDeque<SessionEvent>,
    /// Of the events and the effects.
    held_bytes: usize,
    /// What may be done once an event is durable, in order. Invariant: each waits for a held event.
    effects: VecDeque<(Seq, Effect)>,
}

/// Something that must not happen before the events ahead of it are durable.
#[derive(Debug, Clone)]
pub enum Effect {
    ToAgent { agent: AgentId, text: Bytes },
    ToClient { conn: ConnId, text: Bytes },
    ToSubscribers { text: Bytes },
    Serve { agent: AgentId, frame: Frame },
}

impl Effect {
    fn weight(&self) -> usize {
        match self {
            Effect::ToAgent { text, .. }
            | Effect::ToClient { text, .. }
            | Effect::ToSubscribers { text } => text.len(),
            Effect::Serve { frame, .. } => frame.bytes().len(),
        }
    }
}

/// What comes out of the gate, in the order in which it went in.
#[derive(Debug)]
pub enum Released {
    Event(SessionEvent),
    Effect(Seq, Effect),
}

impl Gate {
    /// Resumes a log whose last durable event is `durable`.
    pub fn recovered(durable: Seq) -> Gate {
        Gate { head: durable, durable, ..Gate::default() }
    }

    pub fn head(&self) -> Seq {
        self.head
    }

    pub fn durable(&self) -> Seq {
        self.durable
    }

    pub fn held(&self) -> impl Iterator<Item = &SessionEvent> {
        self.held.iter()
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether a message for this client waits here.
    pub fn owes(&self, conn: ConnId) -> bool {
        let is_for = |it: &Effect| matches!(it, Effect::ToClient { conn: to, .. } if *to == conn);
        self.effects.iter().any(|(_, effect)| is_for(effect))
    }

    /// The messages for clients that wait here, when the log they wait for goes no further.
    pub fn unsaid(self) -> impl Iterator<Item = (ConnId, Bytes)> {
        self.effects.into_iter().filter_map(|(_, effect)| match effect {
            Effect::ToClient { conn, text } => Some((conn, text)),
            Effect::ToAgent { .. } | Effect::ToSubscribers { .. } | Effect::Serve { .. } => None,
        })
    }

    pub fn is_clear(&self) -> bool {
        self.durable == self.head
    }

    pub fn hold(&mut self, event: SessionEvent) {
        assert_eq!(event.seq, self.head.next());
        self.head = event.seq;
        self.held_bytes += event.body.size_bytes();
        self.held.push_back(event);
        self.check();
    }

    /// Keeps an effect until everything held now is durable; the caller runs it if the gate is clear.
    pub fn defer(&mut self, effect: Effect) {
        assert!(!self.is_clear(), "nothing to wait for");
        self.held_bytes += effect.weight();
        self.effects.push_back((self.head, effect));
    }

    /// Takes back what an agent was to be asked or told and has not heard. What it asked itself is
    /// still answered.
    pub fn take_back(&mut self, of: AgentId) -> Vec<Frame> {
        let mut taken = Vec::new();
        for (at, effect) in std::mem::take(&mut self.effects) {
            let frame = match &effect {
                Effect::ToAgent { agent, text } if *agent == of => Frame::parse(text.clone()).ok(),
                _ => None,
            };
            match frame.filter(|it| it.kind() != Kind::Response) {
                Some(frame) => {
                    self.held_bytes -= effect.weight();
                    taken.push(frame);
                }
                None => self.effects.push_back((at, effect)),
            }
        }
        taken
    }

    /// The journal is safe up to `upto`: returns what may now happen, oldest first.
    pub fn release(&mut self, upto: Seq) -> Vec<Released> {
        assert!(upto <= self.head, "the journal knows more than was appended");
        let mut released = Vec::new();
        while let Some(event) = self.held.pop_front_if(|event| event.seq <= upto) {
            self.held_bytes -= event.body.size_bytes();
            let seq = event.seq;
            released.push(Released::Event(event));
            while let Some((at, effect)) = self.effects.pop_front_if(|(at, _)| *at <= seq) {
                self.held_bytes -= effect.weight();
                released.push(Released::Effect(at, effect));
            }
        }
        self.durable = self.durable.max(upto);
        self.check();
        released
    }

    fn check(&self) {
        assert!(self.durable <= self.head);
        assert_eq!(self.held.len() as u64, self.head.0 - self.durable.0);
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
    fn what_waits_counts_until_it_is_released() {
        let mut gate = Gate::recovered(Seq(4));
        gate.hold(event(5));
        let of_event = gate.held_bytes();
        gate.defer(Effect::ToSubscribers { text: Bytes::from_static(b"12345") });
        assert_eq!(gate.held_bytes(), of_event + 5);
        assert_eq!(gate.release(Seq(5)).len(), 2);
        assert_eq!(gate.held_bytes(), 0);
    }

    #[test]
    fn an_effect_follows_the_events_before_it_and_precedes_those_after() {
        let mut gate = Gate::default();
        gate.hold(event(1));
        gate.defer(Effect::ToClient { conn: ConnId(1), text: Bytes::new() });
        gate.hold(event(2));
        assert!(gate.owes(ConnId(1)) && !gate.owes(ConnId(2)));
        let released = gate.release(Seq(2));
        let shape: Vec<bool> =
            released.iter().map(|it| matches!(it, Released::Effect(..))).collect();
        assert_eq!(shape, [false, true, false]);
    }

    #[test]
    fn what_an_agent_has_not_heard_can_be_taken_back_and_answers_to_it_cannot() {
        let mut gate = Gate::default();
        gate.hold(event(1));
        let held = gate.held_bytes();
        let request = Frame::request("7", "session/prompt", "{}");
        for frame in [&request, &Frame::notification("session/cancel", "{}")] {
            gate.defer(Effect::ToAgent { agent: AgentId(1), text: frame.bytes().clone() });
        }
        assert!(gate.take_back(AgentId(2)).is_empty());
        assert_eq!(gate.take_back(AgentId(1))[0].id(), Some("7"));
        assert_eq!(gate.held_bytes(), held);
        let answer = Frame::result_for("7", "{}").bytes().clone();
        gate.defer(Effect::ToAgent { agent: AgentId(1), text: answer });
        assert!(gate.take_back(AgentId(1)).is_empty());
        assert_eq!(gate.release(Seq(1)).len(), 2);
    }

    #[test]
    fn messages_that_wait_are_not_lost_with_the_log() {
        let mut gate = Gate::default();
        gate.hold(event(1));
        gate.defer(Effect::ToClient { conn: ConnId(7), text: Bytes::from_static(b"x") });
        gate.defer(Effect::ToAgent { agent: AgentId(1), text: Bytes::new() });
        let unsaid: Vec<_> = gate.unsaid().collect();
        assert_eq!(unsaid, [(ConnId(7), Bytes::from_static(b"x"))]);
    }
}
