//! Parses the text of a rule file into a [`Policy`], or returns every error in it.

use crate::{
    GrantDuration, Policy, PolicyError, Rule, RuleEffect, glob, policy_error::line_of, shell,
};
use std::{borrow::Cow, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The tool kinds of ACP.
pub const TOOL_KINDS: &[&str] = &[
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

/// Parses a `policy.toml`.
pub fn parse_policy(text: &str, origin: &str) -> Result<Policy, Vec<PolicyError>> {
    read_policy(text, origin, UnknownKeys::Refuse)
}

/// Parses the rules in a project's file. Other keys of that file belong to other readers and are
/// ignored.
pub fn parse_project_policy(text: &str, origin: &str) -> Result<Policy, Vec<PolicyError>> {
    read_policy(text, origin, UnknownKeys::Ignore)
}

/// What happens to a top-level key that is not part of a policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownKeys {
    Refuse,
    Ignore,
}

fn read_policy(
    text: &str,
    origin: &str,
    unknown_keys: UnknownKeys,
) -> Result<Policy, Vec<PolicyError>> {
    let root =
        DeTable::parse(text).map_err(|error| vec![PolicyError::from_toml_error(text, &error)])?;
    let mut reader = PolicyReader { text, errors: Vec::new() };
    let mut policy = Policy { origin: origin.to_owned(), ..Policy::default() };
    for (key, value) in root.get_ref() {
        match key.get_ref().as_ref() {
            "rule" => policy.rules = reader.read_rules(value),
            "reseed" => match value.get_ref() {
                DeValue::Boolean(it) => policy.reseed = Some(*it),
                _ => reader.add_error(&value.span(), "`reseed` must be `true` or `false`"),
            },
            "sandbox" if unknown_keys == UnknownKeys::Ignore => match value.get_ref() {
                DeValue::String(it) => policy.sandbox = Some(it.to_string()),
                _ => reader.add_error(
                    &value.span(),
                    "`sandbox` names a profile, such as \"workspace\"; profiles are defined in policy.toml",
                ),
            },
            // The crate `sandbox` reads the profiles.
            "sandbox" => {}
            _ if unknown_keys == UnknownKeys::Ignore => {}
            other => reader.add_error(
                &key.span(),
                format!(
                    "unknown key `{other}`; valid keys are `reseed`, `[[rule]]` and `[sandbox.NAME]`"
                ),
            ),
        }
    }
    // The TOML parser returns tables in the order of their keys.
    policy.rules.sort_by_key(|it| it.line);
    reader.errors.sort_by_key(|it| it.line);
    if reader.errors.is_empty() { Ok(policy) } else { Err(reader.errors) }
}

struct PolicyReader<'a> {
    text: &'a str,
    errors: Vec<PolicyError>,
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl PolicyReader<'_> {
    fn add_error(&mut self, span: &Range<usize>, reason: impl Into<String>) {
        self.errors.push(PolicyError::at_span(self.text, span, reason));
    }

    fn read_rules(&mut self, value: &TomlValue<'_>) -> Vec<Rule> {
        let DeValue::Array(items) = value.get_ref() else {
            self.add_error(&value.span(), "write rules as `[[rule]]`, with two brackets");
            return Vec::new();
        };
        items.iter().filter_map(|it| self.read_rule(it)).collect()
    }

    fn read_rule(&mut self, value: &TomlValue<'_>) -> Option<Rule> {
        let DeValue::Table(table) = value.get_ref() else {
            self.add_error(&value.span(), "a rule must be a table: `[[rule]]`");
            return None;
        };
        let mut rule = Rule::for_every_call(RuleEffect::Ask);
        rule.line = Some(line_of(self.text, &value.span()));
        let effect = table.get("do").map(|it| self.read_effect(it));
        if effect.is_none() {
            self.add_error(&value.span(), "`do` is missing; it must be `allow`, `ask` or `deny`");
        }
        rule.effect = effect.flatten().unwrap_or(RuleEffect::Ask);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "do" => {}
                "name" => rule.name = self.read_name(value),
                "agent" => rule.agent = self.read_list(value, glob::find_glob_error),
                "kind" => rule.kind = self.read_list(value, find_kind_error),
                "tool" => rule.tool = self.read_list(value, glob::find_glob_error),
                "run" => rule.run = self.read_list(value, shell::find_pattern_error),
                "exact" => rule.exact = self.read_list(value, |_| None),
                "path" => rule.path = self.read_list(value, glob::find_glob_error),
                "mcp" => rule.mcp = self.read_list(value, glob::find_glob_error),
                "grant" => rule.grant = self.read_grant(value, effect.flatten()),
                other => self.add_error(
                    &key.span(),
                    format!("unknown key `{other}` in a rule; valid keys are {RULE_KEYS}"),
                ),
            }
        }
        Some(rule)
    }

    fn read_effect(&mut self, value: &TomlValue<'_>) -> Option<RuleEffect> {
        let effect = match as_text(value) {
            Some("allow") => Some(RuleEffect::Allow),
            Some("ask") => Some(RuleEffect::Ask),
            Some("deny") => Some(RuleEffect::Deny),
            _ => None,
        };
        if effect.is_none() {
            self.add_error(&value.span(), "`do` must be `allow`, `ask` or `deny`");
        }
        effect
    }

    fn read_name(&mut self, value: &TomlValue<'_>) -> Option<String> {
        let name = as_text(value).filter(|it| !it.trim().is_empty()).map(str::to_owned);
        if name.is_none() {
            self.add_error(&value.span(), "`name` must be a non-empty string");
        }
        name
    }

    fn read_grant(&mut self, value: &TomlValue<'_>, effect: Option<RuleEffect>) -> GrantDuration {
        let grant = match as_text(value) {
            Some("once") => GrantDuration::Once,
            Some("always") => GrantDuration::Always,
            _ => {
                self.add_error(&value.span(), "`grant` must be `once` or `always`");
                GrantDuration::Once
            }
        };
        if effect.is_some_and(|it| it != RuleEffect::Allow) {
            self.add_error(&value.span(), "`grant` is valid only in a rule with `do = \"allow\"`");
        }
        grant
    }

    /// Reads a string or a list of strings; `find_error` checks each of them.
    fn read_list(
        &mut self,
        value: &TomlValue<'_>,
        find_error: fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let one = [value];
        let entries: Vec<&TomlValue<'_>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => one.to_vec(),
        };
        if entries.is_empty() {
            self.add_error(&value.span(), "an empty list matches nothing; remove the key");
        }
        let mut list = Vec::new();
        for entry in entries {
            match as_text(entry) {
                None => self.add_error(&entry.span(), "expected a string or a list of strings"),
                Some("") => self.add_error(&entry.span(), "an empty string matches nothing"),
                Some(it) => match find_error(it) {
                    Some(reason) => self.add_error(&entry.span(), reason),
                    None => list.push(it.to_owned()),
                },
            }
        }
        list
    }
}

fn as_text<'a>(value: &'a TomlValue<'_>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(it) => Some(Cow::as_ref(it)),
        _ => None,
    }
}

fn find_kind_error(kind: &str) -> Option<String> {
    let known = TOOL_KINDS.join("`, `");
    (!TOOL_KINDS.contains(&kind))
        .then(|| format!("unknown tool kind `{kind}`; valid kinds are `{known}`"))
}
