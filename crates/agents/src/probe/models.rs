//! The models of an agent: from the agent itself, a command, a settings file or the built-in list.

use crate::find::ProgramLocations;
use jackfield_catalog::{AgentSpec, DEFAULT_OPTION, ModelEntry, ModelSource, parse_models};
use serde::{Deserialize, Serialize};
use std::{fs::File, io::Read as _, path::Path};

/// The source of a list of models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelListSource {
    /// The agent, in its response to `session/new`.
    Acp,
    Command,
    Help,
    /// A settings file of the user.
    Settings,
    /// The list of the spec.
    #[default]
    Fallback,
}

impl ModelListSource {
    pub fn name(self) -> &'static str {
        match self {
            ModelListSource::Acp => "acp",
            ModelListSource::Command => "command",
            ModelListSource::Help => "help",
            ModelListSource::Settings => "settings",
            ModelListSource::Fallback => "fallback",
        }
    }
}

/// The models of an agent without `default`, which every agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    pub source: ModelListSource,
    pub models: Vec<ModelEntry>,
    /// The agent's default model, if it reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// A settings file longer than this is not read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The list of the spec.
pub(super) fn fallback_models(spec: &AgentSpec) -> ModelList {
    let models = spec.models.fallback.iter();
    let models = models.map(|it| ModelEntry { id: it.clone(), name: it.clone() }).collect();
    ModelList { source: ModelListSource::Fallback, models, current: None }
}

/// A list without `default`; `None` if it is then empty.
pub(super) fn reported_models(
    source: ModelListSource,
    mut models: Vec<ModelEntry>,
) -> Option<ModelList> {
    models.retain(|it| it.id != DEFAULT_OPTION);
    (!models.is_empty()).then_some(ModelList { source, models, current: None })
}

/// The list of the user's settings followed by the built-in list, or why it cannot be read.
pub(super) fn settings_models(
    spec: &AgentSpec,
    locations: &ProgramLocations,
) -> Option<Result<ModelList, String>> {
    if spec.models.from != Some(ModelSource::Settings) {
        return None;
    }
    let named = spec.models.file_env.as_deref().and_then(|it| locations.var(it));
    let path = locations.expand_home(named.or(spec.models.file.as_deref())?);
    // A missing settings file is not an error.
    path.exists().then(|| read_settings(spec, &path))
}

fn read_settings(spec: &AgentSpec, path: &Path) -> Result<ModelList, String> {
    let shown = path.display();
    let unreadable = |error| format!("`{shown}` cannot be read: {error}");
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&text);
    let listed = spec.models.format.map(|it| parse_models(it, &text)).unwrap_or_default();
    let Some(mut list) = reported_models(ModelListSource::Settings, listed) else {
        let why = match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            Ok(_) => "it names no models".to_owned(),
            Err(error) => format!("it is not valid JSON: {error}"),
        };
        return Err(format!("`{shown}`: {why}"));
    };
    for model in fallback_models(spec).models {
        if list.models.iter().all(|it| it.id != model.id) {
            list.models.push(model);
        }
    }
    Ok(list)
}
