//! What the rules say about a call.
//!
//! A matching deny wins wherever it stands. Otherwise the nearest written scope with a rule that
//! matches decides, and in it an ask beats an allow; what was learned in a session adds to what is
//! allowed, and never to what an ask of a file wants a person to see. If no rule matches, nothing is
//! decided.

use crate::{
    Call, Effect, Grant, Policy, Rule, Scope, glob,
    shell::{Hit, Pattern, Reading, Word, loose},
    touch::{stays_inside, touches},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::OnceCell;

/// What the rules say, and which of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Absent if no rule speaks of the call.
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The name of the rule, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file and the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// One sentence for people.
    pub why: String,
    #[serde(default)]
    pub grant: Grant,
}

impl Decision {
    /// As it stands in the journal.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and enums always have a JSON form")
    }
}

/// A rule in its place.
#[derive(Clone, Copy)]
struct Seat<'a> {
    scope: Scope,
    origin: &'a str,
    number: usize,
    rule: &'a Rule,
}

/// A call, and the readings of its commands once a rule wants them.
struct Case<'a> {
    call: &'a Call,
    readings: OnceCell<Vec<Reading>>,
    /// The words of its unknown texts, and of its hints.
    unknown: OnceCell<Vec<Vec<Word>>>,
    hints: OnceCell<Vec<Vec<Word>>>,
}

impl<'a> Case<'a> {
    fn new(call: &'a Call) -> Case<'a> {
        let (unknown, hints) = (OnceCell::new(), OnceCell::new());
        Case { call, readings: OnceCell::new(), unknown, hints }
    }

    fn unknown(&self) -> &[Vec<Word>] {
        self.unknown.get_or_init(|| self.call.unknown.iter().flat_map(|it| loose(it)).collect())
    }

    fn hints(&self) -> &[Vec<Word>] {
        self.hints.get_or_init(|| self.call.hints.iter().flat_map(|it| loose(it)).collect())
    }

    fn readings(&self) -> &[Reading] {
        self.readings.get_or_init(|| self.call.commands.iter().map(crate::Shell::read).collect())
    }
}

/// Asks all rules about a call. Several policies may have one scope.
pub fn decide(policies: &[(Scope, &Policy)], call: &Call) -> Decision {
    let case = Case::new(call);
    let mut seats: Vec<Seat<'_>> = Vec::new();
    for (scope, policy) in policies {
        let rules = policy.rules.iter().enumerate();
        seats.extend(rules.map(|(index, rule)| Seat {
            scope: *scope,
            origin: &policy.origin,
            number: index + 1,
            rule,
        }));
    }
    // Stable: inside a scope, the order of the files and of their rules.
    seats.sort_by_key(|it| it.scope);
    let denies = seats.iter().map(|it| (it, restrains(it.rule, Effect::Deny, &case)));
    let denies: Vec<_> = denies.filter(|it| it.1 != Hit::No).collect();
    if let Some((seat, _)) = denies.iter().find(|it| it.1 == Hit::Yes) {
        return decided(seat, call, Grant::Once);
    }
    if let Some((seat, _)) = denies.first() {
        return doubted(seat, call);
    }
    let of_scope = |scope: Scope| {
        let near: Vec<Seat<'_>> = seats.iter().filter(|it| it.scope == scope).copied().collect();
        let ask = near.iter().find(|it| restrains(it.rule, Effect::Ask, &case) != Hit::No);
        match ask {
            Some(seat) => Some((*seat, Grant::Once)),
            None if call.question => None,
            None => allowed(&near, &case),
        }
    };
    let written = of_scope(Scope::Project).or_else(|| of_scope(Scope::User));
    let asks = |it: &(Seat<'_>, Grant)| it.0.rule.effect == Effect::Ask;
    let decision = written.filter(asks).or_else(|| of_scope(Scope::Session)).or(written);
    if let Some((seat, grant)) = decision {
        return decided(&seat, call, grant);
    }
    let why = if seats.is_empty() { no_rule(call) } else { undecided(&case) };
    Decision { effect: None, scope: None, rule: None, place: None, why, grant: Grant::Once }
}

/// A deny that would hold if a word became what it could: a person is asked.
fn doubted(seat: &Seat<'_>, call: &Call) -> Decision {
    let mut decision = decided(seat, call, Grant::Once);
    decision.effect = Some(Effect::Ask);
    decision.why.push_str("; a variable in it could be anything, so a person is asked");
    decision
}

fn decided(seat: &Seat<'_>, call: &Call, grant: Grant) -> Decision {
    let place = match seat.rule.line {
        Some(line) => format!("{}:{line}", seat.origin),
        None => format!("{}, rule {}", seat.origin, seat.number),
    };
    let verb = match seat.rule.effect {
        Effect::Allow => "allows",
        Effect::Ask => "asks about",
        Effect::Deny => "denies",
    };
    let called = seat.rule.name.as_ref().map_or("a rule".to_owned(), |it| format!("rule `{it}`"));
    Decision {
        effect: Some(seat.rule.effect),
        scope: Some(seat.scope),
        rule: seat.rule.name.clone(),
        why: format!(
            "{called} of the {} ({place}) {verb} {}: {}",
            seat.scope,
            call.summary(),
            seat.rule
        ),
        place: Some(place),
        grant,
    }
}

fn no_rule(call: &Call) -> String {
    format!("no rule speaks of {}", call.summary())
}

fn undecided(case: &Case<'_>) -> String {
    let call = case.call;
    let none = no_rule(call);
    if call.question {
        return format!("{} is a question, and no rule answers for a person", call.summary());
    }
    if call.is_cut {
        return format!("{none}, and none can allow it: its input has too many parts");
    }
    if let Some(text) = call.unknown.first() {
        let text = crate::call::short(text);
        return format!(
            "{none}; no rule about commands, paths or kinds can allow it, because its input has a \
             text that may be anything: `{text}`"
        );
    }
    match case.readings().iter().find_map(Reading::opaque) {
        Some(why) => format!(
            "{none}; no `run` rule can allow it, because what it runs is not certain: {why}"
        ),
        None => none,
    }
}

/// Whether a rule of this effect, deny or ask, holds: what is suspicious is enough.
fn restrains(rule: &Rule, effect: Effect, case: &Case<'_>) -> Hit {
    let call = case.call;
    let speaks = rule.effect == effect
        && given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && given(&rule.kind, |it| {
            let declared = call.kind.as_deref().unwrap_or("other");
            it.iter().any(|it| it == declared || it == call.kind())
        })
        && given(&rule.tool, |it| {
            let names = call.name.iter().chain(&call.aliases);
            names.into_iter().any(|name| glob::resembles_name(it, name))
        })
        && given(&rule.mcp, |it| call.mcp.iter().any(|name| glob::resembles_name(it, name)))
        && given(&rule.exact, |it| {
            call.is_cut || call.commands.iter().any(|own| is_exactly(it, own))
        });
    if !speaks {
        return Hit::No;
    }
    let mut hit = Hit::Yes;
    if !rule.run.is_empty() && !call.is_cut {
        let runs = rule.run.iter().map(|it| shows(case, &Pattern::of(it)));
        hit = hit.min(runs.max().unwrap_or(Hit::No));
    }
    if hit != Hit::No && !rule.path.is_empty() && !call.is_cut {
        hit = hit.min(touches(&rule.path, call, case.readings(), [case.unknown(), case.hints()]));
    }
    hit
}

fn is_exactly(lines: &[String], command: &crate::Shell) -> bool {
    lines.iter().any(|it| it.trim() == command.exact_text())
}

/// Whether the allow rules of one scope, taken together, let a call through: a rule without `run`
/// alone; of those with `run`, each command of the call needs one.
fn allowed<'a>(seats: &[Seat<'a>], case: &Case<'_>) -> Option<(Seat<'a>, Grant)> {
    let call = case.call;
    let fits = |it: &&Seat<'a>| it.rule.effect == Effect::Allow && fits(it.rule, call);
    let fitting: Vec<&Seat<'a>> = seats.iter().filter(fits).collect();
    let whole = fitting.iter().find(|it| {
        let rule = it.rule;
        let exactly = |it| is_exactly(&rule.exact, it);
        match (rule.run.is_empty(), rule.exact.is_empty()) {
            (true, true) => true,
            (_, false) => !call.commands.is_empty() && call.commands.iter().all(exactly),
            (false, true) => false,
        }
    });
    if let Some(seat) = whole {
        return Some((**seat, seat.rule.grant));
    }
    let fitting: Vec<&Seat<'a>> =
        fitting.into_iter().filter(|it| !it.rule.run.is_empty()).collect();
    if fitting.is_empty() || call.commands.is_empty() {
        return None;
    }
    let mut used: Vec<&Seat<'a>> = Vec::new();
    for reading in case.readings() {
        let elsewhere = call.runs_elsewhere() && reading.runs_relative_file();
        if reading.commands().is_empty() || elsewhere {
            return None;
        }
        for command in reading.commands() {
            let words = reading.words_of(command);
            let holds = |it: &&&Seat<'a>| {
                it.rule.run.iter().map(|it| Pattern::of(it)).any(|pattern| {
                    let rest = words.get(pattern.length()..).unwrap_or_default();
                    pattern.spells(command, words)
                        && given(&it.rule.path, |globs| stays_inside(globs, call, rest))
                })
            };
            used.push(fitting.iter().find(holds)?);
        }
    }
    let all = used.iter().all(|it| it.rule.grant == Grant::Always);
    let grant = if all { Grant::Always } else { Grant::Once };
    used.first().map(|it| (**it, grant))
}

/// Whether everything but `run` holds, for certain.
fn fits(rule: &Rule, call: &Call) -> bool {
    let about_content =
        [&rule.run, &rule.exact, &rule.path, &rule.kind].iter().any(|it| !it.is_empty());
    let unknown = call.is_cut || about_content && !call.unknown.is_empty();
    !unknown
        && given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && given(&rule.kind, |it| it.iter().any(|it| it == call.kind()))
        && given(&rule.tool, |it| {
            call.name.as_ref().is_some_and(|name| glob::matches_name(it, name))
        })
        && given(&rule.mcp, |it| {
            !call.mcp.is_empty() && call.mcp.iter().all(|name| glob::matches_name(it, name))
        })
        && given(&rule.exact, |_| !call.runs_elsewhere())
        && given(&rule.path, |globs| {
            let inside = call.place().inside(globs);
            let all = call.paths.iter().all(|it| inside.matches(it));
            // A program may touch anything: a rule about paths alone does not allow it.
            let alone = !call.paths.is_empty() && call.commands.is_empty();
            all && if rule.run.is_empty() { alone } else { !call.runs_elsewhere() }
        })
}

/// A matcher that is not given holds.
fn given(entries: &[String], holds: impl Fn(&[String]) -> bool) -> bool {
    entries.is_empty() || holds(entries)
}

fn shows(case: &Case<'_>, pattern: &Pattern<'_>) -> Hit {
    let call = case.call;
    let run = case.readings().iter().map(|it| it.hit(pattern)).max().unwrap_or(Hit::No);
    let may_run = matches!(call.kind(), "execute" | "other");
    let texts = case.unknown().iter().chain(case.hints().iter().filter(|_| may_run));
    let hinted =
        |words: &Vec<Word>| (0..words.len()).any(|start| pattern.hit(&words[start..]) == Hit::Yes);
    if texts.into_iter().any(hinted) { Hit::Yes } else { run }
}
