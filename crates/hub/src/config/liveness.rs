//! How long an agent may be silent, by what the session waits for.

use crate::limits;

/// What a session with an agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitPhase {
    /// The start of the process.
    Starting,
    /// The response to `initialize`.
    Initializing,
    /// The session to be opened or restored.
    Opening,
    /// The next message of the agent.
    Thinking,
    /// The next message of the agent, which has reported that it runs a tool.
    Tool,
    /// A person.
    Human,
}

impl WaitPhase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WaitPhase::Starting => "starting",
            WaitPhase::Initializing => "initializing",
            WaitPhase::Opening => "opening",
            WaitPhase::Thinking => "thinking",
            WaitPhase::Tool => "tool",
            WaitPhase::Human => "human",
        }
    }
}

/// How long each phase may be silent until that is reported, and until the turn is canceled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    pub starting_ms: u64,
    pub initializing_ms: u64,
    pub opening_ms: u64,
    pub thinking_ms: u64,
    pub tool_ms: u64,
    /// Without a value, a turn is never canceled because of silence.
    pub thinking_ms_max: Option<u64>,
    pub tool_ms_max: Option<u64>,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness {
            starting_ms: limits::STARTING_QUIET_MS,
            initializing_ms: limits::INITIALIZING_QUIET_MS,
            opening_ms: limits::OPENING_QUIET_MS,
            thinking_ms: limits::THINKING_QUIET_MS,
            tool_ms: limits::TOOL_QUIET_MS,
            thinking_ms_max: None,
            tool_ms_max: None,
        }
    }
}

impl Liveness {
    pub(crate) fn of(&self, phase: WaitPhase) -> Option<(u64, Option<u64>)> {
        match phase {
            WaitPhase::Starting => Some((self.starting_ms, None)),
            WaitPhase::Initializing => Some((self.initializing_ms, None)),
            WaitPhase::Opening => Some((self.opening_ms, None)),
            WaitPhase::Thinking => Some((self.thinking_ms, self.thinking_ms_max)),
            WaitPhase::Tool => Some((self.tool_ms, self.tool_ms_max)),
            WaitPhase::Human => None,
        }
    }

    /// The earliest time at which a silence can matter.
    pub(crate) fn soonest_ms(&self) -> u64 {
        let soft = [self.starting_ms, self.initializing_ms, self.opening_ms];
        let turn = [self.thinking_ms, self.tool_ms];
        let hard = self.thinking_ms_max.into_iter().chain(self.tool_ms_max);
        soft.into_iter().chain(turn).chain(hard).min().unwrap_or(0)
    }
}
