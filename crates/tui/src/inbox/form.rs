//! The form of a request: which field or button has the focus, and what keys do.

use super::form_fields::{FieldValue, FormField, read_fields, to_content};
use crate::{hub::OpenRequest, keymap::KeyAction};
use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Value, json};

/// What ends a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormButton {
    CopyAddress,
    Accept,
    Decline,
    Cancel,
}

impl FormButton {
    pub(crate) fn label(self) -> &'static str {
        match self {
            FormButton::CopyAddress => "Copy",
            FormButton::Accept => "Accept",
            FormButton::Decline => "Decline",
            FormButton::Cancel => "Cancel",
        }
    }
}

/// What a key led to.
#[derive(Debug, PartialEq)]
pub(crate) enum FormReply {
    None,
    /// The focus moves out of the form: to the next request, or to the one before.
    Leave {
        is_forward: bool,
    },
    CopyAddress(String),
    /// The result for the agent, and its name for the user.
    Answer(Value, &'static str),
}

/// The values that the user gives.
#[derive(Debug)]
pub(crate) struct RequestForm {
    pub(crate) fields: Vec<FormField>,
    /// The address of a page on which the request is answered.
    pub(crate) url: Option<String>,
    /// A field, or a button after all fields.
    pub(crate) focus: usize,
    /// Problems are shown after the first attempt to send.
    pub(crate) is_checked: bool,
}

impl RequestForm {
    pub(crate) fn new(request: &OpenRequest) -> RequestForm {
        let schema = request.requested_schema.as_ref();
        RequestForm {
            fields: schema.map(read_fields).unwrap_or_default(),
            url: request.url.clone(),
            focus: 0,
            is_checked: false,
        }
    }

    pub(crate) fn buttons(&self) -> &'static [FormButton] {
        const ALL: [FormButton; 4] =
            [FormButton::CopyAddress, FormButton::Accept, FormButton::Decline, FormButton::Cancel];
        if self.url.is_some() { &ALL } else { &ALL[1..] }
    }

    /// The button that has the focus.
    pub(crate) fn focused_button(&self) -> Option<FormButton> {
        let index = self.focus.checked_sub(self.fields.len())?;
        self.buttons().get(index).copied()
    }

    pub(crate) fn insert(&mut self, text: &str) {
        if let Some(FieldValue::Text(field) | FieldValue::Number { field, .. }) =
            self.focused_value()
        {
            field.insert(text);
        }
    }

    fn focused_value(&mut self) -> Option<&mut FieldValue> {
        self.fields.get_mut(self.focus).map(|it| &mut it.value)
    }

    pub(crate) fn on_key(&mut self, key: &KeyEvent, action: Option<KeyAction>) -> FormReply {
        match (key.code, action) {
            (KeyCode::Tab, _) | (_, Some(KeyAction::MoveDown)) => return self.move_focus(true),
            (KeyCode::BackTab, _) | (_, Some(KeyAction::MoveUp)) => return self.move_focus(false),
            _ => {}
        }
        if let Some(button) = self.focused_button() {
            return match (key.code, action) {
                (_, Some(KeyAction::Accept)) => self.press(button),
                (KeyCode::Right, _) => self.move_focus(true),
                (KeyCode::Left, _) => self.move_focus(false),
                _ => FormReply::None,
            };
        }
        if action == Some(KeyAction::Accept) {
            return self.move_focus(true);
        }
        if let Some(value) = self.focused_value() {
            change_value(value, key);
        }
        FormReply::None
    }

    fn move_focus(&mut self, is_forward: bool) -> FormReply {
        let last = self.fields.len() + self.buttons().len() - 1;
        match (is_forward, self.focus) {
            (true, focus) if focus == last => return FormReply::Leave { is_forward },
            (false, 0) => return FormReply::Leave { is_forward },
            (true, _) => self.focus += 1,
            (false, _) => self.focus -= 1,
        }
        FormReply::None
    }

    fn press(&mut self, button: FormButton) -> FormReply {
        match button {
            FormButton::CopyAddress => FormReply::CopyAddress(self.url.clone().unwrap_or_default()),
            FormButton::Decline => FormReply::Answer(json!({ "action": "decline" }), "declined"),
            FormButton::Cancel => FormReply::Answer(json!({ "action": "cancel" }), "cancelled"),
            FormButton::Accept if self.url.is_some() => {
                FormReply::Answer(json!({ "action": "accept" }), "accepted")
            }
            FormButton::Accept => {
                self.is_checked = true;
                if let Some(wrong) = self.fields.iter().position(|it| it.problem().is_some()) {
                    self.focus = wrong;
                    return FormReply::None;
                }
                let content = to_content(&self.fields);
                FormReply::Answer(json!({ "action": "accept", "content": content }), "accepted")
            }
        }
    }
}

/// Letters are text in a text; space and arrows change the other kinds.
fn change_value(value: &mut FieldValue, key: &KeyEvent) {
    let is_space = key.code == KeyCode::Char(' ');
    let step = match key.code {
        KeyCode::Right | KeyCode::Char(' ') => 1,
        KeyCode::Left => -1,
        _ => 0,
    };
    match value {
        FieldValue::Text(field) | FieldValue::Number { field, .. } => {
            field.on_key(key);
        }
        FieldValue::Boolean(value) => {
            if step != 0 {
                *value = !*value;
            }
        }
        FieldValue::Choice { choices, chosen } => {
            let count = isize::try_from(choices.len()).unwrap_or(isize::MAX);
            let current = chosen.and_then(|it| isize::try_from(it).ok());
            let next = match (current, step) {
                (_, 0) => return,
                (Some(it), _) => (it + step).rem_euclid(count),
                (None, 1) => 0,
                (None, _) => count - 1,
            };
            *chosen = usize::try_from(next).ok();
        }
        FieldValue::Choices { chosen, focus, .. } => {
            if is_space {
                chosen[*focus] = !chosen[*focus];
            } else {
                *focus = focus.saturating_add_signed(step).min(chosen.len() - 1);
            }
        }
        FieldValue::Unknown => {}
    }
}
