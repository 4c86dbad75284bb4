//! Parses the model lists that programs print, with one parser per format. Entries that are not
//! valid model ids are left out.

mod json;
mod text;

use crate::ModelFormat;

/// A model that a program offers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModelEntry {
    pub id: String,
    pub name: String,
}

/// The longest accepted model id.
const ID_BYTES_MAX: usize = 200;

/// Parses a program's output; empty if it does not have the given format.
pub fn parse_models(format: ModelFormat, text: &str) -> Vec<ModelEntry> {
    let pairs: Vec<(String, String)> = match format {
        ModelFormat::Lines => text::parse_lines(text),
        ModelFormat::Opencode => text::parse_opencode(text),
        ModelFormat::Cursor => text::parse_cursor(text),
        ModelFormat::Grok => text::parse_grok(text),
        ModelFormat::Pi => text::parse_pi(text),
        ModelFormat::Codebuddy => text::parse_codebuddy(text),
        ModelFormat::Codex => json::parse_codex(text),
        ModelFormat::Dsh => json::parse_dsh(text),
        ModelFormat::QwenSettings => json::parse_qwen_settings(text),
    };
    let mut models: Vec<ModelEntry> = Vec::new();
    for (id, name) in pairs {
        let (id, name) = (id.trim(), name.trim());
        if is_model_id(id) && models.iter().all(|it| it.id != id) {
            let name = if name.is_empty() { id } else { name };
            models.push(ModelEntry { id: id.to_owned(), name: name.to_owned() });
        }
    }
    models
}

/// Whether a text can be a model id. It becomes an argument, so it must not look like an option or
/// contain characters that a program could interpret.
pub(crate) fn is_model_id(id: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"._/:@+-[] ".contains(&it);
    id.len() <= ID_BYTES_MAX
        && id.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric())
        && !id.ends_with(' ')
        && id.bytes().all(is_allowed)
}
