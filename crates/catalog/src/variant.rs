//! One way to start an agent: natively over ACP, or behind an adapter for its dialect.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One way to start an agent. Without a dialect, the program itself implements ACP on stdio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaunchVariant {
    /// Its name among the variants of the agent; `acp` or the dialect if the file has none.
    pub name: String,
    /// Programs to search for; those of the agent if the file names none here.
    pub bins: Vec<String>,
    /// The output format of a program that does not implement ACP; it runs behind an adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Arguments of a first turn, or of a program that runs as long as the session.
    pub args: Vec<String>,
    /// Arguments of a later turn, instead of `args`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
    pub prompt: PromptDelivery,
    /// Arguments that are added when a model is chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// Arguments that are added when a reasoning effort is chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<String>,
    /// Arguments that are added for extra directories: with `{dir}` for each of them, with `{dirs}`
    /// once for a JSON list of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_dir: Vec<String>,
    /// Inserts added arguments before the last argument instead of after it.
    #[serde(skip_serializing_if = "is_false")]
    pub before_session: bool,
    /// The longest prompt that may be an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_bytes_max: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<OptionalFlag>,
    /// Whether a start with `args` and an empty stdin shows if the program supports this variant: it
    /// then ends with an error at once. Otherwise the first prompt would show it.
    #[serde(skip_serializing_if = "is_false")]
    pub start_check: bool,
    /// Variables that make the program request permission, set unless the user has set them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ask_env: BTreeMap<String, String>,
    /// The program never requests permission, in any mode.
    #[serde(skip_serializing_if = "is_false")]
    pub never_asks: bool,
    /// The mode in which the program approves everything itself. It is used if the client approves
    /// everything and the program cannot ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve_all: Option<String>,
    /// Permission modes; the first is the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PermissionMode>,
}

impl LaunchVariant {
    /// Whether the program itself implements ACP, so that it needs no adapter.
    pub fn is_native_acp(&self) -> bool {
        self.dialect.is_none()
    }

    /// Whether the program requests permission before changes in at least one mode.
    pub fn can_ask(&self) -> bool {
        let has_only_silent_modes = !self.is_native_acp() && !self.modes.iter().any(|it| it.asks);
        !self.never_asks && !has_only_silent_modes
    }
}

/// How a prompt is passed to the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptDelivery {
    #[default]
    Stdin,
    Argv,
    File,
}

/// Arguments that only some versions of the program accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionalFlag {
    pub args: Vec<String>,
    /// The arguments that print the program's help.
    #[serde(default = "default_help_args")]
    pub help: Vec<String>,
    /// The text that the help must contain.
    pub needs: String,
}

fn default_help_args() -> Vec<String> {
    vec!["--help".to_owned()]
}

/// A permission mode of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermissionMode {
    pub id: String,
    pub name: String,
    /// Whether the program requests permission before changes in this mode.
    pub asks: bool,
    #[serde(default)]
    pub args: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(it: &bool) -> bool {
    !*it
}
