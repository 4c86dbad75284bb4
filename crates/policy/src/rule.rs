//! A rule: an effect, and what a call must be like for it to hold.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a rule says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Allow,
    /// A person is asked, whatever a wider scope allows.
    Ask,
    Deny,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Ask => "ask",
            Effect::Deny => "deny",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a rule comes from, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Session,
    Project,
    User,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Session => "session",
            Scope::Project => "project",
            Scope::User => "user",
        })
    }
}

/// For how long an automatic answer may allow something in the agent's own books.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    #[default]
    Once,
    /// The agent may be told never to ask again.
    Always,
}

/// One rule. All matchers that are given must hold; of a matcher's list, one entry must.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(rename = "do")]
    pub effect: Effect,
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
    pub grant: Grant,
    /// Where it stands in its file; a rule that was learned stands in none.
    #[serde(skip)]
    pub line: Option<usize>,
}

impl Rule {
    /// A rule that holds for every call.
    pub fn of(effect: Effect) -> Rule {
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
            grant: Grant::Once,
            line: None,
        }
    }

    /// The matchers that are given, by their keys.
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

/// As one line: `deny run git push, agent claude`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        let mut between = " ";
        for (key, entries) in self.matchers() {
            write!(f, "{between}{key} {}", entries.join(" | "))?;
            between = ", ";
        }
        if between == " " {
            f.write_str(" everything")?;
        }
        if self.grant == Grant::Always { f.write_str(", for good") } else { Ok(()) }
    }
}

/// The rules of one file, or those that were learned in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// What explanations call it: the file's name.
    pub origin: String,
    /// Whether a lost conversation may be begun anew with a digest; absent if the file is silent.
    pub reseed: Option<bool>,
    pub rules: Vec<Rule>,
}

impl Policy {
    /// Rules that people made with an Always.
    pub fn learned(rules: Vec<Rule>) -> Policy {
        Policy { origin: "learned in this session".to_owned(), reseed: None, rules }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_once(it: &Grant) -> bool {
    *it == Grant::Once
}
