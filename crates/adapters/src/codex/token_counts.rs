//! Codex counts tokens per thread; the usage of a turn is the difference of two counts.

use crate::TurnUsage;
use serde_json::Value;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadTokenCounts {
    input: u64,
    cached_read: u64,
    cached_write: u64,
    output: u64,
    thought: u64,
}

impl ThreadTokenCounts {
    /// Parses the spellings of `exec` and `app-server`.
    pub(super) fn parse(counts: &Value) -> ThreadTokenCounts {
        let count = |snake: &str, camel: &str| {
            counts[snake].as_u64().or_else(|| counts[camel].as_u64()).unwrap_or_default()
        };
        ThreadTokenCounts {
            input: count("input_tokens", "inputTokens"),
            cached_read: count("cached_input_tokens", "cachedInputTokens"),
            cached_write: count("cache_write_input_tokens", "cacheWriteInputTokens"),
            output: count("output_tokens", "outputTokens"),
            thought: count("reasoning_output_tokens", "reasoningOutputTokens"),
        }
    }

    /// The tokens since `base`. A count below `base` means that the counter was reset.
    pub(super) fn since(self, base: ThreadTokenCounts) -> ThreadTokenCounts {
        if self.input < base.input || self.output < base.output {
            return self;
        }
        ThreadTokenCounts {
            input: self.input - base.input,
            cached_read: self.cached_read.saturating_sub(base.cached_read),
            cached_write: self.cached_write.saturating_sub(base.cached_write),
            output: self.output - base.output,
            thought: self.thought.saturating_sub(base.thought),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self == ThreadTokenCounts::default()
    }

    pub(super) fn to_usage(self) -> TurnUsage {
        TurnUsage {
            input: self.input,
            output: self.output,
            thought: Some(self.thought),
            cached_read: Some(self.cached_read),
            cached_write: Some(self.cached_write),
        }
    }
}
