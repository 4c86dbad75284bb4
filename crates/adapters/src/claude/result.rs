//! Parses the line that ends a turn: its outcome, its tokens and its cost.

use crate::{StopReason, TurnFailure, TurnUsage};
use serde_json::Value;

/// The outcome of a turn from its `result` line. `stop` is the stop reason of the last message.
pub(super) fn parse_outcome(result: &Value, stop: Option<&str>) -> Result<StopReason, TurnFailure> {
    let aborted = result["terminal_reason"].as_str().is_some_and(|it| it.starts_with("aborted"));
    match result["subtype"].as_str() {
        Some("error_max_turns" | "error_max_budget_usd") => return Ok(StopReason::MaxTurnRequests),
        _ if aborted => return Ok(StopReason::Cancelled),
        _ => {}
    }
    if result["is_error"] == true {
        let status = result["api_error_status"].as_u64().and_then(|it| u16::try_from(it).ok());
        return Err(TurnFailure::classify(&error_message(result), status));
    }
    Ok(match result["stop_reason"].as_str().or(stop) {
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
        Some("refusal") => StopReason::Refusal,
        _ => StopReason::EndTurn,
    })
}

/// Whether it ends a turn that the program started by itself, for example after the end of a
/// background task; the client's prompt is processed after it.
pub(super) fn is_self_initiated(result: &Value) -> bool {
    result["origin"]["kind"].as_str().is_some_and(|kind| kind != "human")
}

/// The error message of a failed `result`.
fn error_message(result: &Value) -> String {
    let errors = result["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    if !errors.is_empty() {
        return errors.join("\n");
    }
    let error = &result["error"];
    let messages = [&result["result"], error, &error["message"], &result["message"]];
    let message = messages.into_iter().filter_map(Value::as_str).find(|it| !it.trim().is_empty());
    let kind = || result["subtype"].as_str().or(result["stop_reason"].as_str());
    message.map_or_else(
        || format!("the turn failed: {}", kind().unwrap_or("no reason given")),
        str::to_owned,
    )
}

/// Whether the input count excludes cached tokens, as Anthropic's does, or includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachedTokens {
    Excluded,
    Included,
}

pub(super) fn parse_tokens(usage: &Value, cached: CachedTokens) -> Option<TurnUsage> {
    let count = |name: &str| usage[name].as_u64();
    let read = count("cache_read_input_tokens");
    let write = count("cache_creation_input_tokens");
    let excluded = match cached {
        CachedTokens::Excluded => read.unwrap_or(0).saturating_add(write.unwrap_or(0)),
        CachedTokens::Included => 0,
    };
    let thought = usage["output_tokens_details"]["thinking_tokens"].as_u64();
    Some(TurnUsage {
        input: count("input_tokens")?.saturating_add(excluded),
        output: count("output_tokens").unwrap_or(0),
        thought: thought.filter(|count| 0 < *count),
        cached_read: read,
        cached_write: write,
    })
}

/// Tokens since the last result, including sub-agents; only newer versions report them.
pub(super) fn tokens_since_last_result(result: &Value) -> Option<TurnUsage> {
    let models = result["model_usage_since_last_result"].as_object()?;
    let all: Vec<TurnUsage> = models.values().map(usage_of_model).collect();
    sum_usage(all.iter())
}

fn usage_of_model(model: &Value) -> TurnUsage {
    let count = |name: &str| model[name].as_u64();
    let (read, write) = (count("cacheReadInputTokens"), count("cacheCreationInputTokens"));
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    TurnUsage {
        input: count("inputTokens").unwrap_or(0).saturating_add(cached),
        output: count("outputTokens").unwrap_or(0),
        thought: count("thinkingTokens").filter(|count| 0 < *count),
        cached_read: read,
        cached_write: write,
    }
}

pub(super) fn sum_usage<'a>(all: impl Iterator<Item = &'a TurnUsage>) -> Option<TurnUsage> {
    all.copied().reduce(TurnUsage::plus)
}

/// The size of the model's context window, if the line contains it.
pub(super) fn context_window(result: &Value, model: &str) -> Option<u64> {
    let models = result["modelUsage"].as_object()?;
    let one = models.get(model).or_else(|| models.values().next())?;
    one["contextWindow"].as_u64().filter(|size| 0 < *size)
}

/// Computes the cost of a turn. The program reports the total cost of the session, including
/// earlier processes.
#[derive(Debug, Default)]
pub(super) struct CostMeter {
    /// `None` if the total of an earlier process is unknown.
    total: Option<f64>,
}

impl CostMeter {
    /// A new session starts at zero. The earlier cost of a resumed session is unknown.
    pub(super) fn reset(&mut self) {
        self.total = Some(0.0);
    }

    /// The cost of this turn.
    pub(super) fn turn_cost(&mut self, result: &Value) -> Option<f64> {
        let total = result["total_cost_usd"].as_f64();
        let before = self.total;
        self.total = total.or(before);
        let since = result["model_usage_since_last_result"].as_object();
        if let Some(models) = since {
            let costs = models.values().filter_map(|it| it["costUSD"].as_f64());
            return Some(round_dollars(costs.fold(0.0, |sum, cost| sum + cost)));
        }
        let (total, before) = (total?, before?);
        // A total below the previous one was reset.
        Some(round_dollars(if total < before { total } else { total - before }))
    }
}

/// Removes rounding errors of floating-point sums: no provider bills less than a billionth of a
/// dollar.
fn round_dollars(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCause;
    use serde_json::json;

    #[test]
    fn stop_reason_is_read_from_the_result() {
        let cases = [
            (json!({"subtype": "success", "stop_reason": "end_turn"}), StopReason::EndTurn),
            (json!({"subtype": "success", "stop_reason": "max_tokens"}), StopReason::MaxTokens),
            (json!({"subtype": "success", "stop_reason": "refusal"}), StopReason::Refusal),
            (json!({"subtype": "error_max_turns", "is_error": true}), StopReason::MaxTurnRequests),
            (json!({"is_error": true, "terminal_reason": "aborted_tools"}), StopReason::Cancelled),
        ];
        for (result, stop) in cases {
            assert_eq!(parse_outcome(&result, None), Ok(stop), "{result}");
        }
        let bare = json!({"subtype": "success"});
        assert_eq!(parse_outcome(&bare, Some("max_tokens")), Ok(StopReason::MaxTokens));
    }

    #[test]
    fn failure_message_is_read_from_every_known_field() {
        let read = |result: Value| parse_outcome(&result, None).unwrap_err();
        let listed = read(json!({"is_error": true, "errors": ["No conversation found"]}));
        assert_eq!(listed.cause, FailureCause::NoSession);
        let nested = read(json!({"is_error": true, "error": {"message": "quota"}}));
        assert_eq!((nested.cause, nested.message.as_str()), (FailureCause::RateLimited, "quota"));
        let plain = read(json!({"is_error": true, "error": "boom"}));
        assert_eq!(plain.message, "boom");
        let status = read(json!({"is_error": true, "result": "?", "api_error_status": 529}));
        assert_eq!((status.cause, status.status), (FailureCause::Unavailable, Some(529)));
        let silent = read(json!({"is_error": true, "subtype": "error_odd"}));
        assert_eq!(silent.message, "the turn failed: error_odd");
    }

    #[test]
    fn session_cost_is_split_into_turns() {
        let total = |dollars: f64| json!({"total_cost_usd": dollars});
        let mut meter = CostMeter::default();
        meter.reset();
        assert_eq!(meter.turn_cost(&total(0.25)), Some(0.25));
        assert_eq!(meter.turn_cost(&total(0.75)), Some(0.5));
        assert_eq!(meter.turn_cost(&total(1.0)), Some(0.25));
        assert_eq!(meter.turn_cost(&total(0.5)), Some(0.5), "a program that restarts at zero");
        let mut resumed = CostMeter::default();
        assert_eq!(resumed.turn_cost(&total(3.0)), None, "the earlier cost is unknown");
        assert_eq!(resumed.turn_cost(&total(3.5)), Some(0.5));
    }

    #[test]
    fn cached_tokens_count_as_input() {
        let usage = json!({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 20,
                           "cache_creation_input_tokens": 5});
        assert_eq!(parse_tokens(&usage, CachedTokens::Excluded).map(|it| it.input), Some(28));
        assert_eq!(parse_tokens(&usage, CachedTokens::Included).map(|it| it.input), Some(3));
        assert_eq!(parse_tokens(&json!({}), CachedTokens::Excluded), None);
    }
}
