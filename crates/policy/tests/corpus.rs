//! A table of command lines with their expected verdicts. One test lists every mismatch.

use jackfield_policy::{
    Policy, RuleEffect, RuleScope, ToolCallFacts, evaluate_rules, parse_policy,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _};

const TABLE: &str = include_str!("corpus/commands.tsv");

/// The minimum size of the table, so that it cannot shrink by mistake.
const LINES_MIN: usize = 400;

struct CorpusLine {
    number: usize,
    verdict: &'static str,
    rules: &'static str,
    line: String,
}

fn rows() -> (BTreeMap<&'static str, Policy>, Vec<CorpusLine>) {
    let mut policies = BTreeMap::new();
    let mut rows = Vec::new();
    for (index, text) in TABLE.lines().enumerate() {
        let number = index + 1;
        if text.is_empty() || text.starts_with("# ") {
            continue;
        }
        if let Some((name, rules)) = text.strip_prefix('@').and_then(|it| it.split_once('\t')) {
            let policy = parse_policy(&format!("rule = [{rules}]"), "corpus").unwrap();
            policies.insert(name, policy);
            continue;
        }
        let mut cells = text.splitn(3, '\t');
        let mut cell = || cells.next().unwrap_or_else(|| panic!("line {number} has three cells"));
        let (verdict, rules, line) = (cell(), cell(), cell());
        assert!(["allow", "ask", "deny"].contains(&verdict), "line {number}: {verdict}");
        let signs = [('␊', '\n'), ('␉', '\t'), ('␍', '\r'), ('␀', '\0')];
        let sign = |it: char| signs.iter().find(|(sign, _)| *sign == it).map_or(it, |it| it.1);
        rows.push(CorpusLine { number, verdict, rules, line: line.chars().map(sign).collect() });
    }
    (policies, rows)
}

fn verdict(policy: &Policy, command: &Value) -> &'static str {
    let params = json!({ "toolCall": { "kind": "execute", "rawInput": { "command": command } } });
    let call = ToolCallFacts::from_request("claude", "/user/project", Some("/user"), &params, None);
    match evaluate_rules(&[(RuleScope::User, policy)], &call).effect {
        Some(RuleEffect::Allow) => "allow",
        Some(RuleEffect::Deny) => "deny",
        Some(RuleEffect::Ask) | None => "ask",
    }
}

#[test]
fn every_line_of_the_table_gets_its_verdict() {
    let (policies, rows) = rows();
    assert!(rows.len() >= LINES_MIN, "{} lines", rows.len());
    let mut mismatches = String::new();
    for row in &rows {
        let found = verdict(&policies[row.rules], &json!(row.line));
        if found != row.verdict {
            let CorpusLine { number, verdict, rules, line } = row;
            writeln!(mismatches, "line {number}: {rules}: {line:?} is {found}, not {verdict}")
                .unwrap();
        }
    }
    assert!(
        mismatches.is_empty(),
        "{} of {}:\n{mismatches}",
        mismatches.lines().count(),
        rows.len()
    );
}

#[test]
fn denied_line_stays_denied_inside_a_shell() {
    let (policies, rows) = rows();
    for row in rows.iter().filter(|it| it.verdict == "deny" && !it.line.contains('\0')) {
        let policy = &policies[row.rules];
        let quoted = format!("'{}'", row.line.replace('\'', "'\\''"));
        for line in [
            format!("bash -c {quoted}"),
            format!("sudo sh -c {quoted}"),
            format!("ls; {}", row.line),
        ] {
            assert_ne!(verdict(policy, &json!(line)), "allow", "line {}: {line:?}", row.number);
        }
        let argv = json!(["bash", "-lc", row.line]);
        assert_ne!(verdict(policy, &argv), "allow", "line {}: {argv}", row.number);
    }
}
