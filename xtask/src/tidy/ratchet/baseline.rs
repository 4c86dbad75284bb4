//! The violations that exist today. The file may only get shorter.
//!
//! ```toml
//! [one-word-types.hub]
//! Entry = 2
//! ```
//!
//! The number is the count of the violations of this rule, in this crate, with this subject.

use super::rules::{RatchetRule, RuleViolation};
use std::{collections::BTreeMap, fmt::Write as _};

pub(crate) const PATH: &str = "xtask/src/tidy/baseline.toml";

const HEADER: &str = "\
# Violations of the rules in xtask/src/tidy/ratchet/rules.rs that exist today: `subject = count`.
# A new one is refused. `cargo xtask tidy --write-baseline` removes the fixed ones.
";

/// At most this many places are listed in a complaint.
const PLACES_MAX: usize = 5;

/// Counts by rule and crate, then by subject.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RatchetBaseline {
    sections: BTreeMap<(String, String), BTreeMap<String, usize>>,
}

impl RatchetBaseline {
    pub(crate) fn from_violations(violations: &[RuleViolation]) -> Self {
        let mut baseline = Self::default();
        for it in violations {
            let section = (it.rule.id().to_owned(), it.crate_name.clone());
            let subjects = baseline.sections.entry(section).or_default();
            *subjects.entry(it.subject.clone()).or_default() += 1;
        }
        baseline
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut baseline = Self::default();
        let mut section = None;
        for (number, line) in (1..).zip(text.lines()) {
            let failure = || format!("{PATH}:{number}: failed to read `{line}`");
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').and_then(|it| it.split_once('.'));
                let (rule, crate_name) = name.ok_or_else(failure)?;
                if !RatchetRule::ALL.iter().any(|it| it.id() == rule) {
                    return Err(format!("{PATH}:{number}: there is no rule `{rule}`"));
                }
                section = Some((rule.to_owned(), crate_name.to_owned()));
                continue;
            }
            let (subject, count) = line.rsplit_once(" = ").ok_or_else(failure)?;
            let count = count.parse().map_err(|_| failure())?;
            let subjects = baseline.sections.entry(section.clone().ok_or_else(failure)?);
            subjects.or_default().insert(subject.trim_matches('"').to_owned(), count);
        }
        Ok(baseline)
    }

    pub(crate) fn to_toml(&self) -> String {
        let mut text = HEADER.to_owned();
        for rule in RatchetRule::ALL {
            let sections = self.sections.iter().filter(|((id, _), _)| id == rule.id());
            for ((id, crate_name), subjects) in sections {
                let _ = writeln!(text, "\n[{id}.{crate_name}]");
                for (subject, count) in subjects {
                    let is_bare =
                        subject.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
                    let quote = if is_bare { "" } else { "\"" };
                    let _ = writeln!(text, "{quote}{subject}{quote} = {count}");
                }
            }
        }
        text
    }

    /// All violations of one rule.
    pub(crate) fn total(&self, rule: RatchetRule) -> usize {
        let sections = self.sections.iter().filter(|((id, _), _)| id == rule.id());
        sections.flat_map(|(_, subjects)| subjects.values()).sum()
    }

    fn count(&self, rule: &str, crate_name: &str, subject: &str) -> usize {
        let section = self.sections.get(&(rule.to_owned(), crate_name.to_owned()));
        section.and_then(|it| it.get(subject)).copied().unwrap_or(0)
    }

    /// Complaints about new violations, and about fixed ones that are still listed.
    pub(crate) fn check(&self, violations: &[RuleViolation]) -> Vec<String> {
        let present = Self::from_violations(violations);
        let mut complaints = self.find_new(&present, violations);
        complaints.extend(self.find_fixed(&present));
        complaints
    }

    fn find_new(&self, present: &Self, violations: &[RuleViolation]) -> Vec<String> {
        let mut complaints = Vec::new();
        for ((rule, crate_name), subjects) in &present.sections {
            for (subject, count) in subjects {
                let known = self.count(rule, crate_name, subject);
                if *count <= known {
                    continue;
                }
                let same: Vec<_> = violations
                    .iter()
                    .filter(|it| it.rule.id() == rule && it.crate_name == *crate_name)
                    .filter(|it| it.subject == *subject)
                    .collect();
                let places: Vec<_> =
                    same.iter().take(PLACES_MAX).map(|it| it.place.as_str()).collect();
                let advice = same.first().map_or("", |it| it.rule.advice());
                complaints.push(format!(
                    "{rule}: `{subject}` in `{crate_name}`: {count} found, the baseline has \
                     {known}; {advice} ({})",
                    places.join(", ")
                ));
            }
        }
        complaints
    }

    fn find_fixed(&self, present: &Self) -> Vec<String> {
        let mut complaints = Vec::new();
        for ((rule, crate_name), subjects) in &self.sections {
            let is_fixed = |(subject, known): &(&String, &usize)| {
                present.count(rule, crate_name, subject) < **known
            };
            let fixed: Vec<_> = subjects.iter().filter(is_fixed).collect();
            if fixed.is_empty() {
                continue;
            }
            let names: Vec<_> = fixed.iter().take(PLACES_MAX).map(|it| it.0.as_str()).collect();
            let more = if PLACES_MAX < fixed.len() { ", …" } else { "" };
            complaints.push(format!(
                "{PATH}: [{rule}.{crate_name}] counts more than exists for {} entries \
                 (`{}`{more}): lower it with `cargo xtask tidy --write-baseline`",
                fixed.len(),
                names.join("`, `")
            ));
        }
        complaints
    }

    /// The baseline after a change. Violations may move to another crate or subject; a rule with
    /// more of them than before is refused.
    pub(crate) fn lower(&self, violations: &[RuleViolation]) -> Result<Self, String> {
        let present = Self::from_violations(violations);
        for rule in RatchetRule::ALL {
            let (before, after) = (self.total(rule), present.total(rule));
            if before < after {
                let id = rule.id();
                return Err(format!(
                    "{id}: {after} violations; the baseline has {before} and may only go down"
                ));
            }
        }
        Ok(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(subjects: &[&str]) -> Vec<RuleViolation> {
        let violation = |subject: &&str| RuleViolation {
            rule: RatchetRule::OneWordTypes,
            crate_name: "hub".to_owned(),
            subject: (*subject).to_owned(),
            place: format!("crates/hub/src/{subject}.rs:1"),
        };
        subjects.iter().map(violation).collect()
    }

    fn baseline(subjects: &[&str]) -> RatchetBaseline {
        RatchetBaseline::from_violations(&violations(subjects))
    }

    #[test]
    fn known_violations_are_accepted() {
        let known = ["Entry", "Entry", "Call"];
        assert_eq!(baseline(&known).check(&violations(&known)), [""; 0]);
    }

    #[test]
    fn new_violation_is_named_with_its_place() {
        let complaints = baseline(&["Entry"]).check(&violations(&["Entry", "Call"]));
        let [complaint] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert!(complaint.starts_with("one-word-types: `Call` in `hub`: 1 found"));
        assert!(complaint.contains("the baseline has 0") && complaint.contains("Call.rs:1"));
        let complaints = baseline(&["Entry"]).check(&violations(&["Entry", "Entry"]));
        assert!(complaints[0].contains("`Entry` in `hub`: 2 found, the baseline has 1"));
    }

    #[test]
    fn fixed_violation_has_to_leave_the_baseline() {
        let complaints = baseline(&["Entry", "Call"]).check(&violations(&["Call"]));
        let [complaint] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert!(complaint.contains("[one-word-types.hub] counts more than exists for 1 entries"));
        assert!(complaint.contains("`Entry`") && complaint.contains("--write-baseline"));
    }

    #[test]
    fn baseline_goes_down_and_never_up() {
        let before = baseline(&["Entry", "Call"]);
        assert_eq!(before.lower(&violations(&["Call"])), Ok(baseline(&["Call"])));
        assert_eq!(before.lower(&violations(&["Other", "Call"])), Ok(baseline(&["Other", "Call"])));
        let more = before.lower(&violations(&["Entry", "Call", "Other"]));
        assert!(more.is_err_and(|it| it.contains("3 violations; the baseline has 2")));
    }

    #[test]
    fn text_form_is_read_back() {
        let mut all = violations(&["Entry", "Entry"]);
        all.push(RuleViolation {
            rule: RatchetRule::MethodLiterals,
            crate_name: "cli".to_owned(),
            subject: "session/new".to_owned(),
            place: String::new(),
        });
        let baseline = RatchetBaseline::from_violations(&all);
        let text = baseline.to_toml();
        assert!(text.contains("[one-word-types.hub]\nEntry = 2\n"), "{text}");
        assert!(text.ends_with("[method-literals.cli]\n\"session/new\" = 1\n"), "{text}");
        assert_eq!(RatchetBaseline::parse(&text), Ok(baseline));
    }

    #[test]
    fn unknown_rule_and_unreadable_line_are_refused() {
        assert!(RatchetBaseline::parse("[rule.hub]\n").is_err_and(|it| it.contains("`rule`")));
        let text = "[metaphors.hub]\nLeg: 1\n";
        assert!(RatchetBaseline::parse(text).is_err_and(|it| it.contains(":2: failed to read")));
        assert!(RatchetBaseline::parse("Leg = 1\n").is_err());
    }
}
