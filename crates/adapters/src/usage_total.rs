//! Reads token counts under their many names, and sums them over the model requests of a turn.

use crate::{AdapterTurn, TurnUsage};
use serde_json::Value;

/// The tokens and the cost of all model requests of one turn.
#[derive(Debug, Default)]
pub(crate) struct TurnUsageTotal {
    usage: TurnUsage,
    dollars: f64,
}

impl TurnUsageTotal {
    /// Adds a model request and records the new sum in the turn.
    pub(crate) fn add_request(
        &mut self,
        usage: TurnUsage,
        dollars: Option<f64>,
        turn: &mut AdapterTurn,
    ) {
        if usage.input == 0 && usage.output == 0 {
            // The request was aborted, and the program does not report its usage.
            return;
        }
        self.usage = self.usage.plus(usage);
        turn.record_usage(self.usage);
        // Programs report zero for a model whose price they do not know.
        self.dollars += dollars.unwrap_or(0.0);
        if 0.0 < self.dollars {
            turn.record_cost(self.dollars);
        }
    }
}

/// Larger counts are invalid; sums of counts below this limit cannot overflow.
const TOKENS_MAX: u64 = 1 << 50;

/// The first of these fields that holds a count.
pub(crate) fn read_count(value: &Value, names: &[&str]) -> Option<u64> {
    let count = names.iter().find_map(|name| value[*name].as_u64());
    count.filter(|count| *count <= TOKENS_MAX)
}

/// Reads usage in camel case and in snake case; `None` if there are no counts.
pub(crate) fn read_usage(value: &Value) -> Option<TurnUsage> {
    let input = read_count(value, &["inputTokens", "input_tokens"]);
    let output = read_count(value, &["outputTokens", "output_tokens"]);
    let read_names = ["cacheReadTokens", "cache_read_tokens", "cache_read_input_tokens"];
    let write_names = ["cacheWriteTokens", "cache_write_tokens", "cache_creation_input_tokens"];
    let (cached_read, cached_write) =
        (read_count(value, &read_names), read_count(value, &write_names));
    let thought = read_count(value, &["reasoningTokens", "reasoning_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let (reported_input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let cached = cached_read.unwrap_or(0).saturating_add(cached_write.unwrap_or(0));
    // Some programs include cached tokens in the input and some count them separately. More cached
    // than input tokens can only be counted separately.
    let is_separate = reported_input < cached;
    let input = reported_input.saturating_add(if is_separate { cached } else { 0 });
    Some(TurnUsage { input, output, thought, cached_read, cached_write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_summed_and_both_cases_are_read() {
        let mut turn = AdapterTurn::default();
        let mut total = TurnUsageTotal::default();
        let camel = json!({"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 2});
        let snake = json!({"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 90});
        total.add_request(read_usage(&camel).unwrap(), Some(0.5), &mut turn);
        total.add_request(read_usage(&snake).unwrap(), Some(0.25), &mut turn);
        let sum =
            TurnUsage { input: 103, output: 6, cached_read: Some(92), ..TurnUsage::default() };
        assert_eq!((turn.usage, turn.cost), (Some(sum), Some(0.75)));
        assert_eq!(read_usage(&json!({"premiumRequests": 1})), None);
        let mut empty = AdapterTurn::default();
        TurnUsageTotal::default().add_request(TurnUsage::default(), None, &mut empty);
        assert_eq!(empty.usage, None);
    }
}
