//! Evaluates the rules for a call.
//!
//! A matching deny rule wins in every scope. Otherwise the nearest scope of a file with a matching
//! rule decides, and within a scope an ask beats an allow. Rules learned in a session extend what
//! is allowed, but never override an ask rule of a file. If no rule matches, nothing is decided.

use crate::{
    GrantDuration, Policy, Rule, RuleEffect, RuleScope, ShellCommand, ToolCallFacts, glob,
    shell::{CommandAnalysis, CommandPattern, MatchCertainty, ShellWord, loose_words},
    touched_paths::{has_only_paths_inside, match_touched_paths},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::OnceCell;

/// The effect that the rules have on a call, and the rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// Absent if no rule matches the call.
    pub effect: Option<RuleEffect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RuleScope>,
    /// The name of the rule, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file and the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The reason as one sentence for the user.
    pub why: String,
    #[serde(default)]
    pub grant: GrantDuration,
}

impl PolicyDecision {
    /// The form in which the journal stores it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and enums always have a JSON form")
    }
}

/// A rule with its origin.
#[derive(Clone, Copy)]
struct ScopedRule<'a> {
    scope: RuleScope,
    origin: &'a str,
    number: usize,
    rule: &'a Rule,
}

/// A call with the analyses of its commands, which are computed when a rule first needs them.
struct CallEvaluation<'a> {
    call: &'a ToolCallFacts,
    analyses: OnceCell<Vec<CommandAnalysis>>,
    /// The words of its unknown texts.
    unknown: OnceCell<Vec<Vec<ShellWord>>>,
    /// The words of its hints.
    hints: OnceCell<Vec<Vec<ShellWord>>>,
}

impl<'a> CallEvaluation<'a> {
    fn new(call: &'a ToolCallFacts) -> CallEvaluation<'a> {
        let (unknown, hints) = (OnceCell::new(), OnceCell::new());
        CallEvaluation { call, analyses: OnceCell::new(), unknown, hints }
    }

    fn unknown(&self) -> &[Vec<ShellWord>] {
        self.unknown.get_or_init(|| all_loose_words(&self.call.unknown))
    }

    fn hints(&self) -> &[Vec<ShellWord>] {
        self.hints.get_or_init(|| all_loose_words(&self.call.hints))
    }

    fn analyses(&self) -> &[CommandAnalysis] {
        self.analyses.get_or_init(|| self.call.commands.iter().map(ShellCommand::analyze).collect())
    }
}

fn all_loose_words(texts: &[String]) -> Vec<Vec<ShellWord>> {
    texts.iter().flat_map(|it| loose_words(it)).collect()
}

/// Evaluates all rules for a call. Several policies may have the same scope.
pub fn evaluate_rules(policies: &[(RuleScope, &Policy)], call: &ToolCallFacts) -> PolicyDecision {
    let evaluation = CallEvaluation::new(call);
    let rules = rules_by_scope(policies);
    let denies = rules
        .iter()
        .map(|it| (it, match_restricting_rule(it.rule, RuleEffect::Deny, &evaluation)))
        .filter(|it| it.1 != MatchCertainty::None);
    let denies: Vec<_> = denies.collect();
    if let Some((rule, _)) = denies.iter().find(|it| it.1 == MatchCertainty::Certain) {
        return decision_by_rule(rule, call, GrantDuration::Once);
    }
    if let Some((rule, _)) = denies.first() {
        return ask_instead_of_deny(rule, call);
    }
    let decide_scope = |scope| decide_scope(scope, &rules, &evaluation);
    let by_file = decide_scope(RuleScope::Project).or_else(|| decide_scope(RuleScope::User));
    let is_ask = |it: &(ScopedRule<'_>, GrantDuration)| it.0.rule.effect == RuleEffect::Ask;
    let decision = by_file.filter(is_ask).or_else(|| decide_scope(RuleScope::Session)).or(by_file);
    if let Some((rule, grant)) = decision {
        return decision_by_rule(&rule, call, grant);
    }
    let why =
        if rules.is_empty() { describe_no_match(call) } else { explain_no_decision(&evaluation) };
    let grant = GrantDuration::Once;
    PolicyDecision { effect: None, scope: None, rule: None, place: None, why, grant }
}

/// All rules, sorted by scope, and within a scope in the order of the files and of their rules.
fn rules_by_scope<'a>(policies: &[(RuleScope, &'a Policy)]) -> Vec<ScopedRule<'a>> {
    let mut rules: Vec<ScopedRule<'_>> = Vec::new();
    for (scope, policy) in policies {
        rules.extend(policy.rules.iter().enumerate().map(|(index, rule)| ScopedRule {
            scope: *scope,
            origin: &policy.origin,
            number: index + 1,
            rule,
        }));
    }
    rules.sort_by_key(|it| it.scope);
    rules
}

/// The ask or allow rule of one scope that decides the call, and the duration of its grant.
fn decide_scope<'a>(
    scope: RuleScope,
    rules: &[ScopedRule<'a>],
    evaluation: &CallEvaluation<'_>,
) -> Option<(ScopedRule<'a>, GrantDuration)> {
    let rules: Vec<ScopedRule<'a>> = rules.iter().filter(|it| it.scope == scope).copied().collect();
    let is_matching_ask = |it: &&ScopedRule<'_>| {
        match_restricting_rule(it.rule, RuleEffect::Ask, evaluation) != MatchCertainty::None
    };
    match rules.iter().find(is_matching_ask) {
        Some(rule) => Some((*rule, GrantDuration::Once)),
        None if evaluation.call.question => None,
        None => find_allowing_rule(&rules, evaluation),
    }
}

/// The decision for a deny rule that matches only if a variable has a certain value: the user is
/// asked.
fn ask_instead_of_deny(rule: &ScopedRule<'_>, call: &ToolCallFacts) -> PolicyDecision {
    let mut decision = decision_by_rule(rule, call, GrantDuration::Once);
    decision.effect = Some(RuleEffect::Ask);
    decision.why.push_str("; a variable in it can have any value, so the user is asked");
    decision
}

fn decision_by_rule(
    rule: &ScopedRule<'_>,
    call: &ToolCallFacts,
    grant: GrantDuration,
) -> PolicyDecision {
    let ScopedRule { scope, origin, number, rule } = rule;
    let place = match rule.line {
        Some(line) => format!("{origin}:{line}"),
        None => format!("{origin}, rule {number}"),
    };
    let verb = match rule.effect {
        RuleEffect::Allow => "allows",
        RuleEffect::Ask => "asks about",
        RuleEffect::Deny => "denies",
    };
    let name = rule.name.as_ref().map_or("a rule".to_owned(), |it| format!("rule `{it}`"));
    PolicyDecision {
        effect: Some(rule.effect),
        scope: Some(*scope),
        rule: rule.name.clone(),
        why: format!("{name} of the {scope} ({place}) {verb} {}: {rule}", call.summary()),
        place: Some(place),
        grant,
    }
}

fn describe_no_match(call: &ToolCallFacts) -> String {
    format!("no rule matches {}", call.summary())
}

fn explain_no_decision(evaluation: &CallEvaluation<'_>) -> String {
    let call = evaluation.call;
    let no_match = describe_no_match(call);
    if call.question {
        return format!("{} is a question, and rules do not answer questions", call.summary());
    }
    if call.is_cut {
        return format!("{no_match}; no rule can allow it, because its input has too many parts");
    }
    if let Some(text) = call.unknown.first() {
        let text = crate::call::shorten(text);
        return format!(
            "{no_match}; no rule about commands, paths or kinds can allow it, because the meaning \
             of a text in its input is unknown: `{text}`"
        );
    }
    match evaluation.analyses().iter().find_map(CommandAnalysis::opaque_reason) {
        Some(reason) => format!(
            "{no_match}; no `run` rule can allow it, because it is not certain what it runs: \
             {reason}"
        ),
        None => no_match,
    }
}

/// Whether a deny or ask rule matches a call. A possible match is enough.
fn match_restricting_rule(
    rule: &Rule,
    effect: RuleEffect,
    evaluation: &CallEvaluation<'_>,
) -> MatchCertainty {
    let call = evaluation.call;
    let matches_fields = rule.effect == effect
        && holds_if_given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && holds_if_given(&rule.kind, |it| {
            let declared = call.kind.as_deref().unwrap_or("other");
            it.iter().any(|it| it == declared || it == call.kind())
        })
        && holds_if_given(&rule.tool, |it| {
            let names = call.name.iter().chain(&call.aliases);
            names.into_iter().any(|name| glob::matches_name_in_any_case(it, name))
        })
        && holds_if_given(&rule.mcp, |it| {
            call.mcp.iter().any(|name| glob::matches_name_in_any_case(it, name))
        })
        && holds_if_given(&rule.exact, |it| {
            call.is_cut || call.commands.iter().any(|command| is_exact_line(it, command))
        });
    if !matches_fields {
        return MatchCertainty::None;
    }
    let mut certainty = MatchCertainty::Certain;
    if !rule.run.is_empty() && !call.is_cut {
        let runs =
            rule.run.iter().map(|it| match_run_pattern(evaluation, &CommandPattern::new(it)));
        certainty = certainty.min(runs.max().unwrap_or(MatchCertainty::None));
    }
    if certainty != MatchCertainty::None && !rule.path.is_empty() && !call.is_cut {
        let texts = [evaluation.unknown(), evaluation.hints()];
        let touched = match_touched_paths(&rule.path, call, evaluation.analyses(), texts);
        certainty = certainty.min(touched);
    }
    certainty
}

fn is_exact_line(lines: &[String], command: &ShellCommand) -> bool {
    lines.iter().any(|it| it.trim() == command.exact_text())
}

/// Whether the allow rules of one scope together allow a call. A rule without `run` is sufficient
/// alone; of the rules with `run`, one must match each command of the call.
fn find_allowing_rule<'a>(
    rules: &[ScopedRule<'a>],
    evaluation: &CallEvaluation<'_>,
) -> Option<(ScopedRule<'a>, GrantDuration)> {
    let call = evaluation.call;
    let is_candidate = |it: &&ScopedRule<'a>| {
        it.rule.effect == RuleEffect::Allow && matches_except_run(it.rule, call)
    };
    let candidates: Vec<&ScopedRule<'a>> = rules.iter().filter(is_candidate).collect();
    let allows_alone = |it: &&&ScopedRule<'a>| {
        let rule = it.rule;
        let is_exact = |it| is_exact_line(&rule.exact, it);
        match (rule.run.is_empty(), rule.exact.is_empty()) {
            (true, true) => true,
            (_, false) => !call.commands.is_empty() && call.commands.iter().all(is_exact),
            (false, true) => false,
        }
    };
    if let Some(rule) = candidates.iter().find(allows_alone) {
        return Some((**rule, rule.rule.grant));
    }
    let candidates = candidates.into_iter().filter(|it| !it.rule.run.is_empty());
    allow_each_command(&candidates.collect::<Vec<_>>(), evaluation)
}

/// Finds an allow rule for each command of the call. The grant is permanent only if each of these
/// rules gives a permanent grant.
fn allow_each_command<'a>(
    rules: &[&ScopedRule<'a>],
    evaluation: &CallEvaluation<'_>,
) -> Option<(ScopedRule<'a>, GrantDuration)> {
    let call = evaluation.call;
    if rules.is_empty() || call.commands.is_empty() {
        return None;
    }
    let mut applied_rules: Vec<&ScopedRule<'a>> = Vec::new();
    for analysis in evaluation.analyses() {
        let runs_other_file = call.runs_elsewhere() && analysis.runs_relative_file();
        if analysis.commands().is_empty() || runs_other_file {
            return None;
        }
        for command in analysis.commands() {
            let words = analysis.words_of(command);
            let allows = |it: &&&ScopedRule<'a>| {
                it.rule.run.iter().map(|it| CommandPattern::new(it)).any(|pattern| {
                    let arguments = words.get(pattern.len()..).unwrap_or_default();
                    let stays_inside =
                        |globs: &[String]| has_only_paths_inside(globs, call, arguments);
                    pattern.is_spelled_by(command, words)
                        && holds_if_given(&it.rule.path, stays_inside)
                })
            };
            applied_rules.push(rules.iter().find(allows)?);
        }
    }
    let is_permanent = applied_rules.iter().all(|it| it.rule.grant == GrantDuration::Always);
    let grant = if is_permanent { GrantDuration::Always } else { GrantDuration::Once };
    applied_rules.first().map(|it| (**it, grant))
}

/// Whether all matchers of an allow rule except `run` match for certain.
fn matches_except_run(rule: &Rule, call: &ToolCallFacts) -> bool {
    let is_about_content =
        [&rule.run, &rule.exact, &rule.path, &rule.kind].iter().any(|it| !it.is_empty());
    let is_uncertain = call.is_cut || is_about_content && !call.unknown.is_empty();
    !is_uncertain
        && holds_if_given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && holds_if_given(&rule.kind, |it| it.iter().any(|it| it == call.kind()))
        && holds_if_given(&rule.tool, |it| {
            call.name.as_ref().is_some_and(|name| glob::matches_name(it, name))
        })
        && holds_if_given(&rule.mcp, |it| {
            !call.mcp.is_empty() && call.mcp.iter().all(|name| glob::matches_name(it, name))
        })
        && holds_if_given(&rule.exact, |_| !call.runs_elsewhere())
        && holds_if_given(&rule.path, |globs| {
            let inside = call.path_context().match_inside(globs);
            let are_inside = call.paths.iter().all(|it| inside.matches(it));
            // A program may touch any file, so a rule with `path` alone does not allow it.
            let has_only_paths = !call.paths.is_empty() && call.commands.is_empty();
            are_inside && if rule.run.is_empty() { has_only_paths } else { !call.runs_elsewhere() }
        })
}

/// A matcher that is not given always holds.
fn holds_if_given(entries: &[String], holds: impl Fn(&[String]) -> bool) -> bool {
    entries.is_empty() || holds(entries)
}

fn match_run_pattern(
    evaluation: &CallEvaluation<'_>,
    pattern: &CommandPattern<'_>,
) -> MatchCertainty {
    let call = evaluation.call;
    let in_commands = evaluation.analyses().iter().map(|it| it.match_pattern(pattern)).max();
    let may_run = matches!(call.kind(), "execute" | "other");
    let hints = evaluation.hints().iter().filter(|_| may_run);
    let mut texts = evaluation.unknown().iter().chain(hints);
    let contains_pattern = |words: &Vec<ShellWord>| {
        let match_at = |start: usize| pattern.match_words(&words[start..]);
        (0..words.len()).any(|start| match_at(start) == MatchCertainty::Certain)
    };
    if texts.any(contains_pattern) {
        return MatchCertainty::Certain;
    }
    in_commands.unwrap_or(MatchCertainty::None)
}
