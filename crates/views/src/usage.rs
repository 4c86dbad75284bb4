//! What the turns of a session have used and cost, as far as their agent has said so. Agents say it
//! in the answer to a prompt (`usage`, or one of the forms under `_meta`), in `usage_update`, in
//! both or nowhere; nowhere is unknown, never nothing.

use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, Time, TurnEnded, TurnStarted};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub thought: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
    pub total: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    pub amount: f64,
    pub currency: String,
}

/// How full the agent's context was when it last said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Context {
    pub used: u64,
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub turn: u64,
    /// How it ended: the stop reason, `failed` or `interrupted`; nothing while it runs.
    pub ended: Option<String>,
    pub began_at: Option<u64>,
    pub ms: Option<u64>,
    pub tokens: Tokens,
    pub cost: Option<Cost>,
    pub context: Option<Context>,
}

/// What a table of usage has above its columns.
pub const HEADINGS: [&str; 8] =
    ["TURN", "TIME", "INPUT", "CACHED", "OUTPUT", "TOTAL", "COST", "ENDED"];
const UNKNOWN: &str = "-";

/// Folded from the facts of a session, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub turns: Vec<Turn>,
    /// Of the whole session, as the agent last told it.
    pub cost: Option<Cost>,
    pub context: Option<Context>,
}

impl Usage {
    pub fn fold(&mut self, event: &ReceivedEvent) {
        match &event.body {
            EventBody::Prompted(TurnStarted { turn, .. }) => {
                let began_at = Some(event.at.0);
                self.turns.push(Turn { turn: *turn, began_at, ..Turn::default() });
            }
            EventBody::Said(AgentMessage { frame, .. }) => self.said(&frame["params"]["update"]),
            EventBody::Ended(ended) => self.ended(ended, event.at),
            _ => {}
        }
    }

    fn said(&mut self, update: &Value) {
        if update["sessionUpdate"] != "usage_update" {
            return;
        }
        if let Some(used) = update["used"].as_u64() {
            self.context = Some(Context { used, size: update["size"].as_u64() });
            if let Some(turn) = self.turns.last_mut() {
                turn.context = self.context;
            }
        }
        if let Some(cost) = cost_of(&update["cost"]) {
            self.spend(cost);
        }
    }

    /// Agents tell the sum so far: a turn's part is what it has grown by.
    fn spend(&mut self, now: Cost) {
        let before = self.cost.replace(now.clone());
        let before = match before {
            Some(it) if it.currency == now.currency => it.amount,
            Some(_) => return,
            None => 0.0,
        };
        let Some(turn) = self.turns.last_mut() else { return };
        let so_far = turn.cost.as_ref().map_or(0.0, |it| it.amount);
        let amount = rounded(so_far + (now.amount - before).max(0.0));
        turn.cost = Some(Cost { amount, ..now });
    }

    fn ended(&mut self, ended: &TurnEnded<Value>, at: Time) {
        let Some(turn) = self.turns.iter_mut().rfind(|it| it.turn == ended.turn) else { return };
        let answer = ended.outcome.json();
        turn.ended = Some(answer["stopReason"].as_str().unwrap_or(ended.outcome.name()).to_owned());
        turn.ms = turn.began_at.map(|it| at.since(Time(it)));
        if let Some(usage) = usage_of_answer(answer) {
            turn.tokens = tokens_of(usage);
        }
        if turn.cost.is_none() {
            turn.cost = cost_of_answer(answer);
        }
    }

    /// What is known of all turns together, and of how many it is known.
    pub fn sum(&self) -> Sum {
        let known = self.turns.iter().filter(|it| it.tokens != Tokens::default()).count();
        let of = |member: fn(&Tokens) -> Option<u64>| {
            self.turns
                .iter()
                .filter_map(|it| member(&it.tokens))
                .fold(None, |sum, it| Some(sum.unwrap_or(0u64).saturating_add(it)))
        };
        let tokens = Tokens {
            input: of(|it| it.input),
            output: of(|it| it.output),
            thought: of(|it| it.thought),
            cached_read: of(|it| it.cached_read),
            cached_write: of(|it| it.cached_write),
            total: of(|it| it.total),
        };
        Sum { turns: self.turns.len(), known, tokens, cost: self.whole_cost() }
    }

    fn whole_cost(&self) -> Option<Cost> {
        if self.cost.is_some() {
            return self.cost.clone();
        }
        let mut costs = self.turns.iter().filter_map(|it| it.cost.clone());
        let first = costs.next()?;
        costs.try_fold(first, |sum, it| {
            let amount = rounded(sum.amount + it.amount);
            (sum.currency == it.currency).then_some(Cost { amount, ..sum })
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sum {
    pub turns: usize,
    /// Turns of which tokens are known.
    pub known: usize,
    pub tokens: Tokens,
    pub cost: Option<Cost>,
}

/// Where an answer to a prompt tells what it used.
fn usage_of_answer(answer: &Value) -> Option<&Value> {
    let meta = &answer["_meta"];
    let places =
        [&answer["usage"], &meta["usage"], &meta["quota"]["token_count"], &meta["tokenUsage"]];
    places.into_iter().find(|it| it.is_object())
}

/// What the answer says that the turn has cost: beside the usage, or where our adapters put it.
pub(crate) fn cost_of_answer(answer: &Value) -> Option<Cost> {
    let beside = usage_of_answer(answer).and_then(|it| cost_of(&it["cost"]));
    beside.or_else(|| cost_of(&answer["_meta"]["jackfield"]["cost"]))
}

impl Turn {
    /// Its row in a table.
    pub fn cells(&self) -> [String; 8] {
        let time = self.ms.map_or_else(|| UNKNOWN.to_owned(), seconds);
        let ended = self.ended.as_deref().unwrap_or(UNKNOWN);
        cells(&self.turn.to_string(), time, &self.tokens, self.cost.as_ref(), ended)
    }
}

impl Sum {
    /// The last row of a table.
    pub fn cells(&self) -> [String; 8] {
        let known = match (self.known, self.turns) {
            (0, _) => "no turn said what it used".to_owned(),
            (known, turns) if known < turns => format!("{known} of {turns} turns said so"),
            _ => String::new(),
        };
        cells("sum", String::new(), &self.tokens, self.cost.as_ref(), &known)
    }
}

fn cells(
    name: &str,
    time: String,
    tokens: &Tokens,
    cost: Option<&Cost>,
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
        cost.map_or_else(|| UNKNOWN.to_owned(), Cost::to_string),
        last.to_owned(),
    ]
}

/// `8.2 s`.
pub fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

impl fmt::Display for Cost {
    /// `0.0421 USD`: cents are too coarse for one turn.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = format!("{:.6}", self.amount);
        let amount = amount.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{amount} {}", self.currency.chars().take(8).collect::<String>())
    }
}

impl fmt::Display for Context {
    /// `1200 of 200000 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.size.map(|it| format!(" of {it}")).unwrap_or_default();
        write!(f, "{}{of} tokens", self.used)
    }
}

fn tokens_of(usage: &Value) -> Tokens {
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
    Tokens { input, output, thought, cached_read, cached_write, total }
}

fn cost_of(cost: &Value) -> Option<Cost> {
    let amount = cost["amount"].as_f64().filter(|it| it.is_finite() && 0.0 <= *it)?;
    let currency = cost["currency"].as_str().unwrap_or("USD").to_owned();
    Some(Cost { amount, currency })
}

/// Sums of tenths are not tenths of sums.
fn rounded(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::received;
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

    fn usage(facts: &[Value]) -> Usage {
        let mut usage = Usage::default();
        for it in facts {
            usage.fold(&received(it));
        }
        usage
    }

    #[test]
    fn what_nobody_has_said_is_unknown() {
        let usage =
            usage(&[prompted(1), ended(1, &json!({ "stopReason": "end_turn" })), prompted(2)]);
        let sum = usage.sum();
        assert_eq!((sum.turns, sum.known), (2, 0));
        assert_eq!(sum.tokens, Tokens::default());
        assert_eq!(sum.cost, None);
        assert_eq!(usage.turns[0].ms, Some(250));
        assert_eq!(usage.turns[0].ended.as_deref(), Some("end_turn"));
        assert_eq!(usage.turns[1].ended, None);
    }

    #[test]
    fn tokens_come_in_the_answer_in_several_forms() {
        let camel = json!({ "usage": { "inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cachedReadTokens": 3 } });
        let snake =
            json!({ "usage": { "input_tokens": 5, "output_tokens": 1, "total_tokens": 6 } });
        let meta = json!({ "_meta": { "quota": { "token_count": { "input_tokens": 7, "output_tokens": 2 } } } });
        let usage = usage(&[
            prompted(1),
            ended(1, &camel),
            prompted(2),
            ended(2, &snake),
            prompted(3),
            ended(3, &meta),
            prompted(4),
            ended(4, &json!({})),
        ]);
        let sum = usage.sum();
        assert_eq!((sum.turns, sum.known), (4, 3));
        assert_eq!((sum.tokens.input, sum.tokens.output), (Some(22), Some(5)));
        assert_eq!((sum.tokens.total, sum.tokens.cached_read), (Some(18), Some(3)));
        assert_eq!(sum.tokens.thought, None);
    }

    #[test]
    fn what_an_adapter_says_that_a_turn_has_cost_counts_if_no_sum_is_told() {
        let cost = json!({ "amount": 0.25, "currency": "USD" });
        let answer = json!({ "_meta": { "jackfield": { "cost": cost } } });
        let usage = usage(&[prompted(1), ended(1, &answer), prompted(2), ended(2, &answer)]);
        assert_eq!(usage.turns[0].cost.as_ref().map(|it| it.amount), Some(0.25));
        assert_eq!(usage.sum().cost, Some(Cost { amount: 0.5, currency: "USD".into() }));
    }

    #[test]
    fn a_turn_costs_what_the_sum_grew_by() {
        let spent = |amount: f64| {
            update(&json!({ "sessionUpdate": "usage_update", "used": 9, "size": 100,
                            "cost": { "amount": amount, "currency": "USD" } }))
        };
        let usage = usage(&[prompted(1), spent(0.1), spent(0.3), prompted(2), spent(0.4)]);
        let cost = |turn: usize| usage.turns[turn].cost.as_ref().map(|it| it.amount);
        assert_eq!((cost(0), cost(1)), (Some(0.3), Some(0.1)));
        assert_eq!(usage.sum().cost, Some(Cost { amount: 0.4, currency: "USD".into() }));
        assert_eq!(usage.turns[1].context, Some(Context { used: 9, size: Some(100) }));
    }
}
