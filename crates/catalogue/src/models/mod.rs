//! Models as programs list them: one reader per form. What is no id of a model is left out.

mod json;
mod text;

use crate::ModelFormat;

/// A model that a program offers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Model {
    pub id: String,
    pub name: String,
}

/// The longest id that is taken for one.
const ID_BYTES_MAX: usize = 200;

/// What a program printed, read in the given form; empty if it is not in that form.
pub fn parse_models(format: ModelFormat, text: &str) -> Vec<Model> {
    let found: Vec<(String, String)> = match format {
        ModelFormat::Lines => text::lines(text),
        ModelFormat::Opencode => text::opencode(text),
        ModelFormat::Cursor => text::cursor(text),
        ModelFormat::Grok => text::grok(text),
        ModelFormat::Pi => text::pi(text),
        ModelFormat::Codebuddy => text::codebuddy(text),
        ModelFormat::Codex => json::codex(text),
        ModelFormat::Dsh => json::dsh(text),
        ModelFormat::QwenSettings => json::qwen_settings(text),
    };
    let mut models: Vec<Model> = Vec::new();
    for (id, name) in found {
        let (id, name) = (id.trim(), name.trim());
        if is_id(id) && models.iter().all(|it| it.id != id) {
            let name = if name.is_empty() { id } else { name };
            models.push(Model { id: id.to_owned(), name: name.to_owned() });
        }
    }
    models
}

/// Whether a text can be a model's id: it becomes an argument, so it is no option and has no
/// character that a program could take for something else.
pub(crate) fn is_id(id: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"._/:@+-[] ".contains(&it);
    id.len() <= ID_BYTES_MAX
        && id.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric())
        && !id.ends_with(' ')
        && id.bytes().all(plain)
}
