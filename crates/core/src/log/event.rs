//! The durable unit: one fact about a session. Clients hear a rendering of it (`fanout/render`).

use super::Json;
use crate::{Seq, SessionId, Time};
use jackfield_wire::{Frame, redact};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: Seq,
    pub at: Time,
    pub body: Body,
}

/// What happened. Frames name the session by the hub's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The session exists: which agent, where, as whom the agent knows it, and what it offered.
    Opened {
        agent: Arc<str>,
        argv: Vec<String>,
        cwd: String,
        params: Json,
        agent_session: Arc<str>,
        setup: Json,
        /// The agents that were to have it and could not be had, each with the reason.
        fallback: Json,
    },
    /// These events are a copy: the session branched off another after that one's `seq`, and is
    /// opened with these params from now on.
    Forked { from: SessionId, seq: Seq, cwd: String, params: Json },
    /// These events were brought from elsewhere, where the session had this name.
    Imported { from: SessionId },
    /// Another host has the session from now on: `to`, if it has a name, because of `why`.
    Moved { from: Arc<str>, to: Option<Arc<str>>, why: Arc<str> },
    /// A new agent process took the session over, or could not. `agent_session` is there where the
    /// agent knows it by another name from now on; `tried` are the rungs that did not hold, each
    /// with its reason.
    Bound { rung: Rung, setup: Json, agent_session: Option<Arc<str>>, tried: Json },
    /// The agent said something to whoever listens. `turn` is 0 before the first one; `late` if
    /// that turn was over by then.
    Said { turn: u64, late: bool, frame: Json },
    /// A client's prompt waits behind the running turn, or for the agent to wake.
    Queued { prompt: u64, by: Arc<str>, frame: Json },
    /// A waiting prompt will not run.
    Withdrawn { prompt: u64, why: Arc<str> },
    /// A client's prompt began a turn; `prompt` if it had been queued.
    Prompted { turn: u64, by: Arc<str>, prompt: Option<u64>, frame: Json },
    /// Someone asked the turn to stop; `rung` counts how hard it was asked.
    Cancelled { turn: u64, rung: u64 },
    /// The turn is over, with exactly one outcome.
    Ended { turn: u64, outcome: Outcome },
    /// The agent asks a client for something; `decision` is what the policy says to it, if anything.
    /// `call` is what the request is about as the policy reads it, if a person is asked.
    Asked { ask: u64, decision: Json, call: Json, frame: Json },
    /// The ask is settled: by whom, and with which answer (a JSON-RPC result or error object).
    /// `peer` is the process of the client that answered: its pid, uid and executable, if known.
    Answered { ask: u64, by: Arc<str>, answer: Json, peer: Json },
    /// A client below an agent wanted what only the operator may do, and did not get it.
    Refused { operation: Arc<str>, by: Arc<str>, why: Arc<str>, peer: Json },
    /// A message of the agent was longer than a message may be, and is lost.
    LeftOut { what: Arc<str>, bytes: u64, limit: u64 },
    /// An answer was meant for ever: this rule of ours stands for it from now on.
    Learned { ask: u64, rule: Json },
    /// The agent did, without asking, what a rule wants asked or denied.
    Unasked { call: Json },
    /// The daemon itself was to read, write or run something for the agent; `decision` is what the policy says to
    /// it, if anything.
    Served { call: Json, decision: Json, outcome: ServedOutcome },
    /// A setting was changed and the agent agreed.
    Configured { frame: Json, result: Json },
    /// The agent process ended.
    Gone { status: Arc<str>, stderr: Arc<str> },
    /// Nothing was heard for longer than usual; `waits` says for what, in words.
    Quiet { turn: u64, phase: Arc<str>, since: Time, waits: Arc<str> },
    /// The agent was stopped to save memory; the next prompt wakes the session.
    Slept { why: Arc<str> },
    /// The session was closed by a client.
    Closed,
}

/// How a turn ended. Each carries what the asking client is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The agent's result, with its stop reason.
    Stopped(Json),
    /// The agent's error.
    Failed(Json),
    /// Not by the agent: it died, or the daemon did. An error that says why.
    Interrupted(Json),
}

/// What became of a request that the daemon itself was to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedOutcome {
    Done,
    /// By a rule or by a person, with the reason.
    Denied(Arc<str>),
    Failed(Arc<str>),
    /// The agent ended first.
    Unknown,
}

impl ServedOutcome {
    pub fn name(&self) -> &'static str {
        match self {
            ServedOutcome::Done => "done",
            ServedOutcome::Denied(_) => "denied",
            ServedOutcome::Failed(_) => "failed",
            ServedOutcome::Unknown => "unknown",
        }
    }

    pub fn why(&self) -> Option<&str> {
        match self {
            ServedOutcome::Denied(why) | ServedOutcome::Failed(why) => Some(why),
            ServedOutcome::Done | ServedOutcome::Unknown => None,
        }
    }

    pub fn named(name: &str, why: Option<Arc<str>>) -> Option<ServedOutcome> {
        Some(match name {
            "done" => ServedOutcome::Done,
            "denied" => ServedOutcome::Denied(why?),
            "failed" => ServedOutcome::Failed(why?),
            "unknown" => ServedOutcome::Unknown,
            _ => return None,
        })
    }
}

/// How a session came to its present agent process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// The agent has the conversation in memory or on disk and went on.
    Resumed,
    /// The agent read it back and told it again.
    Reloaded,
    /// The agent made a branch of its own.
    Forked,
    /// The agent knows nothing of it: the next prompt carries a digest.
    Reseeded,
    /// None of these.
    Failed,
}

impl Rung {
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Resumed => "resumed",
            Rung::Reloaded => "reloaded",
            Rung::Forked => "forked",
            Rung::Reseeded => "reseeded",
            Rung::Failed => "failed",
        }
    }

    pub fn named(name: &str) -> Option<Rung> {
        let all = [Rung::Resumed, Rung::Reloaded, Rung::Forked, Rung::Reseeded, Rung::Failed];
        all.into_iter().find(|it| it.as_str() == name)
    }
}

impl Outcome {
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Stopped(_) => "stopped",
            Outcome::Failed(_) => "failed",
            Outcome::Interrupted(_) => "interrupted",
        }
    }

    /// The agent's word for why it stopped.
    pub fn stop_reason(&self) -> Option<String> {
        let Outcome::Stopped(result) = self else { return None };
        let result: serde_json::Value = serde_json::from_str(result.as_str()).ok()?;
        result["stopReason"].as_str().map(str::to_owned)
    }

    pub fn json(&self) -> &Json {
        match self {
            Outcome::Stopped(json) | Outcome::Failed(json) | Outcome::Interrupted(json) => json,
        }
    }
}

impl Event {
    /// The same fact in a copy of the session: frames name the session they are said in.
    #[must_use]
    pub fn moved_to(&self, session: &SessionId) -> Event {
        let mut event = self.clone();
        if let Body::Said { frame, .. }
        | Body::Queued { frame, .. }
        | Body::Prompted { frame, .. }
        | Body::Asked { frame, .. }
        | Body::Configured { frame, .. } = &mut event.body
            && let Ok(parsed) = Frame::parse(frame.bytes().clone())
            && parsed.session_id().is_some()
        {
            *frame = Json::trusted(parsed.with_session_id(session).bytes().clone());
        }
        event
    }
}

impl Body {
    /// Roughly what it weighs in memory and on disk, for the limits.
    pub fn weight(&self) -> usize {
        128 + match self {
            Body::Opened { params, setup, .. } => params.bytes().len() + setup.bytes().len(),
            Body::Said { frame: json, .. }
            | Body::Queued { frame: json, .. }
            | Body::Prompted { frame: json, .. }
            | Body::Asked { frame: json, .. }
            | Body::Bound { setup: json, .. }
            | Body::Learned { rule: json, .. }
            | Body::Unasked { call: json }
            | Body::Served { call: json, .. }
            | Body::Answered { answer: json, .. } => json.bytes().len(),
            Body::Configured { frame, result } => frame.bytes().len() + result.bytes().len(),
            Body::Ended { outcome, .. } => outcome.json().bytes().len(),
            Body::Gone { stderr, .. } => stderr.len(),
            Body::Forked { params, .. } => params.bytes().len(),
            Body::Refused { why, peer, .. } => why.len() + peer.bytes().len(),
            Body::Imported { .. }
            | Body::LeftOut { .. }
            | Body::Moved { .. }
            | Body::Withdrawn { .. }
            | Body::Cancelled { .. }
            | Body::Quiet { .. }
            | Body::Slept { .. }
            | Body::Closed => 0,
        }
    }
}

/// The first line of a prompt's first text block, cut to the width of a list.
pub(crate) fn first_line(frame: &Json) -> Option<String> {
    let frame: serde_json::Value = serde_json::from_slice(frame.bytes()).ok()?;
    let blocks = frame.get("params")?.get("prompt")?.as_array()?;
    let text = blocks.iter().find_map(|block| block.get("text")?.as_str())?;
    // Before it is cut: half a secret is no longer recognized.
    let line = redact::text(text.trim().lines().next()?);
    Some(line.chars().take(80).collect())
}
