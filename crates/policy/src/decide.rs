//! What the rules say about a call.
//!
//! A matching deny wins wherever it stands. Otherwise the nearest scope with a rule that matches
//! decides, and in it an ask beats an allow. If no rule matches, nobody has decided.

use crate::{Call, Effect, Grant, Policy, Rule, Scope, glob, shell, shell::Pattern};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// Asks all rules about a call. Several policies may have one scope.
pub fn decide(policies: &[(Scope, &Policy)], call: &Call) -> Decision {
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
    if let Some(seat) = seats.iter().find(|it| restrains(it.rule, Effect::Deny, call)) {
        return decided(seat, call, Grant::Once);
    }
    for scope in [Scope::Session, Scope::Project, Scope::User] {
        let near = || seats.iter().filter(|it| it.scope == scope);
        if let Some(seat) = near().find(|it| restrains(it.rule, Effect::Ask, call)) {
            return decided(seat, call, Grant::Once);
        }
        if call.question {
            continue;
        }
        if let Some((seat, grant)) = allowed(&near().copied().collect::<Vec<_>>(), call) {
            return decided(&seat, call, grant);
        }
    }
    Decision {
        effect: None,
        scope: None,
        rule: None,
        place: None,
        why: undecided(call),
        grant: Grant::Once,
    }
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

fn undecided(call: &Call) -> String {
    let summary = call.summary();
    if call.question {
        return format!("{summary} is a question, and no rule answers for a person");
    }
    if call.is_cut {
        return format!(
            "no rule speaks of {summary}, and none can allow it: its input has too many parts"
        );
    }
    if let Some(text) = call.unknown.first() {
        let text = super::call::short(text);
        return format!(
            "no rule speaks of {summary}; no rule about commands, paths or kinds can allow it, \
             because its input has a text that may be anything: `{text}`"
        );
    }
    match call.commands.iter().find_map(crate::Shell::opaque) {
        Some(why) => format!(
            "no rule speaks of {summary}; no `run` rule can allow it, because what it runs is not \
             certain: {why}"
        ),
        None => format!("no rule speaks of {summary}"),
    }
}

/// Whether a rule of this effect, deny or ask, holds: what is suspicious is enough.
fn restrains(rule: &Rule, effect: Effect, call: &Call) -> bool {
    rule.effect == effect
        && given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && given(&rule.kind, |it| {
            let declared = call.kind.as_deref().unwrap_or("other");
            it.iter().any(|it| it == declared || it == call.kind())
        })
        && given(&rule.tool, |it| {
            let names = call.name.iter().chain(&call.aliases);
            names.into_iter().any(|name| glob::matches_name(it, name))
        })
        && given(&rule.mcp, |it| call.mcp.iter().any(|name| glob::matches_name(it, name)))
        && given(&rule.run, |it| call.is_cut || it.iter().any(|it| shows(call, &Pattern::of(it))))
        && given(&rule.path, |it| call.is_cut || touches(it, call))
}

/// Whether the allow rules of one scope, taken together, let a call through: a rule without `run`
/// alone; of those with `run`, each command of the call needs one.
fn allowed<'a>(seats: &[Seat<'a>], call: &Call) -> Option<(Seat<'a>, Grant)> {
    let fits = |it: &&Seat<'a>| it.rule.effect == Effect::Allow && fits(it.rule, call);
    let fitting: Vec<&Seat<'a>> = seats.iter().filter(fits).collect();
    if let Some(seat) = fitting.iter().find(|it| it.rule.run.is_empty()) {
        return Some((**seat, seat.rule.grant));
    }
    if call.commands.is_empty() || call.commands.iter().any(|it| it.commands().is_empty()) {
        return None;
    }
    let mut used: Vec<&Seat<'a>> = Vec::new();
    for command in call.commands.iter().flat_map(crate::Shell::commands) {
        let spells = |it: &&&Seat<'a>| it.rule.run.iter().any(|it| Pattern::of(it).spells(command));
        used.push(fitting.iter().find(spells)?);
    }
    let all = used.iter().all(|it| it.rule.grant == Grant::Always);
    let grant = if all { Grant::Always } else { Grant::Once };
    used.first().map(|it| (**it, grant))
}

/// Whether everything but `run` holds, for certain.
fn fits(rule: &Rule, call: &Call) -> bool {
    let about_content = [&rule.run, &rule.path, &rule.kind].iter().any(|it| !it.is_empty());
    let unknown = call.is_cut || about_content && !call.unknown.is_empty();
    !unknown
        && given(&rule.agent, |it| glob::matches_name(it, &call.agent))
        && given(&rule.kind, |it| it.iter().any(|it| it == call.kind()))
        && given(&rule.tool, |it| name_matches(it, call.name.as_deref()))
        && given(&rule.mcp, |it| {
            !call.mcp.is_empty() && call.mcp.iter().all(|name| glob::matches_name(it, name))
        })
        && given(&rule.path, |globs| {
            let inside = call.place().inside(globs);
            !call.paths.is_empty() && call.paths.iter().all(|it| inside.matches(it))
        })
}

/// A matcher that is not given holds.
fn given(entries: &[String], holds: impl Fn(&[String]) -> bool) -> bool {
    entries.is_empty() || holds(entries)
}

fn name_matches(globs: &[String], name: Option<&str>) -> bool {
    name.is_some_and(|it| glob::matches_name(globs, it))
}

fn shows(call: &Call, pattern: &Pattern<'_>) -> bool {
    let hinted = |text: &String| {
        let words = shell::loose(text);
        words.iter().any(|it| (0..it.len()).any(|start| pattern.is_seen_in(&it[start..])))
    };
    let may_run = matches!(call.kind(), "execute" | "other");
    call.commands.iter().any(|it| it.shows(pattern))
        || call.unknown.iter().any(hinted)
        || may_run && call.hints.iter().any(hinted)
}

/// One of the call's paths, or a word of its commands or of a hint that may be one.
fn touches(globs: &[String], call: &Call) -> bool {
    let place = call.place();
    let touching = place.touching(globs);
    let texts = call.hints.iter().chain(&call.unknown);
    let hinted: Vec<_> = texts.flat_map(|it| shell::loose(it)).flatten().collect();
    // Of a text for people, only what looks like a path.
    let hinted = hinted.iter().map(|it| it.text.as_str()).filter(|it| it.contains('/'));
    let mut words = call.commands.iter().flat_map(crate::Shell::words).chain(hinted);
    let unknown = |it: &String| touching.matches(&place.absolute(it.trim()));
    call.paths.iter().chain(&call.folders).any(|it| touching.matches(it))
        || call.unknown.iter().any(unknown)
        || words.any(|word| {
            // `--file=x` names `x`, and what is not plain may have lost its `$`.
            let value = word.split_once('=').map(|it| it.1);
            let home = word.strip_prefix('$').unwrap_or(word).strip_prefix("HOME/");
            let home = home.map(|it| format!("~/{it}"));
            let all = [Some(word), value, home.as_deref()];
            let mut named = all.into_iter().flatten().filter(|it| !it.is_empty());
            named.any(|it| !it.starts_with('-') && touching.matches(&place.absolute(it)))
        })
}
