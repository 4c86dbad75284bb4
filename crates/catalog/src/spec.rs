//! One agent: its programs, probes, launch variants, models and quirks.

use crate::{AgentPackage, EnvRules, LaunchVariant};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, num::NonZeroUsize};

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    pub id: String,
    pub name: String,
    /// Other names under which users know the agent, such as that of its package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Programs to search for; the first that is found is used.
    pub bins: Vec<String>,
    /// An environment variable that holds the program's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin_env: Option<String>,
    /// A command that installs the program for the whole machine, or the address of a download. It follows from the
    /// packages if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// What `jackfield agents install` installs; the first package has the version of the agent.
    #[serde(default, rename = "package", skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<AgentPackage>,
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
    #[serde(default, skip_serializing_if = "SandboxNeeds::is_empty")]
    pub sandbox: SandboxNeeds,
    /// How it can be started, in order of preference.
    #[serde(default)]
    pub launch: Vec<LaunchVariant>,
    #[serde(default)]
    pub models: ModelSettings,
    /// The reasoning efforts, as the program names them.
    #[serde(default, with = "options", skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<String>,
    /// The number of sessions that one process can serve in isolation; one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_per_process: Option<NonZeroUsize>,
    #[serde(default, rename = "quirk", skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<AgentQuirk>,
}

/// `[sandbox]`: what the program needs inside a sandbox besides the directories of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxNeeds {
    /// Where it keeps its login, settings and conversations; a leading `~` is the home directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The hosts of its model provider; `*.` at the beginning matches all names below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Variables that are set inside a sandbox, such as those that turn off the program's own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Launch variants that are the last choice inside a sandbox. They run tools in a sandbox of their own, which fails
    /// inside another one and cannot be turned off without turning off permission requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_variants: Vec<String>,
}

impl SandboxNeeds {
    fn is_empty(&self) -> bool {
        *self == SandboxNeeds::default()
    }
}

/// How to determine the program's version.
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

/// How to determine whether the program is logged in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthProbe {
    /// The arguments of its status command; empty if it has none.
    pub args: Vec<String>,
    /// If one of these variables is set, it counts as the login and no command is run.
    pub env: Vec<String>,
    /// Lowercase texts; the output contains one of them if the program is not logged in.
    pub missing: Vec<String>,
}

/// Where the list of models comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ModelSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ModelFormat>,
    pub timeout_ms: u64,
    /// The file to read; a leading `~` is the home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// An environment variable that names another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_env: Option<String>,
    /// The list to use if no other is available.
    pub fallback: Vec<String>,
    /// Whether ids outside the list may be requested.
    pub custom: bool,
}

impl Default for ModelSettings {
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

/// How the list of models is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    /// A command prints them.
    Command,
    /// The agent reports them when a session starts.
    Acp,
    /// A settings file of the user contains them.
    Settings,
    /// The program's help lists them.
    Help,
}

/// The format in which a program lists its models.
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

/// A peculiarity of the agent that its users should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentQuirk {
    #[serde(rename = "what")]
    pub text: String,
}

/// Maps `[reasoning] options = […]` in the file to a plain list in the value.
mod options {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OptionsTable {
        options: Vec<String>,
    }

    pub(super) fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
        OptionsTable { options: list.to_vec() }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        OptionsTable::deserialize(from).map(|it| it.options)
    }
}

impl AgentSpec {
    /// The launch variant with this name.
    pub fn find_variant(&self, name: &str) -> Option<&LaunchVariant> {
        self.launch.iter().find(|it| it.name == name)
    }

    /// The names of the launch variants as a list for messages.
    pub fn list_variants(&self) -> String {
        let names: Vec<String> = self.launch.iter().map(|it| format!("`{}`", it.name)).collect();
        names.join(", ")
    }

    /// Serializes the spec as a file that [`crate::parse_agent_spec`] reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("strings, numbers and lists of them always have a TOML form")
    }
}
