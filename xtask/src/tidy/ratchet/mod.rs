//! Rules that the code does not meet yet. The baseline lists today's violations: a new one is
//! refused, and a fixed one has to leave the list.

mod allowed;
mod baseline;
mod metaphors;
mod module_graph;
mod naming;
mod rules;

pub(super) use allowed::ALLOWED;
pub(super) use baseline::RatchetBaseline;
pub(super) use naming::{CONVENTIONAL_FUNCTIONS, has_one_word};
pub(super) use rules::{RatchetRule, RuleViolation};

use super::parse::SourceTree;
use allowed::AllowedName;
use std::fs;

/// The violations of all rules without the allowed ones, and complaints about the exceptions.
pub(super) fn find_violations(
    tree: &SourceTree<'_>,
    allowed: &[AllowedName],
) -> (Vec<RuleViolation>, Vec<String>) {
    let rules = RatchetRule::ALL.iter();
    let mut violations: Vec<_> = rules.flat_map(|it| it.find_violations(tree)).collect();
    let complaints = allowed::remove_allowed(&mut violations, allowed);
    (violations, complaints)
}

/// Complaints about the production code, compared with the baseline.
pub(super) fn check(tree: &SourceTree<'_>) -> Vec<String> {
    let (violations, mut complaints) = find_violations(tree, ALLOWED);
    match read_baseline() {
        Ok(baseline) => complaints.extend(baseline.check(&violations)),
        Err(error) => complaints.push(error),
    }
    complaints
}

/// Writes the present violations as the new baseline; refuses if a rule has more of them.
pub(super) fn write_baseline(tree: &SourceTree<'_>) -> Result<(), String> {
    let (violations, _) = find_violations(tree, ALLOWED);
    let present = if fs::exists(baseline::PATH).is_ok_and(|it| it) {
        read_baseline()?.lower(&violations)?
    } else {
        RatchetBaseline::from_violations(&violations)
    };
    let failure = |error| format!("failed to write {}: {error}", baseline::PATH);
    fs::write(baseline::PATH, present.to_toml()).map_err(failure)
}

fn read_baseline() -> Result<RatchetBaseline, String> {
    let failure = |error| format!("failed to read {}: {error}", baseline::PATH);
    RatchetBaseline::parse(&fs::read_to_string(baseline::PATH).map_err(failure)?)
}
