//! A rule: an effect, and the matchers that a call must satisfy.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The effect of a rule on the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleEffect {
    Allow,
    /// The user is asked, even if a wider scope allows the call.
    Ask,
    Deny,
}

impl RuleEffect {
    pub fn name(self) -> &'static str {
        match self {
            RuleEffect::Allow => "allow",
            RuleEffect::Ask => "ask",
            RuleEffect::Deny => "deny",
        }
    }
}

impl fmt::Display for RuleEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The origin of a rule, ordered from the nearest to the widest scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleScope {
    Session,
    Project,
    User,
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleScope::Session => "session",
            RuleScope::Project => "project",
            RuleScope::User => "user",
        })
    }
}

/// How long a grant that the hub gives automatically lasts inside the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantDuration {
    #[default]
    Once,
    /// The hub may select the agent's option never to ask again.
    Always,
}

/// One rule. It matches a call if every given matcher matches; a matcher matches if one entry of
/// its list does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(rename = "do")]
    pub effect: RuleEffect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Whole command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    #[serde(default, skip_serializing_if = "is_once")]
    pub grant: GrantDuration,
    /// The line in its file, counted from 1; absent for a learned rule.
    #[serde(skip)]
    pub line: Option<usize>,
}

impl Rule {
    /// A rule without matchers, which matches every call.
    pub fn for_every_call(effect: RuleEffect) -> Rule {
        Rule {
            effect,
            name: None,
            agent: Vec::new(),
            kind: Vec::new(),
            tool: Vec::new(),
            run: Vec::new(),
            exact: Vec::new(),
            path: Vec::new(),
            mcp: Vec::new(),
            grant: GrantDuration::Once,
            line: None,
        }
    }

    /// The given matchers with their keys.
    pub fn matchers(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let all: [(&'static str, &[String]); 7] = [
            ("agent", &self.agent),
            ("kind", &self.kind),
            ("tool", &self.tool),
            ("run", &self.run),
            ("exact", &self.exact),
            ("path", &self.path),
            ("mcp", &self.mcp),
        ];
        all.into_iter().filter(|(_, entries)| !entries.is_empty())
    }
}

/// Formats the rule as one line: `deny run git push, agent claude`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        let mut separator = " ";
        for (key, entries) in self.matchers() {
            write!(f, "{separator}{key} {}", entries.join(" | "))?;
            separator = ", ";
        }
        if separator == " " {
            f.write_str(" everything")?;
        }
        if self.grant == GrantDuration::Always { f.write_str(", for good") } else { Ok(()) }
    }
}

/// The rules of one file, or the rules that a session has learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The name that explanations use: the file's name.
    pub origin: String,
    /// Whether a lost conversation may be reseeded from a summary; absent if the file does not set
    /// it.
    pub reseed: Option<bool>,
    /// The sandbox profile of sessions in a project; absent if the file does not choose one.
    pub sandbox: Option<String>,
    pub rules: Vec<Rule>,
}

impl Policy {
    /// A policy of the rules that "always" answers have created in a session.
    pub fn from_learned_rules(rules: Vec<Rule>) -> Policy {
        Policy { origin: "learned in this session".to_owned(), reseed: None, sandbox: None, rules }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_once(it: &GrantDuration) -> bool {
    *it == GrantDuration::Once
}
