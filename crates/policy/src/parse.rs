//! From the text of a file to a [`Policy`], or to everything that is wrong with it.

use crate::{Effect, Flaw, Grant, Policy, Rule, flaw::line_of, glob, shell};
use std::{borrow::Cow, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The kinds of tools that ACP knows.
pub const KINDS: &[&str] = &[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

const RULE_KEYS: &str =
    "`do`, `name`, `agent`, `kind`, `tool`, `run`, `exact`, `path`, `mcp` and `grant`";

/// Reads a `policy.toml`.
pub fn parse(text: &str, origin: &str) -> Result<Policy, Vec<Flaw>> {
    read(text, origin, false)
}

/// Reads the rules of a project's file, which has other things in it that are not ours to judge.
pub fn parse_project(text: &str, origin: &str) -> Result<Policy, Vec<Flaw>> {
    read(text, origin, true)
}

fn read(text: &str, origin: &str, project: bool) -> Result<Policy, Vec<Flaw>> {
    let root = DeTable::parse(text).map_err(|error| vec![Flaw::of_toml(text, &error)])?;
    let mut reader = Reader { text, flaws: Vec::new() };
    let mut policy = Policy { origin: origin.to_owned(), ..Policy::default() };
    for (key, value) in root.get_ref() {
        match key.get_ref().as_ref() {
            "rule" => policy.rules = reader.rules(value),
            "reseed" => match value.get_ref() {
                DeValue::Boolean(it) => policy.reseed = Some(*it),
                _ => reader.complain(&value.span(), "`reseed` is `true` or `false`"),
            },
            _ if project => {}
            other => reader.complain(
                &key.span(),
                format!("`{other}` means nothing here: there are `reseed` and `[[rule]]`"),
            ),
        }
    }
    // A file's tables come in the order of their keys.
    policy.rules.sort_by_key(|it| it.line);
    reader.flaws.sort_by_key(|it| it.line);
    if reader.flaws.is_empty() { Ok(policy) } else { Err(reader.flaws) }
}

struct Reader<'a> {
    text: &'a str,
    flaws: Vec<Flaw>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    fn complain(&mut self, span: &Range<usize>, reason: impl Into<String>) {
        self.flaws.push(Flaw::at(self.text, span, reason));
    }

    fn rules(&mut self, value: &Value<'_>) -> Vec<Rule> {
        let DeValue::Array(items) = value.get_ref() else {
            self.complain(&value.span(), "rules are written as `[[rule]]`, with two brackets");
            return Vec::new();
        };
        items.iter().filter_map(|it| self.rule(it)).collect()
    }

    fn rule(&mut self, value: &Value<'_>) -> Option<Rule> {
        let DeValue::Table(table) = value.get_ref() else {
            self.complain(&value.span(), "a rule is a table: `[[rule]]`");
            return None;
        };
        let mut rule = Rule::of(Effect::Ask);
        rule.line = Some(line_of(self.text, &value.span()));
        let effect = table.get("do").map(|it| self.effect(it));
        if effect.is_none() {
            self.complain(&value.span(), "`do` is missing: it is `allow`, `ask` or `deny`");
        }
        rule.effect = effect.flatten().unwrap_or(Effect::Ask);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "do" => {}
                "name" => rule.name = self.name(value),
                "agent" => rule.agent = self.list(value, glob::flaw),
                "kind" => rule.kind = self.list(value, kind_flaw),
                "tool" => rule.tool = self.list(value, glob::flaw),
                "run" => rule.run = self.list(value, shell::flaw),
                "exact" => rule.exact = self.list(value, |_| None),
                "path" => rule.path = self.list(value, glob::flaw),
                "mcp" => rule.mcp = self.list(value, glob::flaw),
                "grant" => rule.grant = self.grant(value, effect.flatten()),
                other => self.complain(
                    &key.span(),
                    format!("a rule has no `{other}`: there are {RULE_KEYS}"),
                ),
            }
        }
        Some(rule)
    }

    fn effect(&mut self, value: &Value<'_>) -> Option<Effect> {
        let effect = match text(value) {
            Some("allow") => Some(Effect::Allow),
            Some("ask") => Some(Effect::Ask),
            Some("deny") => Some(Effect::Deny),
            _ => None,
        };
        if effect.is_none() {
            self.complain(&value.span(), "`do` is `allow`, `ask` or `deny`");
        }
        effect
    }

    fn name(&mut self, value: &Value<'_>) -> Option<String> {
        let name = text(value).filter(|it| !it.trim().is_empty()).map(str::to_owned);
        if name.is_none() {
            self.complain(&value.span(), "`name` is a text that people are shown");
        }
        name
    }

    fn grant(&mut self, value: &Value<'_>, effect: Option<Effect>) -> Grant {
        let grant = match text(value) {
            Some("once") => Grant::Once,
            Some("always") => Grant::Always,
            _ => {
                self.complain(&value.span(), "`grant` is `once` or `always`");
                Grant::Once
            }
        };
        if effect.is_some_and(|it| it != Effect::Allow) {
            self.complain(&value.span(), "only a rule that allows has a `grant`");
        }
        grant
    }

    /// A text or a list of them, each without a flaw.
    fn list(&mut self, value: &Value<'_>, flaw: fn(&str) -> Option<String>) -> Vec<String> {
        let one = [value];
        let entries: Vec<&Value<'_>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => one.to_vec(),
        };
        if entries.is_empty() {
            self.complain(&value.span(), "an empty list matches nothing: leave the key out");
        }
        let mut list = Vec::new();
        for entry in entries {
            match text(entry) {
                None => self.complain(&entry.span(), "this is a text or a list of texts"),
                Some("") => self.complain(&entry.span(), "an empty text matches nothing"),
                Some(it) => match flaw(it) {
                    Some(reason) => self.complain(&entry.span(), reason),
                    None => list.push(it.to_owned()),
                },
            }
        }
        list
    }
}

fn text<'a>(value: &'a Value<'_>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(it) => Some(Cow::as_ref(it)),
        _ => None,
    }
}

fn kind_flaw(kind: &str) -> Option<String> {
    let known = KINDS.join("`, `");
    (!KINDS.contains(&kind))
        .then(|| format!("no kind of tool is called `{kind}`: there are `{known}`"))
}
