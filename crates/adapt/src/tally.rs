//! Tokens as programs count them: fields by many names, and sums over the requests of a turn.

use crate::{Turn, Usage};
use serde_json::Value;

/// What the requests of one turn used together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    usage: Usage,
    dollars: f64,
}

impl Tally {
    /// One more request; its usage and its price are told with the sum.
    pub(crate) fn add(&mut self, usage: Usage, dollars: Option<f64>, turn: &mut Turn) {
        if usage.input == 0 && usage.output == 0 {
            // A request that was broken off: nobody told what it used.
            return;
        }
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        self.usage = Usage {
            input: self.usage.input.saturating_add(usage.input),
            output: self.usage.output.saturating_add(usage.output),
            thought: both(self.usage.thought, usage.thought),
            cached_read: both(self.usage.cached_read, usage.cached_read),
            cached_write: both(self.usage.cached_write, usage.cached_write),
        };
        turn.usage(self.usage);
        // Zero is what programs say of a model whose price they do not know.
        self.dollars += dollars.unwrap_or(0.0);
        if 0.0 < self.dollars {
            turn.cost(self.dollars);
        }
    }
}

/// No model has seen as many; sums of what is below cannot overflow.
const TOKENS_MAX: u64 = 1 << 50;

/// The first of these fields that is a count.
pub(crate) fn count(value: &Value, names: &[&str]) -> Option<u64> {
    let counts = names.iter().find_map(|name| value[*name].as_u64());
    counts.filter(|count| *count <= TOKENS_MAX)
}

/// Usage in the two spellings of `inputTokens` and `input_tokens`; none if there is no count.
pub(crate) fn usage_of(value: &Value) -> Option<Usage> {
    let input = count(value, &["inputTokens", "input_tokens"]);
    let output = count(value, &["outputTokens", "output_tokens"]);
    let read_names = ["cacheReadTokens", "cache_read_tokens", "cache_read_input_tokens"];
    let write_names = ["cacheWriteTokens", "cache_write_tokens", "cache_creation_input_tokens"];
    let (cached_read, cached_write) = (count(value, &read_names), count(value, &write_names));
    let thought = count(value, &["reasoningTokens", "reasoning_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let (fresh, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let cached = cached_read.unwrap_or(0).saturating_add(cached_write.unwrap_or(0));
    // Some count cached tokens as input and some beside it; more of them than input can only be beside.
    let input = if fresh < cached { fresh.saturating_add(cached) } else { fresh };
    Some(Usage { input, output, thought, cached_read, cached_write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_summed_and_both_spellings_are_read() {
        let mut turn = Turn::default();
        let mut tally = Tally::default();
        let camel = json!({"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 2});
        let snake = json!({"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 90});
        tally.add(usage_of(&camel).unwrap(), Some(0.5), &mut turn);
        tally.add(usage_of(&snake).unwrap(), Some(0.25), &mut turn);
        let sum = Usage { input: 103, output: 6, cached_read: Some(92), ..Usage::default() };
        assert_eq!((turn.usage, turn.cost), (Some(sum), Some(0.75)));
        assert_eq!(usage_of(&json!({"premiumRequests": 1})), None);
        let mut nothing = Turn::default();
        Tally::default().add(Usage::default(), None, &mut nothing);
        assert_eq!(nothing.usage, None);
    }
}
