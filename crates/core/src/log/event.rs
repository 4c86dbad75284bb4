//! The durable unit: one fact about a session. Clients hear a rendering of it (`fanout/render`).

use super::Json;
use crate::{Seq, Time};
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
    },
    /// A new agent process took the session over.
    Bound { rung: Rung, setup: Json },
    /// The agent said something to whoever listens. `turn` is 0 outside of a turn.
    Said { turn: u64, frame: Json },
    /// A client's prompt began a turn.
    Prompted { turn: u64, by: Arc<str>, frame: Json },
    /// Someone asked the turn to stop; `rung` counts how hard it was asked.
    Cancelled { turn: u64, rung: u64 },
    /// The turn is over, with exactly one outcome.
    Ended { turn: u64, outcome: Outcome },
    /// The agent asks a client for something.
    Asked { ask: u64, frame: Json },
    /// The ask is settled: by whom, and with which answer (a JSON-RPC result or error object).
    Answered { ask: u64, by: Arc<str>, answer: Json },
    /// A setting was changed and the agent agreed.
    Configured { frame: Json, result: Json },
    /// The agent process ended.
    Gone { status: Arc<str>, stderr: Arc<str> },
    /// The session was closed by a client.
    Closed,
}

/// How a turn ended. Each carries what the asking client is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The agent's result, with its stop reason.
    Stopped(Json),
    /// The agent's error.
    Failed(Json),
    /// Not by the agent: it died, or the daemon did. An error that says why.
    Interrupted(Json),
}

/// How a session came to its present agent process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    Resumed,
    Reloaded,
}

impl Rung {
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Resumed => "resumed",
            Rung::Reloaded => "reloaded",
        }
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

    pub fn json(&self) -> &Json {
        match self {
            Outcome::Stopped(json) | Outcome::Failed(json) | Outcome::Interrupted(json) => json,
        }
    }
}

impl Body {
    /// Roughly what it weighs in memory and on disk, for the limits.
    pub fn weight(&self) -> usize {
        128 + match self {
            Body::Opened { params, setup, .. } => params.bytes().len() + setup.bytes().len(),
            Body::Said { frame, .. } | Body::Prompted { frame, .. } | Body::Asked { frame, .. } => {
                frame.bytes().len()
            }
            Body::Configured { frame, result } => frame.bytes().len() + result.bytes().len(),
            Body::Bound { setup: json, .. } | Body::Answered { answer: json, .. } => {
                json.bytes().len()
            }
            Body::Ended { outcome, .. } => outcome.json().bytes().len(),
            Body::Gone { stderr, .. } => stderr.len(),
            Body::Cancelled { .. } | Body::Closed => 0,
        }
    }
}
