//! Events as lines of JSON: what stands in the journal. Readers must accept every line that any
//! earlier version wrote (`decode`), so fields are added, never renamed.

use super::{Body, Event, Json};
use crate::Time;

impl Event {
    /// Appends the event's line, without a newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut line = Line { out };
        line.open(self.at);
        line.body(&self.body);
        line.out.push(b'}');
    }
}

struct Line<'a> {
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm an event, and nothing but")]
    fn body(&mut self, body: &Body) {
        match body {
            Body::Opened { agent, argv, cwd, params, agent_session, setup, fallback } => {
                self.is("opened").text("agent", agent).json("argv", &to_json(argv));
                self.text("cwd", cwd).json("params", params);
                self.text("agentSession", agent_session).json("setup", setup);
                self.unless_null("fallback", fallback);
            }
            Body::Forked { from, seq, cwd, params } => {
                self.is("forked").text("from", from).number("seqThere", seq.0);
                self.text("cwd", cwd).json("params", params);
            }
            Body::Imported { from } => {
                self.is("imported").text("from", from);
            }
            Body::Moved { from, to, why } => {
                self.is("moved").text("from", from);
                if let Some(to) = to {
                    self.text("to", to);
                }
                self.text("why", why);
            }
            Body::Bound { rung, setup, agent_session, tried } => {
                self.is("bound").text("rung", rung.as_str()).json("setup", setup);
                if let Some(agent_session) = agent_session {
                    self.text("agentSession", agent_session);
                }
                self.unless_null("tried", tried);
            }
            Body::Said { turn, late, frame } => {
                self.is("said").number("turn", *turn);
                if *late {
                    self.json("late", &Json::trusted("true"));
                }
                self.json("frame", frame);
            }
            Body::Queued { prompt, by, frame } => {
                self.is("queued").number("prompt", *prompt).text("by", by).json("frame", frame);
            }
            Body::Withdrawn { prompt, why } => {
                self.is("withdrawn").number("prompt", *prompt).text("why", why);
            }
            Body::Prompted { turn, by, prompt, frame } => {
                self.is("prompted").number("turn", *turn).text("by", by);
                if let Some(prompt) = prompt {
                    self.number("prompt", *prompt);
                }
                self.json("frame", frame);
            }
            Body::Cancelled { turn, rung } => {
                self.is("cancelled").number("turn", *turn).number("step", *rung);
            }
            Body::Ended { turn, outcome } => {
                self.is("ended").number("turn", *turn).text("how", outcome.name());
                self.json("answer", outcome.json());
            }
            Body::Asked { ask, decision, call, frame } => {
                self.is("asked").number("ask", *ask).unless_null("decision", decision);
                self.unless_null("call", call);
                self.json("frame", frame);
            }
            Body::Answered { ask, by, answer, peer } => {
                self.is("answered").number("ask", *ask).text("by", by).json("answer", answer);
                self.unless_null("peer", peer);
            }
            Body::Refused { operation, by, why, peer } => {
                self.is("refused").text("operation", operation).text("by", by);
                self.text("why", why).unless_null("peer", peer);
            }
            Body::LeftOut { what, bytes, limit } => {
                self.is("leftOut").text("what", what).number("bytes", *bytes);
                self.number("limit", *limit);
            }
            Body::Learned { ask, rule } => {
                self.is("learned").number("ask", *ask).json("rule", rule);
            }
            Body::Unasked { call } => {
                self.is("unasked").json("call", call);
            }
            Body::Served { call, decision, outcome } => {
                self.is("served").json("call", call).unless_null("decision", decision);
                self.text("how", outcome.name());
                if let Some(why) = outcome.why() {
                    self.text("why", why);
                }
            }
            Body::Configured { frame, result } => {
                self.is("configured").json("frame", frame).json("answer", result);
            }
            Body::Gone { status, stderr } => {
                self.is("gone").text("status", status).text("stderr", stderr);
            }
            Body::Quiet { turn, phase, since, waits } => {
                self.is("quiet").number("turn", *turn).text("phase", phase);
                self.number("since", since.0).text("waits", waits);
            }
            Body::Slept { why } => {
                self.is("slept").text("why", why);
            }
            Body::Closed => {
                self.is("closed");
            }
        }
    }

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

    fn unless_null(&mut self, name: &str, value: &Json) -> &mut Self {
        if *value == Json::null() { self } else { self.json(name, value) }
    }
}

fn to_json(value: &impl serde::Serialize) -> Json {
    Json::trusted(serde_json::to_vec(value).expect("plain data serializes"))
}
