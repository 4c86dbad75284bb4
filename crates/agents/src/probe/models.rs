//! Which models an agent offers, from whoever knows: itself, a command, a file, or our own list.

use crate::find::Places;
use jackfield_catalogue::{DEFAULT, Model, ModelsFrom, Spec, parse_models};
use serde::{Deserialize, Serialize};
use std::{fs::File, io::Read as _, path::Path};

/// Who told the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The agent, when a session began.
    Acp,
    Command,
    Help,
    /// A settings file of the user's.
    Settings,
    /// The spec's own list.
    #[default]
    Fallback,
}

impl Source {
    pub fn shown(self) -> &'static str {
        match self {
            Source::Acp => "acp",
            Source::Command => "command",
            Source::Help => "help",
            Source::Settings => "settings",
            Source::Fallback => "fallback",
        }
    }
}

/// The models of an agent, without `default`, which every agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    pub source: Source,
    pub models: Vec<Model>,
    /// The one it uses unless told otherwise, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// A settings file longer than this is not read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The spec's own list.
pub(super) fn fallback(spec: &Spec) -> Offered {
    let models = spec.models.fallback.iter();
    let models = models.map(|it| Model { id: it.clone(), name: it.clone() }).collect();
    Offered { source: Source::Fallback, models, current: None }
}

/// What was told, without `default`; nothing if that leaves nothing.
pub(super) fn told(source: Source, mut models: Vec<Model>) -> Option<Offered> {
    models.retain(|it| it.id != DEFAULT);
    (!models.is_empty()).then_some(Offered { source, models, current: None })
}

/// The list in the user's settings, with ours behind it; why not, if there is none.
pub(super) fn settings(spec: &Spec, places: &Places) -> Option<Result<Offered, String>> {
    if spec.models.from != Some(ModelsFrom::Settings) {
        return None;
    }
    let named = spec.models.file_env.as_deref().and_then(|it| places.var(it));
    let path = places.expand(named.or(spec.models.file.as_deref())?);
    // Who has no settings has nothing to correct.
    path.exists().then(|| read(spec, &path))
}

fn read(spec: &Spec, path: &Path) -> Result<Offered, String> {
    let shown = path.display();
    let unreadable = |error| format!("`{shown}` cannot be read: {error}");
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&text);
    let listed = spec.models.format.map(|it| parse_models(it, &text)).unwrap_or_default();
    let Some(mut offered) = told(Source::Settings, listed) else {
        let why = match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            Ok(_) => "it names no models".to_owned(),
            Err(error) => format!("it is no JSON: {error}"),
        };
        return Err(format!("`{shown}`: {why}"));
    };
    for ours in fallback(spec).models {
        if offered.models.iter().all(|it| it.id != ours.id) {
            offered.models.push(ours);
        }
    }
    Ok(offered)
}
