//! `config.toml`: agents by name, and settings. A mistake is reported with its position.

use crate::{agent_files::AgentFiles, notify::NotifySettings};
use jackfield_journal::DurabilityLevel;
use jackfield_sandbox::plan::EnforcementLayer;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

/// The content of the file; everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The agent of sessions whose client does not name one.
    pub default_agent: Option<String>,
    /// The sandbox profile of agents that have none of their own.
    pub sandbox: Option<String>,
    /// The layer that enforces sandboxes; without it, the best one that works.
    pub sandbox_layer: Option<EnforcementLayer>,
    /// What an acknowledged event survives: `process` or `power`.
    pub durability: DurabilitySetting,
    /// Seconds after which an idle daemon stops; 0 for never.
    pub idle_after: Option<u64>,
    /// Notifications when an agent needs the user, is done or failed.
    pub notify: Option<NotifySettings>,
    pub sessions: SessionSettings,
    pub http: HttpSettings,
    pub liveness: LivenessSettings,
    pub agents: BTreeMap<String, AgentSettings>,
    /// MCP servers by name, for `mcp` of an agent, `run --mcp` and the HTTP API.
    pub mcp: BTreeMap<String, McpServerSettings>,
    /// The terminal interface.
    pub tui: TuiSettings,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// The program and its arguments; never a shell string. Without it, the settings adjust an
    /// agent of the catalog.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Variables set for this agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of the daemon's environment that this agent gets; `*` at the end matches a prefix.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// The number of started and initialized processes that wait for the next session.
    #[serde(default)]
    pub warm: usize,
    /// The number of sessions that one process serves; the default is one.
    #[serde(default)]
    pub sessions_per_process: Option<NonZeroUsize>,
    /// The launch variant of the catalog to use; without it, the first that can be started.
    #[serde(default)]
    pub variant: Option<String>,
    /// The agent that is used when this one cannot be started or keeps failing.
    #[serde(default)]
    pub fallback: Option<String>,
    /// The names of the MCP servers (`[mcp.NAME]`) that every session of this agent gets.
    #[serde(default)]
    pub mcp: Vec<String>,
    /// The sandbox profile of this agent.
    #[serde(default)]
    pub sandbox: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySetting {
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
    #[error("`{}` is not a valid configuration:\n{}", path.display(), join_problems(problems))]
    Invalid { path: PathBuf, problems: Vec<ConfigLineError> },
}

/// Reads the file; a missing one counts as empty.
pub fn load(path: &Path) -> Result<Settings, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Settings::default()),
        Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    };
    parse_file(&text, path)
        .map_err(|problems| ConfigError::Invalid { path: path.to_owned(), problems })
}

/// Parses the text of the file at `path`, or returns all errors in it.
pub fn parse_file(text: &str, path: &Path) -> Result<Settings, Vec<ConfigLineError>> {
    let (mut settings, document) = parse_text(text)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    settings.http.resolve(folder);
    if !settings.agents.is_empty() || settings.default_agent.is_some() {
        agent_names::resolve_names(&mut settings, &AgentFiles::open(folder))
            .map_err(|it| vec![document.locate(it)])?;
    }
    Ok(settings)
}

fn parse_text(text: &str) -> Result<(Settings, ConfigDocument<'_>), Vec<ConfigLineError>> {
    let document = ConfigDocument::parse(text).map_err(|it| vec![it])?;
    let problems = document.find_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let settings: Settings = document.deserialize().map_err(|it| vec![it])?;
    settings.check().map_err(|it| vec![document.locate(it)])?;
    Ok((settings, document))
}

fn join_problems(problems: &[ConfigLineError]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Settings {
    /// The sandbox profile that is configured for an agent.
    pub(crate) fn sandbox_of(&self, agent: &str) -> Option<&str> {
        let of_agent = self.agents.get(agent).and_then(|it| it.sandbox.as_deref());
        of_agent.or(self.sandbox.as_deref())
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        if let Some(notify) = &self.notify {
            notify.check().map_err(|it| InvalidSetting::new(&["notify"], it))?;
        }
        self.http.check().map_err(|it| InvalidSetting::new(&["http"], it))?;
        self.check_mcp()?;
        for (name, agent) in &self.agents {
            if agent.command.as_ref().is_some_and(Vec::is_empty) {
                let reason = format!(
                    "`command` of [agents.{name}] is empty: set it to the program and its arguments, \
                     or leave it out to use the catalog's"
                );
                return Err(InvalidSetting::new(&["agents", name, "command"], reason));
            }
        }
        Ok(())
    }

    pub fn idle_after(&self) -> Option<Duration> {
        const TEN_MINUTES: u64 = 600;
        let seconds = self.idle_after.unwrap_or(TEN_MINUTES);
        (seconds != 0).then(|| Duration::from_secs(seconds))
    }

    pub fn durability(&self) -> DurabilityLevel {
        match self.durability {
            DurabilitySetting::Process => DurabilityLevel::Process,
            DurabilitySetting::Power => DurabilityLevel::Power,
        }
    }
}

#[cfg(test)]
mod accepted_keys;
mod agent_names;
mod changes;
mod document;
mod duration;
mod http;
pub mod keys;
mod mcp;
mod reference;
mod sessions;
mod tui;

pub use changes::SettingsChanges;
pub use document::{ConfigDocument, ConfigLineError, describe_unknown_key};
pub use duration::DurationSetting;
pub use http::HttpSettings;
pub use mcp::McpServerSettings;
pub use reference::format_key_reference;
pub use sessions::{LivenessSettings, SessionSettings};
pub use tui::{EditingKeysSetting, TuiSettings};

use document::InvalidSetting;

#[cfg(test)]
fn parse(text: &str) -> Result<Settings, String> {
    parse_text(text).map(|(settings, _)| settings).map_err(|it| join_problems(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistake_is_reported_with_its_line() {
        let reason = parse("idle_after = 5\nagnets = 1\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("agnets"), "{reason}");
    }

    #[test]
    fn process_serves_one_session_by_default() {
        let settings = parse("[agents.a]\n[agents.b]\nsessions_per_process = 4\n").unwrap();
        let sessions_per_process = |name: &str| settings.pools()[name].sessions_per_process;
        assert_eq!((sessions_per_process("a"), sessions_per_process("b")), (1, 4));
        let reason = parse("[agents.a]\nsessions_per_process = 0\n").unwrap_err();
        assert!(reason.contains("line 2"), "{reason}");
    }

    #[test]
    fn command_may_be_omitted_but_not_empty() {
        let settings = parse("[agents.codex]\nenv = { A = \"1\" }\n").unwrap();
        assert_eq!(settings.agents["codex"].command, None);
        assert!(parse("[agents.codex]\ncommand = []\n").unwrap_err().contains("empty"));
    }

    #[test]
    fn agent_settings_are_read() {
        let settings =
            parse("[agents.goose]\ncommand = [\"goose\", \"acp\"]\npass_env = [\"GOOSE_*\"]\n")
                .unwrap();
        let command = settings.agents["goose"].command.clone().unwrap();
        assert_eq!(command, ["goose", "acp"]);
        assert_eq!(settings.idle_after(), Some(Duration::from_mins(10)));
        assert_eq!(Settings { idle_after: Some(0), ..settings }.idle_after(), None);
    }
}
