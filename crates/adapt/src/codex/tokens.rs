//! Codex counts tokens over the whole conversation; a turn has used the difference.

use crate::Usage;
use serde_json::Value;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    input: u64,
    cached_read: u64,
    cached_write: u64,
    output: u64,
    thought: u64,
}

impl Tokens {
    /// Reads `exec`'s and `app-server`'s spelling.
    pub(super) fn read(counts: &Value) -> Tokens {
        let count = |snake: &str, camel: &str| {
            counts[snake].as_u64().or_else(|| counts[camel].as_u64()).unwrap_or_default()
        };
        Tokens {
            input: count("input_tokens", "inputTokens"),
            cached_read: count("cached_input_tokens", "cachedInputTokens"),
            cached_write: count("cache_write_input_tokens", "cacheWriteInputTokens"),
            output: count("output_tokens", "outputTokens"),
            thought: count("reasoning_output_tokens", "reasoningOutputTokens"),
        }
    }

    /// What came after `base`. A counter that runs backwards began again.
    pub(super) fn since(self, base: Tokens) -> Tokens {
        if self.input < base.input || self.output < base.output {
            return self;
        }
        Tokens {
            input: self.input - base.input,
            cached_read: self.cached_read.saturating_sub(base.cached_read),
            cached_write: self.cached_write.saturating_sub(base.cached_write),
            output: self.output - base.output,
            thought: self.thought.saturating_sub(base.thought),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self == Tokens::default()
    }

    pub(super) fn usage(self) -> Usage {
        Usage {
            input: self.input,
            output: self.output,
            thought: Some(self.thought),
            cached_read: Some(self.cached_read),
            cached_write: Some(self.cached_write),
        }
    }
}
