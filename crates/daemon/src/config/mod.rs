//! `config.toml`: agents by name, and a few settings. A mistake is reported with its place.

use crate::{notify::NotifySettings, roster};
use jackfield_journal::DurabilityLevel;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

/// What the file says; everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The agent of a session whose client names none.
    pub default_agent: Option<String>,
    /// What an acknowledged event survives: `process` or `power`.
    pub durability: Survives,
    /// Seconds after which a daemon with nothing alive ends itself; 0 for never.
    pub idle_after: Option<u64>,
    /// Who is told when an agent needs somebody, is done or failed.
    pub notify: Option<NotifySettings>,
    pub sessions: SessionSettings,
    pub http: HttpSettings,
    pub liveness: LivenessSettings,
    pub agents: BTreeMap<String, AgentSettings>,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// The program and its arguments; never a shell string. Without it, an agent of the catalogue is
    /// only adjusted.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Variables set for this agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of the daemon's environment that this agent may see; `*` at the end matches a prefix.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// So many processes wait, started and introduced, for the next session.
    #[serde(default)]
    pub warm: usize,
    /// So many sessions one process serves; one unless this says otherwise.
    #[serde(default)]
    pub sessions_per_process: Option<NonZeroUsize>,
    /// The agent that is used when this one cannot be started or keeps failing.
    #[serde(default)]
    pub fallback: Option<String>,
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
    let invalid = |reason| ConfigError::Invalid { path: path.to_owned(), reason };
    let mut settings = parse(&text).map_err(invalid)?;
    settings.http.resolve(path.parent().unwrap_or(Path::new("/")));
    let knows = |name: &String| {
        settings.agents.contains_key(name)
            || roster::knows(&path.with_file_name(roster::FOLDER), name)
    };
    for (name, agent) in &settings.agents {
        if let Some(other) = agent.fallback.as_ref().filter(|it| *it == name || !knows(it)) {
            let reason = format!(
                "`fallback` of [agents.{name}] is `{other}`, which is no other agent that is known \
                 here; `jackfield agents` lists them"
            );
            return Err(invalid(reason));
        }
    }
    if let Some(name) = settings.default_agent.as_ref().filter(|it| !knows(it)) {
        let reason = format!(
            "`default_agent` is `{name}`, but there is no [agents.{name}] and no such agent in the \
             catalogue; `jackfield agents` lists it"
        );
        return Err(invalid(reason));
    }
    Ok(settings)
}

fn parse(text: &str) -> Result<Settings, String> {
    let settings: Settings = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Some(notify) = &settings.notify {
        notify.check()?;
    }
    settings.http.check()?;
    for (name, agent) in &settings.agents {
        if agent.command.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!(
                "`command` of [agents.{name}] is empty: give the program and its arguments, or leave \
                 it out to use the catalogue's"
            ));
        }
    }
    Ok(settings)
}

impl Settings {
    pub fn idle_after(&self) -> Option<Duration> {
        const TEN_MINUTES: u64 = 600;
        let seconds = self.idle_after.unwrap_or(TEN_MINUTES);
        (seconds != 0).then(|| Duration::from_secs(seconds))
    }

    pub fn durability(&self) -> DurabilityLevel {
        match self.durability {
            Survives::Process => DurabilityLevel::Process,
            Survives::Power => DurabilityLevel::Power,
        }
    }
}

mod changes;
mod duration;
mod http;
mod sessions;

pub use duration::Span;
pub use http::HttpSettings;
pub use sessions::{LivenessSettings, SessionSettings};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let reason = parse("idle_after = 5\nagnets = 1\n").unwrap_err();
        assert!(reason.contains("line 2") && reason.contains("agnets"), "{reason}");
    }

    #[test]
    fn a_default_agent_is_configured_or_in_the_catalogue() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            load(&path)
        };
        assert!(load("default_agent = \"x\"").unwrap_err().to_string().contains("[agents.x]"));
        assert!(load("default_agent = \"x\"\n[agents.x]\ncommand = [\"y\"]\n").is_ok());
        assert!(load("default_agent = \"goose\"").is_ok());
    }

    #[test]
    fn a_fallback_is_another_agent_that_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let load = |other: &str| {
            std::fs::write(&path, format!("[agents.codex]\nfallback = \"{other}\"\n")).unwrap();
            load(&path).map(|it| it.pools())
        };
        for other in ["codex", "nobody"] {
            assert!(load(other).unwrap_err().to_string().contains("`fallback` of [agents.codex]"));
        }
        assert_eq!(load("goose").unwrap()["codex"].fallback.as_deref(), Some("goose"));
    }

    #[test]
    fn a_process_serves_one_session_unless_the_settings_say_more() {
        let settings = parse("[agents.a]\n[agents.b]\nsessions_per_process = 4\n").unwrap();
        let seats = |name: &str| settings.pools()[name].sessions_per_process;
        assert_eq!((seats("a"), seats("b")), (1, 4));
        let reason = parse("[agents.a]\nsessions_per_process = 0\n").unwrap_err();
        assert!(reason.contains("line 2"), "{reason}");
    }

    #[test]
    fn a_command_may_be_left_out_but_not_be_empty() {
        let settings = parse("[agents.codex]\nenv = { A = \"1\" }\n").unwrap();
        assert_eq!(settings.agents["codex"].command, None);
        assert!(parse("[agents.codex]\ncommand = []\n").unwrap_err().contains("empty"));
    }

    #[test]
    fn an_agent_is_a_command_and_what_it_may_see() {
        let settings =
            parse("[agents.goose]\ncommand = [\"goose\", \"acp\"]\npass_env = [\"GOOSE_*\"]\n")
                .unwrap();
        let command = settings.agents["goose"].command.clone().unwrap();
        assert_eq!(command, ["goose", "acp"]);
        assert_eq!(settings.idle_after(), Some(Duration::from_mins(10)));
        assert_eq!(Settings { idle_after: Some(0), ..settings }.idle_after(), None);
    }
}
