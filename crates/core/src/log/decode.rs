//! Lines of the journal read back, also those that an earlier version wrote: what a newer one added
//! has a default here.

use super::{Body, Event, Json, Outcome, Rung, ServedOutcome};
use crate::{Seq, Time};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// A line that is no event of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    pub why: String,
}

impl Event {
    /// Reads a line; frames stay slices of it.
    pub fn decode(seq: Seq, line: &Bytes) -> Result<Event, BadLine> {
        let fields: Fields<'_> =
            serde_json::from_slice(line).map_err(|error| BadLine { why: error.to_string() })?;
        let body = fields.body(line).ok_or_else(|| BadLine {
            why: format!("unknown or incomplete event `{}`", fields.is),
        })?;
        Ok(Event { seq, at: Time(fields.at), body })
    }
}

/// The union of all events' fields.
#[derive(Deserialize)]
struct Fields<'a> {
    at: u64,
    #[serde(borrow)]
    is: Cow<'a, str>,
    turn: Option<u64>,
    ask: Option<u64>,
    step: Option<u64>,
    prompt: Option<u64>,
    since: Option<u64>,
    bytes: Option<u64>,
    limit: Option<u64>,
    #[serde(rename = "seqThere")]
    seq_there: Option<u64>,
    #[serde(default)]
    late: bool,
    agent: Option<Arc<str>>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    #[serde(rename = "agentSession")]
    agent_session: Option<Arc<str>>,
    by: Option<Arc<str>>,
    how: Option<Cow<'a, str>>,
    rung: Option<Cow<'a, str>>,
    status: Option<Arc<str>>,
    stderr: Option<Arc<str>>,
    from: Option<Arc<str>>,
    to: Option<Arc<str>>,
    why: Option<Arc<str>>,
    phase: Option<Arc<str>>,
    waits: Option<Arc<str>>,
    what: Option<Arc<str>>,
    operation: Option<Arc<str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    setup: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    frame: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    answer: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tried: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    fallback: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    decision: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    rule: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    call: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    peer: Option<&'a RawValue>,
}

impl Fields<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm an event, and nothing but")]
    fn body(&self, line: &Bytes) -> Option<Body> {
        let slice = |raw: Option<&RawValue>| {
            raw.map(|raw| Json::trusted(line.slice_ref(raw.get().as_bytes())))
        };
        let or_null = |raw| slice(raw).unwrap_or_else(Json::null);
        Some(match self.is.as_ref() {
            "opened" => Body::Opened {
                agent: self.agent.clone()?,
                argv: self.argv.clone()?,
                cwd: self.cwd.clone()?,
                params: slice(self.params)?,
                agent_session: self.agent_session.clone()?,
                setup: slice(self.setup)?,
                fallback: or_null(self.fallback),
            },
            "forked" => Body::Forked {
                from: self.from.clone()?,
                seq: Seq(self.seq_there?),
                cwd: self.cwd.clone()?,
                params: slice(self.params)?,
            },
            "imported" => Body::Imported { from: self.from.clone()? },
            "moved" => Body::Moved {
                from: self.from.clone()?,
                to: self.to.clone(),
                why: self.why.clone()?,
            },
            "bound" => Body::Bound {
                rung: Rung::named(self.rung.as_deref()?)?,
                setup: slice(self.setup)?,
                agent_session: self.agent_session.clone(),
                tried: or_null(self.tried),
            },
            "said" => Body::Said { turn: self.turn?, late: self.late, frame: slice(self.frame)? },
            "queued" => Body::Queued {
                prompt: self.prompt?,
                by: self.by.clone()?,
                frame: slice(self.frame)?,
            },
            "withdrawn" => Body::Withdrawn { prompt: self.prompt?, why: self.why.clone()? },
            "prompted" => Body::Prompted {
                turn: self.turn?,
                by: self.by.clone()?,
                prompt: self.prompt,
                frame: slice(self.frame)?,
            },
            "cancelled" => Body::Cancelled { turn: self.turn?, rung: self.step? },
            "ended" => Body::Ended {
                turn: self.turn?,
                outcome: match self.how.as_deref()? {
                    "stopped" => Outcome::Stopped(slice(self.answer)?),
                    "failed" => Outcome::Failed(slice(self.answer)?),
                    "interrupted" => Outcome::Interrupted(slice(self.answer)?),
                    _ => return None,
                },
            },
            "asked" => Body::Asked {
                ask: self.ask?,
                decision: or_null(self.decision),
                call: or_null(self.call),
                frame: slice(self.frame)?,
            },
            "answered" => Body::Answered {
                ask: self.ask?,
                by: self.by.clone()?,
                answer: slice(self.answer)?,
                peer: or_null(self.peer),
            },
            "refused" => Body::Refused {
                operation: self.operation.clone()?,
                by: self.by.clone()?,
                why: self.why.clone()?,
                peer: or_null(self.peer),
            },
            "leftOut" => {
                Body::LeftOut { what: self.what.clone()?, bytes: self.bytes?, limit: self.limit? }
            }
            "learned" => Body::Learned { ask: self.ask?, rule: slice(self.rule)? },
            "unasked" => Body::Unasked { call: slice(self.call)? },
            "served" => Body::Served {
                call: slice(self.call)?,
                decision: or_null(self.decision),
                outcome: ServedOutcome::named(self.how.as_deref()?, self.why.clone())?,
            },
            "configured" => {
                Body::Configured { frame: slice(self.frame)?, result: slice(self.answer)? }
            }
            "gone" => Body::Gone { status: self.status.clone()?, stderr: self.stderr.clone()? },
            "quiet" => Body::Quiet {
                turn: self.turn?,
                phase: self.phase.clone()?,
                since: Time(self.since?),
                waits: self.waits.clone()?,
            },
            "slept" => Body::Slept { why: self.why.clone()? },
            "closed" => Body::Closed,
            _ => return None,
        })
    }
}

/// `null` is a value: a setup may well be `null`.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(body: Body) {
        let event = Event { seq: Seq(7), at: Time(1_700_000_000_123), body };
        let mut line = Vec::new();
        event.encode(&mut line);
        assert!(!line.contains(&b'\n'));
        assert_eq!(Event::decode(Seq(7), &Bytes::from(line)), Ok(event));
    }

    #[test]
    fn every_event_survives_the_journal() {
        let json = |text: &'static str| Json::trusted(text);
        round_trip(Body::Opened {
            agent: "claude".into(),
            argv: vec!["a \"quoted\"\n".into(), "b".into()],
            cwd: "/tmp/ä".into(),
            params: json(r#"{"cwd":"/x"}"#),
            agent_session: "7".into(),
            setup: Json::null(),
            fallback: json(r#"[{"agent":"codex","why":"not found"}]"#),
        });
        let params = json(r#"{"cwd":"/y"}"#);
        round_trip(Body::Forked { from: "s-1".into(), seq: Seq(9), cwd: "/y".into(), params });
        round_trip(Body::Imported { from: "s-1".into() });
        let (from, why): (Arc<str>, Arc<str>) = ("west".into(), "it was lost".into());
        round_trip(Body::Moved { from: from.clone(), to: Some("east".into()), why: why.clone() });
        round_trip(Body::Moved { from, to: None, why });
        let tried = json(r#"[{"rung":"resumed","why":"no"}]"#);
        let (rung, setup) = (Rung::Reseeded, json("{}"));
        round_trip(Body::Bound { rung, setup, agent_session: Some("8".into()), tried });
        let (rung, setup) = (Rung::Reloaded, Json::null());
        round_trip(Body::Bound { rung, setup, agent_session: None, tried: Json::null() });
        let frame = json(r#"{"method":"x","params":{"n":1.50}}"#);
        round_trip(Body::Said { turn: 0, late: false, frame: frame.clone() });
        round_trip(Body::Said { turn: 1, late: true, frame });
        round_trip(Body::Queued { prompt: 2, by: "zed".into(), frame: json("{}") });
        round_trip(Body::Withdrawn { prompt: 2, why: "cancelled".into() });
        round_trip(Body::Prompted { turn: 3, by: "zed".into(), prompt: None, frame: json("{}") });
        let prompt = Some(2);
        round_trip(Body::Prompted { turn: 3, by: "zed".into(), prompt, frame: json("{}") });
        round_trip(Body::Cancelled { turn: 3, rung: 1 });
        for outcome in [Outcome::Stopped, Outcome::Failed, Outcome::Interrupted] {
            round_trip(Body::Ended { turn: 3, outcome: outcome(json(r#"{"a":null}"#)) });
        }
        for part in [Json::null(), json(r#"{"kind":"edit"}"#)] {
            let (decision, call, frame) = (part.clone(), part, json("[1]"));
            round_trip(Body::Asked { ask: 1, decision, call, frame });
        }
        round_trip(Body::Learned { ask: 1, rule: json("{}") });
        round_trip(Body::Unasked { call: json("{}") });
        for outcome in [
            ServedOutcome::Done,
            ServedOutcome::Denied("a rule".into()),
            ServedOutcome::Failed("no file".into()),
            ServedOutcome::Unknown,
        ] {
            round_trip(Body::Served { call: json("{}"), decision: Json::null(), outcome });
        }
        for peer in [Json::null(), json(r#"{"uid":1000,"pid":7,"exe":"/bin/x"}"#)] {
            let (by, answer): (Arc<str>, Json) = ("tty".into(), json("null"));
            round_trip(Body::Answered { ask: 1, by: by.clone(), answer, peer: peer.clone() });
            let operation = "_jackfield/stop".into();
            round_trip(Body::Refused { operation, by, why: "below an agent".into(), peer });
        }
        round_trip(Body::Configured { frame: json("{}"), result: json("{}") });
        round_trip(Body::Gone { status: "exit status 1".into(), stderr: "oh\nno".into() });
        let (phase, waits) = ("tool".into(), "`npm test`".into());
        round_trip(Body::Quiet { turn: 1, phase, since: Time(5), waits });
        round_trip(Body::Slept { why: "idle".into() });
        round_trip(Body::Closed);
    }

    #[test]
    fn a_frame_as_deep_as_frames_may_be_survives_the_journal() {
        let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(127), "]".repeat(127));
        let (by, answer, peer) = ("tty".into(), Json::trusted(deep), Json::null());
        round_trip(Body::Answered { ask: 1, by, answer, peer });
    }

    #[test]
    fn answer_of_a_version_that_knew_no_peer_can_be_read() {
        let line =
            Bytes::from_static(br#"{"at":1,"is":"answered","ask":1,"by":"tty","answer":{}}"#);
        let body = Event::decode(Seq(1), &line).unwrap().body;
        let Body::Answered { peer, .. } = body else { panic!("{body:?}") };
        assert_eq!(peer, Json::null());
    }

    #[test]
    fn a_line_of_a_newer_version_is_refused_with_its_name() {
        let line = Bytes::from_static(br#"{"at":1,"is":"teleported"}"#);
        assert!(Event::decode(Seq(1), &line).unwrap_err().why.contains("teleported"));
    }
}
