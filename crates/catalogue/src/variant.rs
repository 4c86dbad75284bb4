//! One way to start an agent: natively over ACP, or behind an adapter that knows its dialect.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A way to start an agent. Without a dialect, the program itself speaks ACP on stdio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variant {
    /// Programs to look for; those of the agent if the file names none here.
    pub bins: Vec<String>,
    /// The language of a program that does not speak ACP; our adapter goes in front of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Arguments of a first turn, or of a program that lives as long as the session.
    pub args: Vec<String>,
    /// Arguments of a later turn, instead of `args`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
    pub prompt: PromptBy,
    /// Added when a model is chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// Added when a reasoning effort is chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<String>,
    /// What is added goes before the last argument instead of after it.
    #[serde(skip_serializing_if = "is_false")]
    pub before_session: bool,
    /// The longest prompt that may be an argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_bytes_max: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Variables that make the program ask before it acts, set unless the user has set them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ask_env: BTreeMap<String, String>,
    /// The program never asks before it acts, in any mode.
    #[serde(skip_serializing_if = "is_false")]
    pub never_asks: bool,
    /// Permission modes; the first is the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
}

impl Variant {
    /// Whether the program needs no adapter.
    pub fn speaks_acp(&self) -> bool {
        self.dialect.is_none()
    }

    /// Whether there is a mode in which the program asks before it changes something.
    pub fn can_ask(&self) -> bool {
        let only_silent_modes = !self.speaks_acp() && !self.modes.iter().any(|it| it.asks);
        !self.never_asks && !only_silent_modes
    }
}

/// How a prompt reaches the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    #[default]
    Stdin,
    Argv,
    File,
}

/// Arguments that only some versions of the program know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    pub args: Vec<String>,
    /// Which help to look in.
    #[serde(default = "plain_help")]
    pub help: Vec<String>,
    /// The text that help must contain.
    pub needs: String,
}

fn plain_help() -> Vec<String> {
    vec!["--help".to_owned()]
}

/// A permission mode of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    pub id: String,
    pub name: String,
    /// Whether the program asks before it changes things in this mode.
    pub asks: bool,
    #[serde(default)]
    pub args: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(it: &bool) -> bool {
    !*it
}
