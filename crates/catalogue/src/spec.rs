//! One agent: its programs, probes, ways to start, models, and what people should know.

use crate::{EnvRules, Variant};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub id: String,
    pub name: String,
    /// Programs to look for; the first that is found wins.
    pub bins: Vec<String>,
    /// A variable that names the program outright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin_env: Option<String>,
    /// A command or an address that gets the program onto the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default)]
    pub version: VersionProbe,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthProbe>,
    #[serde(default, skip_serializing_if = "EnvRules::is_empty")]
    pub env: EnvRules,
    /// Ways to start it, in order of preference.
    #[serde(default)]
    pub launch: Vec<Variant>,
    #[serde(default)]
    pub models: Models,
    /// How hard a model may be told to think, in the program's own words.
    #[serde(default, with = "options", skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<String>,
    /// So many sessions one process of it serves and keeps apart; one unless this says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_per_process: Option<NonZeroUsize>,
    #[serde(default, rename = "quirk", skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}

/// How to learn the program's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VersionProbe {
    pub args: Vec<String>,
    pub timeout_ms: u64,
}

impl Default for VersionProbe {
    fn default() -> Self {
        Self { args: vec!["--version".to_owned()], timeout_ms: 3000 }
    }
}

/// How to learn whether the program has a login.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthProbe {
    /// What to ask the program; empty if it has no such command.
    pub args: Vec<String>,
    /// If one of these variables is set, that is the login, and nothing is run.
    pub env: Vec<String>,
    /// Lowercase texts of which one is in the answer of a program without a login.
    pub missing: Vec<String>,
}

/// Where the list of models comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ModelsFrom>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ModelFormat>,
    pub timeout_ms: u64,
    /// The file to read; `~` at the beginning is the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A variable that names another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_env: Option<String>,
    /// The list when nothing better is known.
    pub fallback: Vec<String>,
    /// Whether an id outside the list may be asked for.
    pub custom: bool,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            from: None,
            args: Vec::new(),
            format: None,
            timeout_ms: 5000,
            file: None,
            file_env: None,
            fallback: Vec::new(),
            custom: true,
        }
    }
}

/// Whom to ask for models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelsFrom {
    /// A command prints them.
    Command,
    /// The agent tells them when a session begins.
    Acp,
    /// They stand in a file of the user's.
    Settings,
    /// The program's help lists them.
    Help,
}

/// The form in which a program prints its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFormat {
    Lines,
    Codex,
    Cursor,
    Grok,
    Pi,
    Codebuddy,
    Dsh,
    QwenSettings,
    Opencode,
}

/// A sentence people should know about this agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quirk {
    pub what: String,
}

/// `[reasoning] options = […]` in the file, a plain list in the value.
mod options {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        options: Vec<String>,
    }

    pub(super) fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
        Table { options: list.to_vec() }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        Table::deserialize(from).map(|it| it.options)
    }
}

impl Spec {
    /// The file that [`crate::parse`] would make this value of.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("strings, numbers and lists of them always have a TOML form")
    }
}
