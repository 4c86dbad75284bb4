//! Delivery of a session's events to clients: each event once, in order, without gaps, after it is durable, and as it
//! was written.

use super::check_invariant;
use crate::hub_sim::{disk::SessionStream, markers};
use bytes::Bytes;
use jackfield_events::{AgentMessage, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{ConnId, SessionId};

/// The position of one connection in one session.
#[derive(Debug, Clone, Copy)]
pub(in crate::hub_sim) struct DeliveryPosition {
    pub(in crate::hub_sim) received: u64,
    /// An earlier prompt may have attached the connection already, so delivery may start at an earlier event.
    pub(in crate::hub_sim) may_start_earlier: bool,
}

/// The form in which an event is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum EventRendering {
    /// An update of the agent.
    Update,
    /// A prompt as a user message chunk.
    PromptChunk,
    /// The event itself, for clients that know the hub.
    HubNotice,
}

/// A connection that receives the events of a session.
#[derive(Debug, Clone, Copy)]
pub(in crate::hub_sim) struct SessionSubscriber<'a> {
    pub(in crate::hub_sim) conn: ConnId,
    pub(in crate::hub_sim) aware: bool,
    pub(in crate::hub_sim) session: &'a SessionId,
}

impl DeliveryPosition {
    pub(in crate::hub_sim) fn new(received: u64) -> DeliveryPosition {
        DeliveryPosition { received, may_start_earlier: false }
    }

    /// The client receives the next event of the session.
    pub(in crate::hub_sim) fn receive_event(
        &mut self,
        subscriber: SessionSubscriber<'_>,
        stream: &SessionStream,
        seq: u64,
        rendering: EventRendering,
        text: &Bytes,
    ) {
        event_is_durable_before_delivery(subscriber, stream, seq);
        if std::mem::take(&mut self.may_start_earlier) {
            self.received = self.received.min(seq - 1);
        }
        let is_repeated = rendering == EventRendering::PromptChunk && seq == self.received;
        if !is_repeated {
            self.events_are_delivered_once_in_order(subscriber, stream, seq);
        }
        self.received = seq;
        let (event, line) = (stream.event(seq), stream.line(seq));
        let (event, line) = (event.expect("durable"), line.expect("durable"));
        delivered_event_equals_logged_event(subscriber, event, line, rendering, text);
    }

    fn events_are_delivered_once_in_order(
        &self,
        subscriber: SessionSubscriber<'_>,
        stream: &SessionStream,
        seq: u64,
    ) {
        let missed = self.missed(subscriber, stream, seq.saturating_sub(1));
        check_invariant(
            "events_are_delivered_once_in_order",
            self.received < seq && missed.is_none(),
            || {
                let SessionSubscriber { conn, session, .. } = subscriber;
                format!(
                    "{conn} received {seq} of {session} after {}, missed {missed:?}",
                    self.received
                )
            },
        );
    }

    /// The first event up to `upto` that this client should have received and has not.
    pub(in crate::hub_sim) fn missed(
        &self,
        subscriber: SessionSubscriber<'_>,
        stream: &SessionStream,
        upto: u64,
    ) -> Option<u64> {
        let seqs = self.received + 1..=upto.min(stream.durable());
        seqs.into_iter().find(|&seq| {
            let event = stream.event(seq).expect("durable");
            is_audible(subscriber, event)
        })
    }
}

/// Whether the client must receive the event as a message.
fn is_audible(subscriber: SessionSubscriber<'_>, event: &SessionEvent) -> bool {
    match &event.body {
        _ if subscriber.aware => true,
        EventBody::Said(_) => true,
        EventBody::Prompted(TurnStarted { by, .. }) => {
            !by.ends_with(&format!("({})", subscriber.conn))
        }
        _ => false,
    }
}

fn event_is_durable_before_delivery(
    subscriber: SessionSubscriber<'_>,
    stream: &SessionStream,
    seq: u64,
) {
    check_invariant("event_is_durable_before_delivery", 0 < seq && seq <= stream.durable(), || {
        let SessionSubscriber { conn, session, .. } = subscriber;
        format!("{conn} received event {seq} of {session}, whose log ends at {}", stream.durable())
    });
}

fn delivered_event_equals_logged_event(
    subscriber: SessionSubscriber<'_>,
    event: &SessionEvent,
    line: &Bytes,
    rendering: EventRendering,
    text: &Bytes,
) {
    let same = match (rendering, &event.body) {
        (EventRendering::Update, EventBody::Said(AgentMessage { turn, late, frame }))
            if subscriber.aware =>
        {
            let (seq, at, late) =
                (event.seq.0, event.at.0, if *late { r#","late":true"# } else { "" });
            let members = format!(r#""seq":{seq},"at":{at},"turn":{turn}{late}"#);
            let member = format!(r#""jackfield":{{{members}}}"#);
            let whole = format!("\"_meta\":{{{member}}},");
            let text = String::from_utf8_lossy(text);
            let bare = text.replacen(&whole, "", 1);
            let bare = bare.replacen(&format!("{member},"), "", 1);
            bare.as_bytes() == &frame.bytes()[..]
        }
        (EventRendering::Update, EventBody::Said(AgentMessage { frame, .. })) => {
            frame.bytes() == text
        }
        (EventRendering::PromptChunk, EventBody::Prompted(TurnStarted { frame, .. })) => {
            markers::find_prompt(text) == markers::find_prompt(frame.bytes())
        }
        (EventRendering::HubNotice, EventBody::Said(_)) => false,
        (EventRendering::HubNotice, _) => {
            let tail = [&line[1..], b"}"].concat();
            text.ends_with(&tail)
        }
        _ => false,
    };
    check_invariant("delivered_event_equals_logged_event", same, || {
        format!("{} received {text:?} as {rendering:?} of {line:?}", subscriber.conn)
    });
}
