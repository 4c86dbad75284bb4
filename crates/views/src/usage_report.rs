//! The usage of several sessions, summed by agent, model, day or project.

use crate::usage::{SessionUsage, TokenCounts, TurnUsageRow, UsageCost, round_amount};
use jackfield_protocol::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What the turns of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    Agent,
    /// Unknown if the agent does not report it.
    Model,
    /// In UTC.
    Day,
    /// The working directory.
    Project,
}

/// The turns of one agent, model, day or project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageGroup {
    pub sessions: u64,
    pub turns: u64,
    /// The number of turns with known tokens.
    pub known: u64,
    pub tokens: TokenCounts,
    /// One cost per currency.
    pub costs: Vec<UsageCost>,
}

/// The groups by name, and their sum.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageReport {
    grouping: UsageGrouping,
    /// Only turns that began at this time or later, in milliseconds since the epoch.
    since: u64,
    groups: BTreeMap<String, UsageGroup>,
    sum: UsageGroup,
}

const UNKNOWN: &str = "unknown";

impl UsageReport {
    pub fn new(grouping: UsageGrouping, since: u64) -> UsageReport {
        UsageReport { grouping, since, groups: BTreeMap::new(), sum: UsageGroup::default() }
    }

    pub fn groups(&self) -> &BTreeMap<String, UsageGroup> {
        &self.groups
    }

    pub fn sum(&self) -> &UsageGroup {
        &self.sum
    }

    /// Adds the turns of a session.
    pub fn add_session(&mut self, agent: &str, project: &str, usage: &SessionUsage) {
        let mut by_group: BTreeMap<String, UsageGroup> = BTreeMap::new();
        let recent = usage.turns.iter().filter(|it| self.since <= it.began_at.unwrap_or(0));
        for turn in recent {
            let name = match self.grouping {
                UsageGrouping::Agent => agent.to_owned(),
                UsageGrouping::Model => turn.model.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
                UsageGrouping::Day => format_day(turn.began_at),
                UsageGrouping::Project => project.to_owned(),
            };
            by_group.entry(name).or_default().add_turn(turn);
        }
        let mut session = UsageGroup::default();
        for (name, mut group) in by_group {
            group.sessions = 1;
            session.add_group(&group);
            self.groups.entry(name).or_default().add_group(&group);
        }
        session.sessions = session.sessions.min(1);
        self.sum.add_group(&session);
    }
}

impl UsageGroup {
    fn add_turn(&mut self, turn: &TurnUsageRow) {
        self.turns += 1;
        self.known += u64::from(turn.tokens != TokenCounts::default());
        self.tokens.add(&turn.tokens);
        if let Some(cost) = &turn.cost {
            self.add_cost(cost);
        }
    }

    fn add_group(&mut self, other: &UsageGroup) {
        self.sessions += other.sessions;
        self.turns += other.turns;
        self.known += other.known;
        self.tokens.add(&other.tokens);
        for cost in &other.costs {
            self.add_cost(cost);
        }
    }

    fn add_cost(&mut self, cost: &UsageCost) {
        match self.costs.iter_mut().find(|it| it.currency == cost.currency) {
            Some(sum) => sum.amount = round_amount(sum.amount + cost.amount),
            None => self.costs.push(cost.clone()),
        }
    }
}

fn format_day(at: Option<u64>) -> String {
    at.map_or_else(
        || UNKNOWN.to_owned(),
        |it| rfc3339(it).chars().take("2026-01-31".len()).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    fn turn(day: u64, model: &str, total: Option<u64>, amount: f64) -> TurnUsageRow {
        TurnUsageRow {
            began_at: Some(day * DAY_MS),
            model: (!model.is_empty()).then(|| model.to_owned()),
            tokens: TokenCounts { total, ..TokenCounts::default() },
            cost: Some(UsageCost { amount, currency: "USD".to_owned() }),
            ..TurnUsageRow::default()
        }
    }

    fn report(grouping: UsageGrouping, since: u64) -> UsageReport {
        let mut report = UsageReport::new(grouping, since);
        let mut usage = SessionUsage::default();
        usage.turns = vec![turn(1, "a", Some(10), 0.1), turn(2, "b", Some(20), 0.2)];
        report.add_session("x", "/srv", &usage);
        usage.turns = vec![turn(2, "", None, 0.4)];
        report.add_session("y", "/srv", &usage);
        report
    }

    fn rows(report: &UsageReport) -> Vec<(&str, u64, u64, Option<u64>)> {
        let groups = report.groups().iter();
        groups.map(|(name, it)| (name.as_str(), it.sessions, it.turns, it.tokens.total)).collect()
    }

    #[test]
    fn turns_are_summed_by_agent_model_or_day() {
        let by_agent = report(UsageGrouping::Agent, 0);
        assert_eq!(rows(&by_agent), [("x", 1, 2, Some(30)), ("y", 1, 1, None)]);
        let sum = by_agent.sum();
        assert_eq!((sum.sessions, sum.turns, sum.known, sum.tokens.total), (2, 3, 2, Some(30)));
        assert_eq!(sum.costs, [UsageCost { amount: 0.7, currency: "USD".to_owned() }]);
        assert_eq!(
            rows(&report(UsageGrouping::Model, 0)),
            [("a", 1, 1, Some(10)), ("b", 1, 1, Some(20)), ("unknown", 1, 1, None)]
        );
        assert_eq!(
            rows(&report(UsageGrouping::Day, 0)),
            [("1970-01-02", 1, 1, Some(10)), ("1970-01-03", 2, 2, Some(20))]
        );
    }

    #[test]
    fn turns_before_the_period_are_left_out() {
        let recent = report(UsageGrouping::Agent, 2 * DAY_MS);
        assert_eq!(rows(&recent), [("x", 1, 1, Some(20)), ("y", 1, 1, None)]);
        assert_eq!(recent.sum().sessions, 2);
    }
}
