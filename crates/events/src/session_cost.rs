//! The cost of a session, as far as its agent reports it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A cost that an agent has reported.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedCost {
    pub amount: f64,
    pub currency: String,
}

impl ReportedCost {
    /// Reads `{"amount":…,"currency":…}`.
    pub fn parse(cost: &Value) -> Option<ReportedCost> {
        let amount = cost["amount"].as_f64().filter(|it| it.is_finite() && 0.0 <= *it)?;
        let currency = cost["currency"].as_str().unwrap_or("USD").to_owned();
        Some(ReportedCost { amount, currency })
    }

    /// Finds the cost of a turn in the result of its prompt: in the usage, or where our adapters put it.
    pub fn of_turn(answer: &Value) -> Option<ReportedCost> {
        let in_usage = find_usage(answer).and_then(|it| ReportedCost::parse(&it["cost"]));
        in_usage.or_else(|| ReportedCost::parse(&answer["_meta"]["jackfield"]["cost"]))
    }
}

/// Finds the usage in the result of a prompt.
pub fn find_usage(answer: &Value) -> Option<&Value> {
    let meta = &answer["_meta"];
    let places =
        [&answer["usage"], &meta["usage"], &meta["quota"]["token_count"], &meta["tokenUsage"]];
    places.into_iter().find(|it| it.is_object())
}

/// The cost of a whole session in its summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCost {
    /// In millionths of the currency.
    micros: u64,
    currency: String,
    /// The agent reports the cost of the session so far, so that those of turns are not added.
    is_total: bool,
}

/// The length of the name of a currency. A longer one is not kept.
const CURRENCY_BYTES_MAX: usize = 16;
const MICROS: f64 = 1e6;

impl SessionCost {
    /// `{"amount":…,"currency":…}`
    pub fn to_value(&self) -> Value {
        let micros = u32::try_from(self.micros % 1_000_000).expect("it is less than a million");
        let whole = u32::try_from(self.micros / 1_000_000).unwrap_or(u32::MAX);
        let amount = f64::from(whole) + f64::from(micros) / MICROS;
        serde_json::json!({ "amount": amount, "currency": self.currency })
    }

    /// Replaces the cost of a session by the one that the agent reports for the whole session.
    pub(crate) fn set_total(cost: &mut Option<SessionCost>, reported: &ReportedCost) {
        if let Some(mut total) = SessionCost::from_reported(reported) {
            total.is_total = true;
            *cost = Some(total);
        }
    }

    /// Adds the cost of a turn.
    pub(crate) fn add_turn(cost: &mut Option<SessionCost>, reported: &ReportedCost) {
        let Some(turn) = SessionCost::from_reported(reported) else { return };
        match cost {
            None => *cost = Some(turn),
            Some(sum) if !sum.is_total && sum.currency == turn.currency => {
                sum.micros = sum.micros.saturating_add(turn.micros);
            }
            Some(_) => {}
        }
    }

    fn from_reported(reported: &ReportedCost) -> Option<SessionCost> {
        let micros = (reported.amount * MICROS).round();
        let is_known = micros < f64::from(u32::MAX) * MICROS;
        let is_short = reported.currency.len() <= CURRENCY_BYTES_MAX;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number is not negative, and its size is checked"
        )]
        let micros = (is_known && is_short).then_some(micros as u64)?;
        Some(SessionCost { micros, currency: reported.currency.clone(), is_total: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reported(amount: f64, currency: &str) -> ReportedCost {
        ReportedCost { amount, currency: currency.to_owned() }
    }

    #[test]
    fn costs_of_turns_are_added_until_the_agent_reports_a_total() {
        let mut cost = None;
        for amount in [0.25, 0.1, 0.000_001] {
            SessionCost::add_turn(&mut cost, &reported(amount, "USD"));
        }
        SessionCost::add_turn(&mut cost, &reported(7.0, "EUR"));
        let value = |it: &Option<SessionCost>| it.as_ref().map(SessionCost::to_value);
        assert_eq!(value(&cost), Some(json!({ "amount": 0.350_001, "currency": "USD" })));
        SessionCost::set_total(&mut cost, &reported(12.5, "EUR"));
        SessionCost::add_turn(&mut cost, &reported(1.0, "EUR"));
        assert_eq!(value(&cost), Some(json!({ "amount": 12.5, "currency": "EUR" })));
    }

    #[test]
    fn absurd_costs_are_not_kept() {
        let mut cost = None;
        SessionCost::set_total(&mut cost, &reported(1e300, "USD"));
        SessionCost::set_total(&mut cost, &reported(1.0, "a currency with a long name"));
        assert_eq!(cost, None);
        assert_eq!(ReportedCost::parse(&json!({ "amount": -1.0 })), None);
    }
}
