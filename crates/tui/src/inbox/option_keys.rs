//! The keys of the options of a permission request.

use crate::{
    hub::RequestOption,
    keymap::{KeyAction, KeyBindings, KeyContext},
    text::{cell_width, sanitize_line},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Keys of options by their position. Keys that have another meaning in the inbox are left out.
const POSITION_KEYS: &str = "123456789bcdefhimpqrstuvwxzABCDEFHIJKLMOPQRSTUVWXYZ";

/// One answer that can be given to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerChoice {
    /// `None` denies a request whose agent offers no option for it.
    pub(crate) option_id: Option<String>,
    pub(crate) name: String,
    /// What the kind of the option means.
    pub(crate) meaning: String,
    pub(crate) kind: String,
    /// Keys as text.
    pub(crate) keys: Vec<String>,
    /// The key of its position.
    position_key: Option<char>,
    /// The action that chooses it.
    action: Option<KeyAction>,
}

impl AnswerChoice {
    pub(crate) fn is_chosen_by(&self, key: &KeyEvent, action: Option<KeyAction>) -> bool {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let is_position =
            is_plain && self.position_key.is_some_and(|it| key.code == KeyCode::Char(it));
        is_position || (action.is_some() && self.action == action)
    }

    /// The cells of its keys, its name, and the space after it, if options are side by side.
    pub(crate) fn cell_width(&self) -> usize {
        let keys: usize = self.keys.iter().map(|it| cell_width(it) + 1).sum();
        keys + cell_width(&sanitize_line(&self.name)) + 3
    }

    /// Whether the answer counts for later requests, too.
    pub(crate) fn is_permanent(&self) -> bool {
        self.kind.ends_with("_always")
    }
}

/// All answers to a request, in the order of the agent.
pub(crate) fn answer_choices(options: &[RequestOption], keymap: &KeyBindings) -> Vec<AnswerChoice> {
    let is_free = |it: &char| {
        let key = KeyEvent::new(KeyCode::Char(*it), KeyModifiers::NONE);
        keymap.action(KeyContext::Inbox, &key).is_none()
    };
    let mut position_keys = POSITION_KEYS.chars().filter(is_free);
    let mut choices: Vec<AnswerChoice> = Vec::new();
    for option in options {
        let action = action_of_kind(&option.kind)
            .filter(|action| choices.iter().all(|it| it.action != Some(*action)));
        let name = if option.name.is_empty() { &option.option_id } else { &option.name };
        choices.push(AnswerChoice {
            option_id: Some(option.option_id.clone()),
            name: name.clone(),
            meaning: describe_kind(&option.kind).to_owned(),
            kind: option.kind.clone(),
            keys: Vec::new(),
            position_key: position_keys.next(),
            action,
        });
    }
    if !options.iter().any(|it| it.kind.starts_with("reject")) {
        choices.push(AnswerChoice {
            option_id: None,
            name: "Deny".to_owned(),
            meaning: "the agent offers no option for it".to_owned(),
            kind: String::new(),
            keys: Vec::new(),
            position_key: position_keys.next(),
            action: Some(KeyAction::RejectOnce),
        });
    }
    for it in &mut choices {
        let position = it.position_key.map(String::from);
        let named = it.action.and_then(|it| keymap.key_label(KeyContext::Inbox, it));
        it.keys = position.into_iter().chain(named).collect();
    }
    choices
}

fn action_of_kind(kind: &str) -> Option<KeyAction> {
    match kind {
        "allow_once" => Some(KeyAction::AllowOnce),
        "allow_always" => Some(KeyAction::AllowAlways),
        "reject_once" => Some(KeyAction::RejectOnce),
        "reject_always" => Some(KeyAction::RejectAlways),
        _ => None,
    }
}

/// A kind that ACP does not define is shown as the agent wrote it.
fn describe_kind(kind: &str) -> &str {
    match kind {
        "allow_once" => "allow this once",
        "allow_always" => "allow always",
        "reject_once" => "reject this once",
        "reject_always" => "reject always",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(kinds: &[&str]) -> Vec<String> {
        let option = |kind: &&str| RequestOption {
            option_id: format!("id-{kind}"),
            name: String::new(),
            kind: (*kind).to_owned(),
        };
        let options: Vec<_> = kinds.iter().map(option).collect();
        let choices = answer_choices(&options, &KeyBindings::default());
        choices.iter().map(|it| it.keys.join(" ")).collect()
    }

    #[test]
    fn options_have_a_number_and_the_first_of_a_kind_its_key() {
        let kinds = ["allow_once", "allow_always", "allow_once", "reject_once", "reject_always"];
        assert_eq!(keys(&kinds), ["1 y", "2 a", "3", "4 n", "5 N"]);
    }

    #[test]
    fn request_without_a_rejection_can_be_denied() {
        assert_eq!(keys(&["allow_once"]), ["1 y", "2 n"]);
        assert_eq!(keys(&[]), ["1 n"]);
    }

    #[test]
    fn every_option_has_a_key_of_its_own() {
        let mut kinds = vec!["other"; 20];
        kinds.push("reject_once");
        let mut keys: Vec<_> = keys(&kinds)
            .iter()
            .flat_map(|it| it.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert_eq!(keys.len(), 22);
        assert!(keys.iter().all(|it| !it.is_empty()));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 22);
    }
}
