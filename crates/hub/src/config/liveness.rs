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

/// How long each phase may be silent until that is reported (`_ms`), and until it is given up (`_ms_max`). Without
/// a maximum, a phase may take any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    pub starting_ms: u64,
    pub initializing_ms: u64,
    pub opening_ms: u64,
    pub thinking_ms: u64,
    pub tool_ms: u64,
    /// Until the process runs.
    pub starting_ms_max: Option<u64>,
    /// From then until the response to `initialize`.
    pub initializing_ms_max: Option<u64>,
    /// Until the response to `session/new` or to a request that restores a session.
    pub opening_ms_max: Option<u64>,
    /// Until the response to `session/set_model` and other settings.
    pub setting_ms_max: Option<u64>,
    /// Until the next message of the agent in a turn.
    pub thinking_ms_max: Option<u64>,
    pub tool_ms_max: Option<u64>,
}

/// How long each step of the start of an agent may take, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartLimits {
    pub(crate) starting: Option<u64>,
    pub(crate) initializing: Option<u64>,
    pub(crate) opening: Option<u64>,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness {
            starting_ms: limits::STARTING_QUIET_MS,
            initializing_ms: limits::INITIALIZING_QUIET_MS,
            opening_ms: limits::OPENING_QUIET_MS,
            thinking_ms: limits::THINKING_QUIET_MS,
            tool_ms: limits::TOOL_QUIET_MS,
            starting_ms_max: Some(limits::STARTING_MS_MAX),
            initializing_ms_max: Some(limits::INITIALIZING_MS_MAX),
            opening_ms_max: Some(limits::OPENING_MS_MAX),
            setting_ms_max: Some(limits::SETTING_REPLY_MS_MAX),
            thinking_ms_max: Some(limits::THINKING_MS_MAX),
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

    /// The name of the setting with the maximum of a phase of a turn.
    pub(crate) fn max_name(phase: WaitPhase) -> &'static str {
        if phase == WaitPhase::Tool { "tool_max" } else { "thinking_max" }
    }

    /// The limits of a start, which a client may choose for its own sessions.
    pub(crate) fn start_limits(&self, chosen_ms: Option<u64>) -> StartLimits {
        StartLimits {
            starting: chosen_ms.or(self.starting_ms_max),
            initializing: chosen_ms.or(self.initializing_ms_max),
            opening: chosen_ms.or(self.opening_ms_max),
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
