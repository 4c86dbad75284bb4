//! The line that ends a turn: its outcome, its tokens and what it cost.

use crate::{Failure, Stop, Usage};
use serde_json::Value;

/// How the turn ended, by its `result` line. `stop` is the last reason a message gave.
pub(super) fn outcome(result: &Value, stop: Option<&str>) -> Result<Stop, Failure> {
    let aborted = result["terminal_reason"].as_str().is_some_and(|it| it.starts_with("aborted"));
    match result["subtype"].as_str() {
        Some("error_max_turns" | "error_max_budget_usd") => return Ok(Stop::MaxTurnRequests),
        _ if aborted => return Ok(Stop::Cancelled),
        _ => {}
    }
    if result["is_error"] == true {
        let status = result["api_error_status"].as_u64().and_then(|it| u16::try_from(it).ok());
        return Err(Failure::read(&complaint(result), status));
    }
    Ok(match result["stop_reason"].as_str().or(stop) {
        Some("max_tokens" | "model_context_window_exceeded") => Stop::MaxTokens,
        Some("refusal") => Stop::Refusal,
        _ => Stop::EndTurn,
    })
}

/// Whether it ends something that the program did by itself, such as hearing of a task that was left
/// running; our prompt comes after it.
pub(super) fn is_foreign(result: &Value) -> bool {
    result["origin"]["kind"].as_str().is_some_and(|kind| kind != "human")
}

/// What a failed `result` says about itself.
fn complaint(result: &Value) -> String {
    let errors = result["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    if !errors.is_empty() {
        return errors.join("\n");
    }
    let error = &result["error"];
    let said = [&result["result"], error, &error["message"], &result["message"]];
    let said = said.into_iter().filter_map(Value::as_str).find(|it| !it.trim().is_empty());
    let word = || result["subtype"].as_str().or(result["stop_reason"].as_str());
    said.map_or_else(
        || format!("the turn failed: {}", word().unwrap_or("no reason was given")),
        str::to_owned,
    )
}

/// Whether cached tokens are counted beside the input, as Anthropic does, or in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    Beside,
    Within,
}

pub(super) fn tokens(usage: &Value, cached: Cached) -> Option<Usage> {
    let count = |name: &str| usage[name].as_u64();
    let read = count("cache_read_input_tokens");
    let write = count("cache_creation_input_tokens");
    let apart = match cached {
        Cached::Beside => read.unwrap_or(0).saturating_add(write.unwrap_or(0)),
        Cached::Within => 0,
    };
    let thought = usage["output_tokens_details"]["thinking_tokens"].as_u64();
    Some(Usage {
        input: count("input_tokens")?.saturating_add(apart),
        output: count("output_tokens").unwrap_or(0),
        thought: thought.filter(|count| 0 < *count),
        cached_read: read,
        cached_write: write,
    })
}

/// Tokens since the last result, of sub-agents too; only newer versions tell.
pub(super) fn spent(result: &Value) -> Option<Usage> {
    let models = result["model_usage_since_last_result"].as_object()?;
    let all: Vec<Usage> = models.values().map(of_model).collect();
    sum(all.iter())
}

fn of_model(model: &Value) -> Usage {
    let count = |name: &str| model[name].as_u64();
    let (read, write) = (count("cacheReadInputTokens"), count("cacheCreationInputTokens"));
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    Usage {
        input: count("inputTokens").unwrap_or(0).saturating_add(cached),
        output: count("outputTokens").unwrap_or(0),
        thought: count("thinkingTokens").filter(|count| 0 < *count),
        cached_read: read,
        cached_write: write,
    }
}

pub(super) fn sum<'a>(all: impl Iterator<Item = &'a Usage>) -> Option<Usage> {
    let plus = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    all.copied().reduce(|one, other| Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        thought: plus(one.thought, other.thought),
        cached_read: plus(one.cached_read, other.cached_read),
        cached_write: plus(one.cached_write, other.cached_write),
    })
}

/// The size of the model's context window, as far as the line tells it.
pub(super) fn window(result: &Value, model: &str) -> Option<u64> {
    let models = result["modelUsage"].as_object()?;
    let one = models.get(model).or_else(|| models.values().next())?;
    one["contextWindow"].as_u64().filter(|size| 0 < *size)
}

/// The program adds up what the session cost, over its resumptions too.
#[derive(Debug, Default)]
pub(super) struct Bill {
    /// None where an earlier program counted and we did not hear it.
    total: Option<f64>,
}

impl Bill {
    /// A program was started; a session it knows already has cost something.
    pub(super) fn open(&mut self, resumed: bool) {
        if !resumed {
            self.total = Some(0.0);
        }
    }

    /// What this turn cost.
    pub(super) fn turn(&mut self, result: &Value) -> Option<f64> {
        let total = result["total_cost_usd"].as_f64();
        let before = self.total;
        self.total = total.or(before);
        let since = result["model_usage_since_last_result"].as_object();
        if let Some(models) = since {
            let costs = models.values().filter_map(|it| it["costUSD"].as_f64());
            return Some(rounded(costs.fold(0.0, |sum, cost| sum + cost)));
        }
        let (total, before) = (total?, before?);
        // A total that shrank began anew.
        Some(rounded(if total < before { total } else { total - before }))
    }
}

/// Sums of binary fractions end in dust; no provider bills less than a billionth.
fn rounded(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use serde_json::json;

    #[test]
    fn a_turn_ends_for_the_reason_its_result_gives() {
        let cases = [
            (json!({"subtype": "success", "stop_reason": "end_turn"}), Stop::EndTurn),
            (json!({"subtype": "success", "stop_reason": "max_tokens"}), Stop::MaxTokens),
            (json!({"subtype": "success", "stop_reason": "refusal"}), Stop::Refusal),
            (json!({"subtype": "error_max_turns", "is_error": true}), Stop::MaxTurnRequests),
            (json!({"is_error": true, "terminal_reason": "aborted_tools"}), Stop::Cancelled),
        ];
        for (result, stop) in cases {
            assert_eq!(outcome(&result, None), Ok(stop), "{result}");
        }
        let bare = json!({"subtype": "success"});
        assert_eq!(outcome(&bare, Some("max_tokens")), Ok(Stop::MaxTokens));
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_whoever_has_some() {
        let read = |result: Value| outcome(&result, None).unwrap_err();
        let listed = read(json!({"is_error": true, "errors": ["No conversation found"]}));
        assert_eq!(listed.cause, Cause::NoSession);
        let nested = read(json!({"is_error": true, "error": {"message": "quota"}}));
        assert_eq!((nested.cause, nested.message.as_str()), (Cause::RateLimited, "quota"));
        let plain = read(json!({"is_error": true, "error": "boom"}));
        assert_eq!(plain.message, "boom");
        let status = read(json!({"is_error": true, "result": "?", "api_error_status": 529}));
        assert_eq!((status.cause, status.status), (Cause::Unavailable, Some(529)));
        let mute = read(json!({"is_error": true, "subtype": "error_odd"}));
        assert_eq!(mute.message, "the turn failed: error_odd");
    }

    #[test]
    fn a_bill_is_split_into_turns() {
        let total = |dollars: f64| json!({"total_cost_usd": dollars});
        let mut bill = Bill::default();
        bill.open(false);
        assert_eq!(bill.turn(&total(0.25)), Some(0.25));
        assert_eq!(bill.turn(&total(0.75)), Some(0.5));
        bill.open(true);
        assert_eq!(bill.turn(&total(1.0)), Some(0.25));
        assert_eq!(bill.turn(&total(0.5)), Some(0.5), "a program that counts from nothing");
        let mut resumed = Bill::default();
        resumed.open(true);
        assert_eq!(resumed.turn(&total(3.0)), None, "nobody knows what was spent before");
        assert_eq!(resumed.turn(&total(3.5)), Some(0.5));
    }

    #[test]
    fn cached_tokens_went_in_too() {
        let usage = json!({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 20,
                           "cache_creation_input_tokens": 5});
        assert_eq!(tokens(&usage, Cached::Beside).map(|it| it.input), Some(28));
        assert_eq!(tokens(&usage, Cached::Within).map(|it| it.input), Some(3));
        assert_eq!(tokens(&json!({}), Cached::Beside), None);
    }
}
