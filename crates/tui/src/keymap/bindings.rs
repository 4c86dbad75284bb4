//! The keys of each action: the defaults, changed by `[tui]` in `config.toml`.

use super::{
    KeyAction, KeyChord, KeyContext,
    table::{ACTIONS, ActionRow},
};
use crossterm::event::KeyEvent;
use std::collections::{BTreeMap, HashMap};

/// How text is edited in the input field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditingKeys {
    #[default]
    Emacs,
    Vi,
}

/// An invalid entry of `[tui.bindings]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBindingError {
    /// The name of the action as it is in the file.
    pub action: String,
    /// What is wrong and how to correct it.
    pub reason: String,
}

/// Checks `[tui.bindings]`: the keys of actions by name.
pub fn check_key_bindings(changes: &BTreeMap<String, Vec<String>>) -> Result<(), KeyBindingError> {
    KeyBindings::from_config(EditingKeys::default(), changes).map(|_| ())
}

/// Finds the action of a key.
#[derive(Debug, Clone)]
pub(crate) struct KeyBindings {
    editing: EditingKeys,
    /// The keys of each row of [`ACTIONS`].
    keys: Vec<Vec<KeyChord>>,
    actions: HashMap<(KeyContext, KeyChord), KeyAction>,
}

impl Default for KeyBindings {
    fn default() -> KeyBindings {
        KeyBindings::from_config(EditingKeys::Emacs, &BTreeMap::new())
            .expect("a test checks that the default keys have no conflict")
    }
}

impl KeyBindings {
    /// Replaces the keys of the named actions. An unknown name, an unknown key, or a key with two actions is an error.
    pub(crate) fn from_config(
        editing: EditingKeys,
        changes: &BTreeMap<String, Vec<String>>,
    ) -> Result<KeyBindings, KeyBindingError> {
        if let Some(unknown) = changes.keys().find(|it| ACTIONS.iter().all(|row| row.name != **it))
        {
            let reason = describe_unknown_action(unknown);
            return Err(KeyBindingError { action: unknown.clone(), reason });
        }
        let (keys, actions) = (Vec::with_capacity(ACTIONS.len()), HashMap::new());
        let mut bindings = KeyBindings { editing, keys, actions };
        for row in ACTIONS {
            let keys = match changes.get(row.name) {
                Some(texts) => parse_keys(row.name, texts.iter().map(String::as_str))?,
                None => parse_keys(row.name, row.default_keys.iter().copied())?,
            };
            bindings.bind(row, &keys, changes)?;
            bindings.keys.push(keys);
        }
        Ok(bindings)
    }

    pub(crate) fn editing(&self) -> EditingKeys {
        self.editing
    }

    /// What the key does where the focus is; `None` if it is text or has no meaning there.
    pub(crate) fn action(&self, context: KeyContext, key: &KeyEvent) -> Option<KeyAction> {
        self.actions.get(&(context, KeyChord::of_event(key))).copied()
    }

    /// The first key of each action that the footer shows, and its word.
    pub(crate) fn hints(&self, context: KeyContext) -> Vec<(String, &'static str)> {
        let rows = self.rows(context).filter(|(row, _)| !row.hint.is_empty());
        rows.filter_map(|(row, keys)| Some((keys.first()?.to_string(), row.hint))).collect()
    }

    /// All keys of each action, and its meaning.
    pub(crate) fn help_rows(&self, context: KeyContext) -> Vec<(String, &'static str)> {
        let rows = self.rows(context).filter(|(_, keys)| !keys.is_empty());
        rows.map(|(row, keys)| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            (keys.join(", "), row.meaning)
        })
        .collect()
    }

    /// The first key of an action as text, for a sentence such as "press f2".
    pub(crate) fn key_label(&self, context: KeyContext, action: KeyAction) -> Option<String> {
        let (_, keys) = self.rows(context).find(|(row, _)| row.action == action)?;
        keys.first().map(ToString::to_string)
    }

    fn rows(
        &self,
        context: KeyContext,
    ) -> impl Iterator<Item = (&'static ActionRow, Vec<KeyChord>)> + '_ {
        let rows =
            ACTIONS.iter().zip(&self.keys).filter(move |(row, _)| row.contexts.contains(&context));
        rows.map(move |(row, keys)| {
            (row, keys.iter().copied().filter(|it| can_bind(context, *it)).collect())
        })
    }

    fn bind(
        &mut self,
        row: &ActionRow,
        keys: &[KeyChord],
        changes: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), KeyBindingError> {
        for context in row.contexts {
            for key in keys.iter().filter(|it| can_bind(*context, **it)) {
                let other = self.actions.insert((*context, *key), row.action);
                if let Some(other) = other.filter(|it| *it != row.action) {
                    let other = name_in(*context, other);
                    // The action whose keys were changed is the cause.
                    let action = if changes.contains_key(row.name) { row.name } else { other };
                    let reason = format!(
                        "`{key}` has two actions in the {}: `{other}` and `{}`; give one of them other keys, or `[]` \
                         for none",
                        context.label(),
                        row.name
                    );
                    return Err(KeyBindingError { action: action.to_owned(), reason });
                }
            }
        }
        Ok(())
    }
}

/// The name of the action that has this meaning in a context.
fn name_in(context: KeyContext, action: KeyAction) -> &'static str {
    let matches = |it: &&ActionRow| it.action == action && it.contexts.contains(&context);
    ACTIONS.iter().find(matches).map_or("another action", |it| it.name)
}

fn can_bind(context: KeyContext, key: KeyChord) -> bool {
    !(context.takes_text() && key.is_text())
}

fn parse_keys<'a>(
    name: &str,
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<KeyChord>, KeyBindingError> {
    texts
        .map(|text| {
            KeyChord::parse(text).ok_or_else(|| KeyBindingError {
                action: name.to_owned(),
                reason: format!(
                    "`{text}` of `{name}` is not a key: write a character, `enter`, `esc`, `tab`, `space`, `up`, \
                     `pageup`, `f1` and the like, after `ctrl-`, `alt-` or `shift-` as needed"
                ),
            })
        })
        .collect()
}

fn describe_unknown_action(name: &str) -> String {
    let group = name.split('.').next().unwrap_or_default();
    let similar: Vec<_> =
        ACTIONS.iter().map(|it| it.name).filter(|it| it.split('.').next() == Some(group)).collect();
    if similar.is_empty() {
        let mut groups: Vec<_> =
            ACTIONS.iter().filter_map(|it| it.name.split('.').next()).collect();
        groups.sort_unstable();
        groups.dedup();
        return format!("`{name}` is not an action: names start with {}", groups.join(", "));
    }
    format!("`{name}` is not an action: choose one of {}", similar.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};

    fn bind(rows: &[(&str, &[&str])]) -> Result<KeyBindings, KeyBindingError> {
        let changes = rows
            .iter()
            .map(|(name, keys)| {
                ((*name).to_owned(), keys.iter().map(|it| (*it).to_owned()).collect())
            })
            .collect();
        KeyBindings::from_config(EditingKeys::Emacs, &changes)
    }

    fn key(text: char, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(text), modifiers)
    }

    #[test]
    fn default_keys_have_no_conflict_and_names_are_unique() {
        bind(&[]).unwrap();
        let mut names: Vec<_> = ACTIONS.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ACTIONS.len());
    }

    #[test]
    fn character_is_an_action_only_where_text_is_not_typed() {
        let bindings = bind(&[]).unwrap();
        let m = key('m', KeyModifiers::NONE);
        assert_eq!(bindings.action(KeyContext::Session, &m), Some(KeyAction::PickMode));
        assert_eq!(bindings.action(KeyContext::Composer, &m), None);
        let alt_m = key('m', KeyModifiers::ALT);
        assert_eq!(bindings.action(KeyContext::Composer, &alt_m), Some(KeyAction::PickMode));
        let label = bindings.key_label(KeyContext::Composer, KeyAction::PickMode);
        assert_eq!(label.as_deref(), Some("alt-m"));
    }

    #[test]
    fn changed_action_loses_its_default_keys() {
        let bindings = bind(&[("session.cancel", &["f8"])]).unwrap();
        assert_eq!(bindings.action(KeyContext::Session, &key('c', KeyModifiers::CONTROL)), None);
        let f8 = KeyEvent::new(KeyCode::F(8), KeyModifiers::NONE);
        assert_eq!(bindings.action(KeyContext::Session, &f8), Some(KeyAction::CancelTurn));
        assert!(bindings.hints(KeyContext::Session).contains(&("f8".to_owned(), "cancel")));
    }

    #[test]
    fn mistake_in_the_configuration_is_explained() {
        let conflict = bind(&[("session.print", &["ctrl-c"])]).unwrap_err();
        assert!(conflict.reason.contains("`session.cancel` and `session.print`"), "{conflict:?}");
        assert_eq!(conflict.action, "session.print");
        let conflict = bind(&[("composer.send", &["ctrl-c"])]).unwrap_err();
        assert_eq!(conflict.action, "composer.send", "{conflict:?}");
        let unknown = bind(&[("session.cansel", &["x"])]).unwrap_err();
        assert!(unknown.reason.contains("session.cancel"), "{unknown:?}");
        let unknown = bind(&[("other.cancel", &["x"])]).unwrap_err();
        assert!(unknown.reason.contains("names start with app, board, composer"), "{unknown:?}");
        let key = bind(&[("session.print", &["kontrol-c"])]).unwrap_err();
        assert!(key.reason.contains("`kontrol-c` of `session.print` is not a key"), "{key:?}");
    }
}
