//! One agent as clients are shown it.

use jackfield_agents::{
    find::{ProgramLocations, find_program},
    probe::{AgentDiagnostic, AgentStatus},
};
use jackfield_catalog::{AgentSpec, DEFAULT_OPTION, LaunchVariant};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An agent: who it is, whether it can be used here, and what can be chosen.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "codex", "name": "Codex CLI", "bin": "codex", "available": true,
    "path": "/usr/local/bin/codex", "version": "codex-cli 0.130.0",
    "streamFormat": "json-event-stream", "eventParser": "codex",
    "models": [{ "id": "default", "label": "Default (CLI config)" }, { "id": "gpt-5.5", "label": "gpt-5.5" }],
    "modelsSource": "command",
    "reasoningOptions": [{ "id": "default", "label": "Default" }, { "id": "high", "label": "high" }],
    "authState": "ok", "installHint": "npm install -g @openai/codex",
    "docsUrl": "https://developers.openai.com/codex", "diagnostics": [],
}))]
pub(crate) struct Agent {
    /// What `agentId` names.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The program it is known by.
    pub(crate) bin: String,
    /// It is on this machine, or on a host of the fleet, and nothing is known to keep it from working.
    pub(crate) available: bool,
    /// Where its program is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// What it speaks: `acp-json-rpc`, `claude-stream-json`, `json-event-stream`, `plain`, …
    pub(crate) stream_format: String,
    /// The dialect, if it does not speak ACP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_parser: Option<String>,
    pub(crate) models: Vec<Choice>,
    /// Who told the models: `acp`, `command`, `help`, `settings`, or `fallback`, which is our list.
    pub(crate) models_source: String,
    /// Empty if it has none.
    pub(crate) reasoning_options: Vec<Choice>,
    /// `ok`, `missing` or `unknown`.
    pub(crate) auth_state: String,
    /// How to get it onto the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) install_hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) docs_url: Option<String>,
    /// What keeps it from working, and the way out: `{reason, severity, message, fix}`.
    #[schema(value_type = Vec<Object>)]
    pub(crate) diagnostics: Vec<Value>,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Choice {
    pub(crate) id: String,
    pub(crate) label: String,
}

impl Choice {
    fn new(id: &str, label: impl Into<String>) -> Choice {
        Choice { id: id.to_owned(), label: label.into() }
    }
}

impl Agent {
    pub(crate) fn of_spec(spec: &AgentSpec, standing: &AgentStatus) -> Agent {
        let variant = standing.chosen.or((!spec.launch.is_empty()).then_some(0));
        let variant = variant.map(|it| &spec.launch[it]);
        let path = standing.program.as_ref().map(|it| it.path.display().to_string());
        Agent {
            id: spec.id.clone(),
            name: spec.name.clone(),
            bin: spec.bins.first().cloned().unwrap_or_default(),
            available: standing.is_usable(),
            path,
            version: standing.version.clone(),
            stream_format: variant.map_or(ACP, stream_format).to_owned(),
            event_parser: variant.and_then(|it| it.dialect.clone()),
            models: models(standing),
            models_source: standing.models.source.name().to_owned(),
            reasoning_options: reasoning(spec),
            auth_state: standing.login.name().to_owned(),
            install_hint: spec.install.clone(),
            docs_url: spec.docs.clone(),
            diagnostics: standing.diagnostics.iter().map(diagnostic).collect(),
        }
    }

    /// An agent of the configuration, of which only the command is known.
    pub(crate) fn of_command(name: &str, command: &[String], places: &ProgramLocations) -> Agent {
        let found = command
            .first()
            .and_then(|it| find_program(std::slice::from_ref(it), None, places).ok());
        let path = found.map(|it| it.path.display().to_string());
        Agent { available: path.is_some(), path, ..Agent::of_session(name, command) }
    }

    /// An agent that serves a session, whoever gave its command.
    pub(crate) fn of_session(name: &str, command: &[String]) -> Agent {
        Agent {
            id: name.to_owned(),
            name: name.to_owned(),
            bin: command.first().cloned().unwrap_or_default(),
            available: true,
            path: None,
            version: None,
            stream_format: ACP.to_owned(),
            event_parser: None,
            models: vec![Choice::new(DEFAULT_OPTION, DEFAULT_LABEL)],
            models_source: "fallback".to_owned(),
            reasoning_options: Vec::new(),
            auth_state: "unknown".to_owned(),
            install_hint: None,
            docs_url: None,
            diagnostics: Vec::new(),
        }
    }

    /// The same where sessions are placed on hosts: it matters whether one of them has it.
    pub(crate) fn in_fleet(self, is_hosted: bool) -> Agent {
        let nobody = json!({
            "reason": "on-no-host", "severity": "error", "message": "no host of the fleet has it",
            "fix": "install it on a host; `jackfield fleet hosts` shows what each has",
        });
        let diagnostics = if is_hosted { Vec::new() } else { vec![nobody] };
        let auth_state = "unknown".to_owned();
        Agent { available: is_hosted, path: None, version: None, auth_state, diagnostics, ..self }
    }
}

const ACP: &str = "acp-json-rpc";
const DEFAULT_LABEL: &str = "Default (CLI config)";
/// What a program that prints bare text speaks.
pub(crate) const PLAIN: &str = "plain";

/// What a program speaks, in the words that clients know.
pub(crate) fn stream_format(variant: &LaunchVariant) -> &'static str {
    match variant.dialect.as_deref() {
        None => ACP,
        Some("plain") => PLAIN,
        Some("claude" | "amp") => "claude-stream-json",
        Some("copilot") => "copilot-stream-json",
        Some("pi") => "pi-rpc",
        Some(_) => "json-event-stream",
    }
}

fn models(standing: &AgentStatus) -> Vec<Choice> {
    let offered = standing.models.models.iter().map(|it| {
        let current = standing.models.current.as_ref() == Some(&it.id);
        let name =
            if it.name == it.id { it.id.clone() } else { format!("{} ({})", it.name, it.id) };
        Choice::new(&it.id, if current { format!("{name} • current") } else { name })
    });
    [Choice::new(DEFAULT_OPTION, DEFAULT_LABEL)].into_iter().chain(offered).collect()
}

fn reasoning(spec: &AgentSpec) -> Vec<Choice> {
    let default = (!spec.reasoning.is_empty()).then(|| Choice::new(DEFAULT_OPTION, "Default"));
    default
        .into_iter()
        .chain(spec.reasoning.iter().map(|it| Choice::new(it, it.as_str())))
        .collect()
}

fn diagnostic(it: &AgentDiagnostic) -> Value {
    json!({
        "reason": it.reason, "severity": it.severity, "message": it.message, "fix": it.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_catalog::Catalog;

    #[test]
    fn every_dialect_has_a_format_and_only_bare_text_is_plain() {
        for spec in Catalog::builtin().iter() {
            for variant in &spec.launch {
                let plain = variant.dialect.as_deref() == Some("plain");
                assert_eq!(stream_format(variant) == PLAIN, plain, "{}", spec.id);
            }
        }
    }

    #[test]
    fn an_agent_that_is_not_here_has_its_own_list_and_says_why() {
        let catalogue = Catalog::builtin();
        let spec = catalogue.get("codex").unwrap();
        let places =
            ProgramLocations::new([("PATH".to_owned(), "/nowhere".to_owned())].into_iter());
        let agent = Agent::of_spec(spec, &AgentStatus::new(spec, &places, None));
        assert!(!agent.available && agent.path.is_none() && agent.version.is_none());
        assert_eq!(agent.models[0], Choice::new("default", "Default (CLI config)"));
        assert!(1 < agent.models.len());
        assert_eq!(agent.reasoning_options[0].id, "default");
        assert_eq!(agent.diagnostics[0]["reason"], "not-on-path");
        assert_eq!(agent.install_hint.as_deref(), Some("npm install -g @openai/codex"));
    }
}
