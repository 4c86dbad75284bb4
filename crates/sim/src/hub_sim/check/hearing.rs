//! What clients hear of a session: every event once, in order, without gaps, durable first, and as
//! it was written.

use super::hold;
use crate::hub_sim::{disk::Stream, peek};
use bytes::Bytes;
use jackfield_events::{AgentMessage, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{ConnId, SessionId};

/// How far one connection has been told one session.
#[derive(Debug, Clone, Copy)]
pub(in crate::hub_sim) struct Hearing {
    pub(in crate::hub_sim) heard: u64,
    /// It may have been attached before, by a prompt, and so hear from an earlier event on.
    pub(in crate::hub_sim) loose: bool,
}

/// What a text says of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum Rendered {
    /// The agent's words.
    Said,
    /// A prompt as another client's words.
    Chunk,
    /// The fact, for those who know of the hub.
    Notice,
}

/// Who listens.
#[derive(Debug, Clone, Copy)]
pub(in crate::hub_sim) struct Listener<'a> {
    pub(in crate::hub_sim) conn: ConnId,
    pub(in crate::hub_sim) aware: bool,
    pub(in crate::hub_sim) session: &'a SessionId,
}

impl Hearing {
    pub(in crate::hub_sim) fn new(heard: u64) -> Hearing {
        Hearing { heard, loose: false }
    }

    /// The next event of the session reaches the client.
    pub(in crate::hub_sim) fn hear(
        &mut self,
        who: Listener<'_>,
        stream: &Stream,
        seq: u64,
        how: Rendered,
        text: &Bytes,
    ) {
        nothing_is_heard_before_it_is_durable(who, stream, seq);
        if std::mem::take(&mut self.loose) {
            self.heard = self.heard.min(seq - 1);
        }
        let again = how == Rendered::Chunk && seq == self.heard;
        if !again {
            self.every_event_once_in_order(who, stream, seq);
        }
        self.heard = seq;
        let (event, line) = (stream.event(seq), stream.line(seq));
        let (event, line) = (event.expect("durable"), line.expect("durable"));
        what_is_heard_is_what_was_written(who, event, line, how, text);
    }

    fn every_event_once_in_order(&self, who: Listener<'_>, stream: &Stream, seq: u64) {
        let missed = self.missed(who, stream, seq.saturating_sub(1));
        hold("every_event_once_in_order", self.heard < seq && missed.is_none(), || {
            let Listener { conn, session, .. } = who;
            format!("{conn} heard {seq} of {session} after {}, missed {missed:?}", self.heard)
        });
    }

    /// The first event up to `upto` that this client should have heard and has not.
    pub(in crate::hub_sim) fn missed(
        &self,
        who: Listener<'_>,
        stream: &Stream,
        upto: u64,
    ) -> Option<u64> {
        let seqs = self.heard + 1..=upto.min(stream.durable());
        seqs.into_iter().find(|&seq| {
            let event = stream.event(seq).expect("durable");
            is_audible(who, event)
        })
    }
}

/// Whether a client must hear of an event as a message of its own.
fn is_audible(who: Listener<'_>, event: &SessionEvent) -> bool {
    match &event.body {
        _ if who.aware => true,
        EventBody::Said(_) => true,
        EventBody::Prompted(TurnStarted { by, .. }) => !by.ends_with(&format!("({})", who.conn)),
        _ => false,
    }
}

fn nothing_is_heard_before_it_is_durable(who: Listener<'_>, stream: &Stream, seq: u64) {
    hold("nothing_is_heard_before_it_is_durable", 0 < seq && seq <= stream.durable(), || {
        let Listener { conn, session, .. } = who;
        format!("{conn} heard event {seq} of {session}, whose log ends at {}", stream.durable())
    });
}

fn what_is_heard_is_what_was_written(
    who: Listener<'_>,
    event: &SessionEvent,
    line: &Bytes,
    how: Rendered,
    text: &Bytes,
) {
    let same = match (how, &event.body) {
        (Rendered::Said, EventBody::Said(AgentMessage { turn, late, frame })) if who.aware => {
            let (seq, at, late) =
                (event.seq.0, event.at.0, if *late { r#","late":true"# } else { "" });
            let ours = format!(r#""seq":{seq},"at":{at},"turn":{turn}{late}"#);
            let member = format!(r#""jackfield":{{{ours}}}"#);
            let whole = format!("\"_meta\":{{{member}}},");
            let text = String::from_utf8_lossy(text);
            let bare = text.replacen(&whole, "", 1);
            let bare = bare.replacen(&format!("{member},"), "", 1);
            bare.as_bytes() == &frame.bytes()[..]
        }
        (Rendered::Said, EventBody::Said(AgentMessage { frame, .. })) => frame.bytes() == text,
        (Rendered::Chunk, EventBody::Prompted(TurnStarted { frame, .. })) => {
            peek::prompt(text) == peek::prompt(frame.bytes())
        }
        (Rendered::Notice, EventBody::Said(_)) => false,
        (Rendered::Notice, _) => {
            let tail = [&line[1..], b"}"].concat();
            text.ends_with(&tail)
        }
        _ => false,
    };
    hold("what_is_heard_is_what_was_written", same, || {
        format!("{} heard {text:?} as {how:?} of {line:?}", who.conn)
    });
}
