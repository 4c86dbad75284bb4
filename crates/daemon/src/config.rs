//! `config.toml`: agents by name, and a few settings. A mistake is reported with its place.

use jackfield_journal::Durability;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// What the file says; everything has a default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The agent of a session whose client names none.
    pub default_agent: Option<String>,
    /// What an acknowledged event survives: `process` or `power`.
    pub durability: Survives,
    /// Seconds after which a daemon with nothing alive ends itself; 0 for never.
    pub idle_after: Option<u64>,
    pub agents: BTreeMap<String, AgentSettings>,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// The program and its arguments; never a shell string.
    pub command: Vec<String>,
    /// Variables set for this agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of the daemon's environment that this agent may see; `*` at the end matches a prefix.
    #[serde(default)]
    pub pass_env: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Survives {
    #[default]
    Process,
    Power,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not a valid configuration:\n{reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
}

/// Reads the file; a missing one is an empty one.
pub fn load(path: &Path) -> Result<Settings, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Settings::default()),
        Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    };
    parse(&text).map_err(|reason| ConfigError::Invalid { path: path.to_owned(), reason })
}

fn parse(text: &str) -> Result<Settings, String> {
    let settings: Settings = toml::from_str(text).map_err(|error| error.to_string())?;
    for (name, agent) in &settings.agents {
        if agent.command.is_empty() {
            return Err(format!("`command` of [agents.{name}] is empty"));
        }
    }
    if let Some(name) = &settings.default_agent
        && !settings.agents.contains_key(name)
    {
        return Err(format!("`default_agent` is `{name}`, but there is no [agents.{name}]"));
    }
    Ok(settings)
}

impl Settings {
    pub fn idle_after(&self) -> Option<Duration> {
        const TEN_MINUTES: u64 = 600;
        let seconds = self.idle_after.unwrap_or(TEN_MINUTES);
        (seconds != 0).then(|| Duration::from_secs(seconds))
    }

    pub fn durability(&self) -> Durability {
        match self.durability {
            Survives::Process => Durability::Process,
            Survives::Power => Durability::Power,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let reason = parse("idle_after = 5\nagnets = 1\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("agnets"), "{reason}");
    }

    #[test]
    fn a_default_agent_must_exist() {
        assert!(parse("default_agent = \"x\"").unwrap_err().contains("[agents.x]"));
    }

    #[test]
    fn an_agent_is_a_command_and_what_it_may_see() {
        let settings =
            parse("[agents.goose]\ncommand = [\"goose\", \"acp\"]\npass_env = [\"GOOSE_*\"]\n")
                .unwrap();
        assert_eq!(settings.agents["goose"].command, ["goose", "acp"]);
        assert_eq!(settings.idle_after(), Some(Duration::from_mins(10)));
        assert_eq!(Settings { idle_after: Some(0), ..settings }.idle_after(), None);
    }
}
