//! Tokens and cost of the turns of a session, as reported by the agent. Agents report usage in the
//! result of a prompt (`usage`, or one of several members of `_meta`), in `usage_update`, in both, or not
//! at all. Usage that is not reported is unknown, not zero.

use crate::current_model::CurrentModel;
use crate::turn_activity::{is_recorded_later, is_turn_activity};
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, ReportedCost, Time, TurnEnded, TurnStarted, find_usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use utoipa::ToSchema;

/// Tokens of a turn. What the agent does not report is unknown, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub thought: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
    pub total: Option<u64>,
}

impl TokenCounts {
    /// Adds other counts. An unknown count adds nothing.
    pub(crate) fn add(&mut self, other: &TokenCounts) {
        let add = |sum: &mut Option<u64>, it: Option<u64>| {
            *sum = it.map(|it| sum.unwrap_or(0).saturating_add(it)).or(*sum);
        };
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.thought, other.thought);
        add(&mut self.cached_read, other.cached_read);
        add(&mut self.cached_write, other.cached_write);
        add(&mut self.total, other.total);
    }
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Cost)]
pub struct UsageCost {
    pub amount: f64,
    pub currency: String,
}

/// How full the agent's context window was at the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ContextUsage {
    #[serde(rename = "used")]
    pub tokens: u64,
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsageRow {
    pub turn: u64,
    /// The stop reason, `failed` or `interrupted`; `None` while the turn runs.
    pub ended: Option<String>,
    pub began_at: Option<u64>,
    /// The model at the end of the turn, if the agent has reported it.
    pub model: Option<String>,
    pub ms: Option<u64>,
    pub tokens: TokenCounts,
    pub cost: Option<UsageCost>,
    pub context: Option<ContextUsage>,
}

/// The column headings of the usage table.
pub const TABLE_HEADINGS: [&str; 8] =
    ["TURN", "TIME", "INPUT", "CACHED", "OUTPUT", "TOTAL", "COST", "ENDED"];
const UNKNOWN: &str = "-";

/// The usage of a session, folded from its events in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    pub turns: Vec<TurnUsageRow>,
    /// The cost of the whole session at the agent's last report.
    pub cost: Option<UsageCost>,
    pub context: Option<ContextUsage>,
    /// The time of the last event that was written while the turn ran.
    #[serde(skip)]
    active_at: Option<Time>,
    #[serde(skip)]
    model: CurrentModel,
}

impl SessionUsage {
    pub fn fold_event(&mut self, event: &ReceivedEvent) {
        self.mark_activity(event);
        self.model.fold_event(event);
        match &event.body {
            EventBody::Prompted(TurnStarted { turn, .. }) => {
                let began_at = Some(event.at.0);
                let model = self.model.name().map(str::to_owned);
                let row = TurnUsageRow { turn: *turn, began_at, model, ..TurnUsageRow::default() };
                self.turns.push(row);
            }
            EventBody::Said(AgentMessage { frame, .. }) => {
                self.on_update(&frame["params"]["update"]);
            }
            EventBody::Ended(ended) => self.on_turn_ended(ended, event.at),
            _ => {}
        }
    }

    /// Records the time of an event, for a turn whose end is recorded later.
    pub(crate) fn mark_activity(&mut self, event: &ReceivedEvent) {
        if is_turn_activity(&event.body) {
            self.active_at = Some(event.at);
        }
    }

    fn on_update(&mut self, update: &Value) {
        if update["sessionUpdate"] != "usage_update" {
            return;
        }
        if let Some(tokens) = update["used"].as_u64() {
            self.context = Some(ContextUsage { tokens, size: update["size"].as_u64() });
            if let Some(turn) = self.turns.last_mut() {
                turn.context = self.context;
            }
        }
        if let Some(cost) = ReportedCost::parse(&update["cost"]).map(UsageCost::from) {
            self.on_session_cost(cost);
        }
    }

    /// Agents report the cost of the session so far. The cost of a turn is the increase since the last
    /// report.
    fn on_session_cost(&mut self, now: UsageCost) {
        let before = self.cost.replace(now.clone());
        let before = match before {
            Some(it) if it.currency == now.currency => it.amount,
            Some(_) => return,
            None => 0.0,
        };
        let Some(turn) = self.turns.last_mut() else { return };
        let turn_cost = turn.cost.as_ref().map_or(0.0, |it| it.amount);
        let amount = round_amount(turn_cost + (now.amount - before).max(0.0));
        turn.cost = Some(UsageCost { amount, ..now });
    }

    fn on_turn_ended(&mut self, ended: &TurnEnded<Value>, at: Time) {
        let at = self.active_at.filter(|_| is_recorded_later(&ended.outcome)).unwrap_or(at);
        let Some(turn) = self.turns.iter_mut().rfind(|it| it.turn == ended.turn) else { return };
        turn.model = self.model.name().map(str::to_owned).or(turn.model.take());
        let answer = ended.outcome.json();
        turn.ended = Some(answer["stopReason"].as_str().unwrap_or(ended.outcome.name()).to_owned());
        turn.ms = turn.began_at.map(|it| at.since(Time(it)));
        if let Some(usage) = find_usage(answer) {
            turn.tokens = parse_tokens(usage);
        }
        if turn.cost.is_none() {
            turn.cost = find_turn_cost(answer);
        }
    }

    /// The total of all turns, and the number of turns with reported usage.
    pub fn total(&self) -> UsageTotal {
        let known = self.turns.iter().filter(|it| it.tokens != TokenCounts::default()).count();
        let mut tokens = TokenCounts::default();
        for turn in &self.turns {
            tokens.add(&turn.tokens);
        }
        UsageTotal { turns: self.turns.len(), known, tokens, cost: self.session_cost() }
    }

    fn session_cost(&self) -> Option<UsageCost> {
        if self.cost.is_some() {
            return self.cost.clone();
        }
        let mut costs = self.turns.iter().filter_map(|it| it.cost.clone());
        let first = costs.next()?;
        costs.try_fold(first, |sum, it| {
            let amount = round_amount(sum.amount + it.amount);
            (sum.currency == it.currency).then_some(UsageCost { amount, ..sum })
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageTotal {
    pub turns: usize,
    /// The number of turns with known tokens.
    pub known: usize,
    pub tokens: TokenCounts,
    pub cost: Option<UsageCost>,
}

/// Finds the cost of the turn in the result of a prompt.
pub(crate) fn find_turn_cost(answer: &Value) -> Option<UsageCost> {
    ReportedCost::of_turn(answer).map(UsageCost::from)
}

impl From<ReportedCost> for UsageCost {
    fn from(ReportedCost { amount, currency }: ReportedCost) -> UsageCost {
        UsageCost { amount, currency }
    }
}

impl TurnUsageRow {
    /// The row of this turn in the usage table.
    pub fn table_cells(&self) -> [String; 8] {
        let time = self.ms.map_or_else(|| UNKNOWN.to_owned(), format_seconds);
        let ended = self.ended.as_deref().unwrap_or(UNKNOWN);
        format_cells(&self.turn.to_string(), time, &self.tokens, self.cost.as_ref(), ended)
    }
}

impl UsageTotal {
    /// The last row of the usage table.
    pub fn table_cells(&self) -> [String; 8] {
        let known = match (self.known, self.turns) {
            (0, _) => "no turn reported usage".to_owned(),
            (known, turns) if known < turns => format!("{known} of {turns} turns reported usage"),
            _ => String::new(),
        };
        format_cells("sum", String::new(), &self.tokens, self.cost.as_ref(), &known)
    }
}

fn format_cells(
    name: &str,
    time: String,
    tokens: &TokenCounts,
    cost: Option<&UsageCost>,
    last: &str,
) -> [String; 8] {
    let number = |it: Option<u64>| it.map_or_else(|| UNKNOWN.to_owned(), |it| it.to_string());
    [
        name.to_owned(),
        time,
        number(tokens.input),
        number(tokens.cached_read),
        number(tokens.output),
        number(tokens.total),
        cost.map_or_else(|| UNKNOWN.to_owned(), UsageCost::to_string),
        last.to_owned(),
    ]
}

/// Formats a duration as `8.2 s`.
pub fn format_seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

impl fmt::Display for UsageCost {
    /// Formats a cost as `0.0421 USD`: cents are too coarse for one turn.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = format!("{:.6}", self.amount);
        let amount = amount.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{amount} {}", self.currency.chars().take(8).collect::<String>())
    }
}

impl fmt::Display for ContextUsage {
    /// Formats as `1200 of 200000 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map(|it| format!(" of {it}")).unwrap_or_default();
        write!(f, "{}{size} tokens", self.tokens)
    }
}

/// Reads the tokens that an agent reports, by any of the names that agents use.
pub fn parse_tokens(usage: &Value) -> TokenCounts {
    let first = |names: &[&str]| names.iter().find_map(|it| usage[*it].as_u64());
    let input = first(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "input"]);
    let output = first(&[
        "outputTokens",
        "output_tokens",
        "completionTokens",
        "completion_tokens",
        "output",
    ]);
    let cached_read = first(&[
        "cachedReadTokens",
        "cachedInputTokens",
        "cache_read_input_tokens",
        "cached_input_tokens",
        "cacheRead",
    ]);
    let cached_write = first(&["cachedWriteTokens", "cache_creation_input_tokens", "cacheWrite"]);
    let thought = first(&["thoughtTokens", "reasoning_output_tokens", "reasoning"]);
    let total = first(&["totalTokens", "total_tokens"]);
    TokenCounts { input, output, thought, cached_read, cached_write, total }
}

/// Rounds away the floating-point error of a sum.
pub fn round_amount(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::build_event;
    use serde_json::json;

    fn prompted(turn: u64) -> Value {
        json!({ "is": "prompted", "turn": turn, "at": turn * 1000 })
    }

    fn ended(turn: u64, answer: &Value) -> Value {
        json!({ "is": "ended", "turn": turn, "at": turn * 1000 + 250, "how": "stopped", "answer": answer })
    }

    fn update(update: &Value) -> Value {
        json!({ "is": "said", "turn": 1, "frame": { "params": { "update": update } } })
    }

    fn fold_all(events: &[Value]) -> SessionUsage {
        let mut usage = SessionUsage::default();
        for it in events {
            usage.fold_event(&build_event(it));
        }
        usage
    }

    #[test]
    fn unreported_usage_is_unknown() {
        let usage =
            fold_all(&[prompted(1), ended(1, &json!({ "stopReason": "end_turn" })), prompted(2)]);
        let total = usage.total();
        assert_eq!((total.turns, total.known), (2, 0));
        assert_eq!(total.tokens, TokenCounts::default());
        assert_eq!(total.cost, None);
        assert_eq!(usage.turns[0].ms, Some(250));
        assert_eq!(usage.turns[0].ended.as_deref(), Some("end_turn"));
        assert_eq!(usage.turns[1].ended, None);
    }

    #[test]
    fn tokens_are_read_in_every_known_form() {
        let camel = json!({ "usage": { "inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cachedReadTokens": 3 } });
        let snake =
            json!({ "usage": { "input_tokens": 5, "output_tokens": 1, "total_tokens": 6 } });
        let meta = json!({ "_meta": { "quota": { "token_count": { "input_tokens": 7, "output_tokens": 2 } } } });
        let usage = fold_all(&[
            prompted(1),
            ended(1, &camel),
            prompted(2),
            ended(2, &snake),
            prompted(3),
            ended(3, &meta),
            prompted(4),
            ended(4, &json!({})),
        ]);
        let total = usage.total();
        assert_eq!((total.turns, total.known), (4, 3));
        assert_eq!((total.tokens.input, total.tokens.output), (Some(22), Some(5)));
        assert_eq!((total.tokens.total, total.tokens.cached_read), (Some(18), Some(3)));
        assert_eq!(total.tokens.thought, None);
    }

    #[test]
    fn turn_cost_of_an_adapter_is_used_without_a_session_cost() {
        let cost = json!({ "amount": 0.25, "currency": "USD" });
        let answer = json!({ "_meta": { "jackfield": { "cost": cost } } });
        let usage = fold_all(&[prompted(1), ended(1, &answer), prompted(2), ended(2, &answer)]);
        assert_eq!(usage.turns[0].cost.as_ref().map(|it| it.amount), Some(0.25));
        assert_eq!(usage.total().cost, Some(UsageCost { amount: 0.5, currency: "USD".into() }));
    }

    #[test]
    fn turn_cost_is_the_delta_of_session_cost() {
        let reported = |amount: f64| {
            update(&json!({ "sessionUpdate": "usage_update", "used": 9, "size": 100,
                            "cost": { "amount": amount, "currency": "USD" } }))
        };
        let usage =
            fold_all(&[prompted(1), reported(0.1), reported(0.3), prompted(2), reported(0.4)]);
        let cost = |turn: usize| usage.turns[turn].cost.as_ref().map(|it| it.amount);
        assert_eq!((cost(0), cost(1)), (Some(0.3), Some(0.1)));
        assert_eq!(usage.total().cost, Some(UsageCost { amount: 0.4, currency: "USD".into() }));
        assert_eq!(usage.turns[1].context, Some(ContextUsage { tokens: 9, size: Some(100) }));
    }
}
