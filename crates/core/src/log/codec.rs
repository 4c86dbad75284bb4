//! Events as lines of JSON and back: what stands in the journal. Readers must accept every line that
//! any earlier version wrote, so fields are added, never renamed.

use super::{Body, Event, Json, Outcome, Rung};
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
    /// Appends the event's line, without a newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut line = Line { out };
        line.open(self.at);
        match &self.body {
            Body::Opened { agent, argv, cwd, params, agent_session, setup } => {
                line.is("opened").text("agent", agent).json("argv", &to_json(argv));
                line.text("cwd", cwd).json("params", params);
                line.text("agentSession", agent_session).json("setup", setup);
            }
            Body::Bound { rung, setup } => {
                line.is("bound").text("rung", rung.as_str()).json("setup", setup);
            }
            Body::Said { turn, frame } => {
                line.is("said").number("turn", *turn).json("frame", frame);
            }
            Body::Prompted { turn, by, frame } => {
                line.is("prompted").number("turn", *turn).text("by", by).json("frame", frame);
            }
            Body::Cancelled { turn, rung } => {
                line.is("cancelled").number("turn", *turn).number("step", *rung);
            }
            Body::Ended { turn, outcome } => {
                line.is("ended").number("turn", *turn).text("how", outcome.name());
                line.json("answer", outcome.json());
            }
            Body::Asked { ask, frame } => {
                line.is("asked").number("ask", *ask).json("frame", frame);
            }
            Body::Answered { ask, by, answer } => {
                line.is("answered").number("ask", *ask).text("by", by).json("answer", answer);
            }
            Body::Configured { frame, result } => {
                line.is("configured").json("frame", frame).json("answer", result);
            }
            Body::Gone { status, stderr } => {
                line.is("gone").text("status", status).text("stderr", stderr);
            }
            Body::Closed => {
                line.is("closed");
            }
        }
        line.out.push(b'}');
    }

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

struct Line<'a> {
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn open(&mut self, at: Time) {
        self.out.extend_from_slice(b"{\"at\":");
        self.digits(at.0);
    }

    fn is(&mut self, name: &str) -> &mut Self {
        self.out.extend_from_slice(b",\"is\":\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'"');
        self
    }

    fn key(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.key(name);
        self.digits(value);
        self
    }

    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name);
        serde_json::to_writer(&mut *self.out, value).expect("writing to memory cannot fail");
        self
    }

    fn json(&mut self, name: &str, value: &Json) -> &mut Self {
        self.key(name);
        self.out.extend_from_slice(value.bytes());
        self
    }

    fn digits(&mut self, value: u64) {
        serde_json::to_writer(&mut *self.out, &value).expect("writing to memory cannot fail");
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
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    setup: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    frame: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    answer: Option<&'a RawValue>,
}

impl Fields<'_> {
    fn body(&self, line: &Bytes) -> Option<Body> {
        let slice = |raw: Option<&RawValue>| {
            raw.map(|raw| Json::trusted(line.slice_ref(raw.get().as_bytes())))
        };
        Some(match self.is.as_ref() {
            "opened" => Body::Opened {
                agent: self.agent.clone()?,
                argv: self.argv.clone()?,
                cwd: self.cwd.clone()?,
                params: slice(self.params)?,
                agent_session: self.agent_session.clone()?,
                setup: slice(self.setup)?,
            },
            "bound" => Body::Bound {
                rung: match self.rung.as_deref()? {
                    "resumed" => Rung::Resumed,
                    "reloaded" => Rung::Reloaded,
                    _ => return None,
                },
                setup: slice(self.setup)?,
            },
            "said" => Body::Said { turn: self.turn?, frame: slice(self.frame)? },
            "prompted" => {
                Body::Prompted { turn: self.turn?, by: self.by.clone()?, frame: slice(self.frame)? }
            }
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
            "asked" => Body::Asked { ask: self.ask?, frame: slice(self.frame)? },
            "answered" => {
                Body::Answered { ask: self.ask?, by: self.by.clone()?, answer: slice(self.answer)? }
            }
            "configured" => {
                Body::Configured { frame: slice(self.frame)?, result: slice(self.answer)? }
            }
            "gone" => Body::Gone { status: self.status.clone()?, stderr: self.stderr.clone()? },
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

fn to_json(value: &impl serde::Serialize) -> Json {
    Json::trusted(serde_json::to_vec(value).expect("plain data serializes"))
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
        });
        round_trip(Body::Bound { rung: Rung::Reloaded, setup: json("{}") });
        round_trip(Body::Said { turn: 0, frame: json(r#"{"method":"x","params":{"n":1.50}}"#) });
        round_trip(Body::Prompted { turn: 3, by: "zed".into(), frame: json("{}") });
        round_trip(Body::Cancelled { turn: 3, rung: 1 });
        for outcome in [Outcome::Stopped, Outcome::Failed, Outcome::Interrupted] {
            round_trip(Body::Ended { turn: 3, outcome: outcome(json(r#"{"a":null}"#)) });
        }
        round_trip(Body::Asked { ask: 1, frame: json("[1]") });
        round_trip(Body::Answered { ask: 1, by: "tty".into(), answer: json("null") });
        round_trip(Body::Configured { frame: json("{}"), result: json("{}") });
        round_trip(Body::Gone { status: "exit status 1".into(), stderr: "oh\nno".into() });
        round_trip(Body::Closed);
    }

    #[test]
    fn a_frame_as_deep_as_frames_may_be_survives_the_journal() {
        let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(127), "]".repeat(127));
        round_trip(Body::Answered { ask: 1, by: "tty".into(), answer: Json::trusted(deep) });
    }

    #[test]
    fn a_line_of_a_newer_version_is_refused_with_its_name() {
        let line = Bytes::from_static(br#"{"at":1,"is":"teleported"}"#);
        assert!(Event::decode(Seq(1), &line).unwrap_err().why.contains("teleported"));
    }
}
