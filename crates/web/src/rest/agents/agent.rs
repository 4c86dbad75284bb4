//! One agent as the API describes it.

use super::abilities::{AgentCapabilities, LearnedAbilities, listed_modes};
use jackfield_agents::{
    find::{ProgramLocations, find_program},
    probe::{AgentDiagnostic, AgentStatus},
};
use jackfield_catalog::{AgentSpec, DEFAULT_OPTION, LaunchVariant};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An agent: its name, whether it can be used here, and its settings.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent, example = json!({
    "id": "codex", "name": "Codex CLI", "aliases": ["codex-cli"], "bin": "codex", "available": true,
    "path": "/usr/local/bin/codex", "version": "codex-cli 0.130.0",
    "streamFormat": "json-event-stream", "eventParser": "codex",
    "models": [{ "id": "default", "label": "Default (CLI config)" }, { "id": "gpt-5.5", "label": "gpt-5.5" }],
    "modelsSource": "command",
    "reasoningOptions": [{ "id": "default", "label": "Default" }, { "id": "high", "label": "high" }],
    "modes": [{ "id": "auto", "label": "Auto" }],
    "capabilities": { "streaming": true, "cancel": true, "resume": true, "permissionMode": "strict" },
    "authState": "ok", "installHint": "npm install -g @openai/codex",
    "docsUrl": "https://developers.openai.com/codex", "diagnostics": [],
}))]
pub(crate) struct AgentDescription {
    /// The value for `agentId`.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Other values for `agentId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    /// The name of its program.
    pub(crate) bin: String,
    /// Installed on this machine or on a host of the fleet, without a known problem.
    pub(crate) available: bool,
    /// The path of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Its output format: `acp-json-rpc`, `claude-stream-json`, `json-event-stream`, `plain`, …
    pub(crate) stream_format: String,
    /// The dialect, if the program does not support ACP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_parser: Option<String>,
    pub(crate) models: Vec<AgentSettingChoice>,
    /// The source of the models: `acp`, `command`, `help`, `settings`, or `fallback` for the built-in list.
    pub(crate) models_source: String,
    /// Empty if the agent has none.
    pub(crate) reasoning_options: Vec<AgentSettingChoice>,
    /// Its permission modes, as far as they are known; empty if it has none.
    pub(crate) modes: Vec<AgentSettingChoice>,
    pub(crate) capabilities: AgentCapabilities,
    /// `ok`, `missing` or `unknown`.
    pub(crate) auth_state: String,
    /// How to install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) install_hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) docs_url: Option<String>,
    /// Known problems with their fixes: `{reason, severity, message, fix}`.
    #[schema(value_type = Vec<Object>)]
    pub(crate) diagnostics: Vec<Value>,
}

/// One value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Choice)]
pub(crate) struct AgentSettingChoice {
    pub(crate) id: String,
    pub(crate) label: String,
}

impl AgentSettingChoice {
    pub(super) fn new(id: &str, label: impl Into<String>) -> AgentSettingChoice {
        AgentSettingChoice { id: id.to_owned(), label: label.into() }
    }
}

impl AgentDescription {
    pub(crate) fn from_spec(spec: &AgentSpec, status: &AgentStatus) -> AgentDescription {
        let variant = status.chosen.or((!spec.launch.is_empty()).then_some(0));
        let variant = variant.map(|it| &spec.launch[it]);
        let path = status.program.as_ref().map(|it| it.path.display().to_string());
        AgentDescription {
            id: spec.id.clone(),
            name: spec.name.clone(),
            aliases: spec.aliases.clone(),
            bin: spec.bins.first().cloned().unwrap_or_default(),
            available: status.is_usable(),
            path,
            version: status.version.clone(),
            stream_format: variant.map_or(ACP, stream_format).to_owned(),
            event_parser: variant.and_then(|it| it.dialect.clone()),
            models: model_choices(status),
            models_source: status.models.source.name().to_owned(),
            reasoning_options: reasoning_choices(spec),
            modes: listed_modes(variant),
            capabilities: AgentCapabilities::from_variant(variant),
            auth_state: status.login.name().to_owned(),
            install_hint: spec.install.clone(),
            docs_url: spec.docs.clone(),
            diagnostics: status.diagnostics.iter().map(diagnostic_json).collect(),
        }
    }

    /// An agent that the configuration defines as a command.
    pub(crate) fn from_command(
        name: &str,
        command: &[String],
        places: &ProgramLocations,
    ) -> AgentDescription {
        let found = command
            .first()
            .and_then(|it| find_program(std::slice::from_ref(it), None, places).ok());
        let path = found.map(|it| it.path.display().to_string());
        AgentDescription {
            available: path.is_some(),
            path,
            ..AgentDescription::from_session(name, command)
        }
    }

    /// The agent of a session, of which only the name and the command are known.
    pub(crate) fn from_session(name: &str, command: &[String]) -> AgentDescription {
        AgentDescription {
            id: name.to_owned(),
            name: name.to_owned(),
            aliases: Vec::new(),
            bin: command.first().cloned().unwrap_or_default(),
            available: true,
            path: None,
            version: None,
            stream_format: ACP.to_owned(),
            event_parser: None,
            models: vec![AgentSettingChoice::new(DEFAULT_OPTION, DEFAULT_LABEL)],
            models_source: "fallback".to_owned(),
            reasoning_options: Vec::new(),
            modes: Vec::new(),
            capabilities: AgentCapabilities::from_variant(None),
            auth_state: "unknown".to_owned(),
            install_hint: None,
            docs_url: None,
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|it| it == name)
    }

    /// The same agent with what its sessions have shown.
    pub(crate) fn with_learned(mut self, learned: Option<&LearnedAbilities>) -> AgentDescription {
        if let Some(learned) = learned {
            learned.add_to(&mut self.capabilities, &mut self.modes);
        }
        self
    }

    /// The same agent in a fleet, where it is available if a host has it.
    pub(crate) fn in_fleet(self, is_hosted: bool) -> AgentDescription {
        let missing = json!({
            "reason": "on-no-host", "severity": "error", "message": "no host of the fleet has this agent",
            "fix": "install it on a host; `jackfield fleet hosts` shows what each has",
        });
        let diagnostics = if is_hosted { Vec::new() } else { vec![missing] };
        let auth_state = "unknown".to_owned();
        AgentDescription {
            available: is_hosted,
            path: None,
            version: None,
            auth_state,
            diagnostics,
            ..self
        }
    }
}

const ACP: &str = "acp-json-rpc";
const DEFAULT_LABEL: &str = "Default (CLI config)";
/// The format of a program that prints plain text.
pub(crate) const PLAIN: &str = "plain";

/// The output format of a program, under the name that clients know.
fn stream_format(variant: &LaunchVariant) -> &'static str {
    match variant.dialect.as_deref() {
        None => ACP,
        Some("plain") => PLAIN,
        Some("claude" | "amp") => "claude-stream-json",
        Some("copilot") => "copilot-stream-json",
        Some("pi") => "pi-rpc",
        Some(_) => "json-event-stream",
    }
}

fn model_choices(status: &AgentStatus) -> Vec<AgentSettingChoice> {
    let offered = status.models.models.iter().map(|it| {
        let is_current = status.models.current.as_ref() == Some(&it.id);
        let name =
            if it.name == it.id { it.id.clone() } else { format!("{} ({})", it.name, it.id) };
        AgentSettingChoice::new(&it.id, if is_current { format!("{name} • current") } else { name })
    });
    [AgentSettingChoice::new(DEFAULT_OPTION, DEFAULT_LABEL)].into_iter().chain(offered).collect()
}

fn reasoning_choices(spec: &AgentSpec) -> Vec<AgentSettingChoice> {
    let default =
        (!spec.reasoning.is_empty()).then(|| AgentSettingChoice::new(DEFAULT_OPTION, "Default"));
    default
        .into_iter()
        .chain(spec.reasoning.iter().map(|it| AgentSettingChoice::new(it, it.as_str())))
        .collect()
}

fn diagnostic_json(it: &AgentDiagnostic) -> Value {
    json!({
        "reason": it.reason, "severity": it.severity, "message": it.message, "fix": it.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_catalog::Catalog;

    #[test]
    fn every_dialect_has_a_format_and_only_plain_text_is_plain() {
        for spec in Catalog::builtin().iter() {
            for variant in &spec.launch {
                let plain = variant.dialect.as_deref() == Some("plain");
                assert_eq!(stream_format(variant) == PLAIN, plain, "{}", spec.id);
            }
        }
    }

    #[test]
    fn missing_agent_has_the_built_in_models_and_a_diagnostic() {
        let catalogue = Catalog::builtin();
        let spec = catalogue.get("codex").unwrap();
        let places =
            ProgramLocations::new([("PATH".to_owned(), "/nowhere".to_owned())].into_iter());
        let agent = AgentDescription::from_spec(spec, &AgentStatus::new(spec, &places, None));
        assert!(!agent.available && agent.path.is_none() && agent.version.is_none());
        assert_eq!(agent.models[0], AgentSettingChoice::new("default", "Default (CLI config)"));
        assert!(1 < agent.models.len());
        assert_eq!(agent.reasoning_options[0].id, "default");
        assert_eq!(agent.diagnostics[0]["reason"], "not-on-path");
        let hint = "npm install -g @openai/codex @agentclientprotocol/codex-acp";
        assert_eq!(agent.install_hint.as_deref(), Some(hint));
    }
}
