//! Lists to choose from: the mode, the model, the reasoning effort, and whether to cancel a turn.

use crate::{
    editor::TextEditor,
    keymap::KeyAction,
    text::{cell_width, sanitize_line},
};
use crossterm::event::KeyEvent;
use jackfield_views::options::SettingOffer;
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};

/// A list with a filter.
#[derive(Debug)]
pub(crate) struct ChoicePicker {
    purpose: PickerPurpose,
    title: String,
    choices: Vec<PickerChoice>,
    filter: TextEditor,
    /// The choices that match the filter, the best first.
    matching: Vec<usize>,
    /// An index of `matching`.
    selected: usize,
}

/// What the choice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerPurpose {
    Mode,
    Model,
    Reasoning,
    CancelTurn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerChoice {
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) is_current: bool,
}

/// The value of the choice that cancels the turn.
pub(crate) const CANCEL_VALUE: &str = "cancel";
const WIDTH_MIN: u16 = 30;
const WIDTH_MAX: u16 = 90;

impl ChoicePicker {
    pub(crate) fn new(
        purpose: PickerPurpose,
        title: &str,
        choices: Vec<PickerChoice>,
    ) -> ChoicePicker {
        let mut picker = ChoicePicker {
            purpose,
            title: title.to_owned(),
            choices,
            filter: TextEditor::single_line(""),
            matching: Vec::new(),
            selected: 0,
        };
        picker.apply_filter();
        picker.selected = picker.choices.iter().position(|it| it.is_current).unwrap_or(0);
        picker
    }

    /// The values that an agent offers for a setting.
    pub(crate) fn for_setting(
        purpose: PickerPurpose,
        title: &str,
        offer: &SettingOffer,
    ) -> ChoicePicker {
        let choices = offer.choices.iter().map(|it| PickerChoice {
            value: it.value.clone(),
            name: sanitize_line(&it.name).into_owned(),
            description: sanitize_line(it.description.as_deref().unwrap_or_default()).into_owned(),
            is_current: offer.current.as_ref() == Some(&it.value),
        });
        ChoicePicker::new(purpose, title, choices.collect())
    }

    /// Asks before a cancel that withdraws prompts.
    pub(crate) fn for_cancel(withdrawn: usize) -> ChoicePicker {
        let choice = |value: &str, name: String| PickerChoice {
            value: value.to_owned(),
            name,
            description: String::new(),
            is_current: false,
        };
        let prompts = if withdrawn == 1 { "prompt" } else { "prompts" };
        let cancel = format!("Cancel the turn and withdraw {withdrawn} {prompts}");
        let choices =
            vec![choice(CANCEL_VALUE, cancel), choice("keep", "Keep the turn".to_owned())];
        ChoicePicker::new(PickerPurpose::CancelTurn, "Cancel the turn?", choices)
    }

    pub(crate) fn purpose(&self) -> PickerPurpose {
        self.purpose
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The width of the content on a page of this width.
    pub(crate) fn width(&self, page_width: u16) -> u16 {
        let cells = |it: &PickerChoice| {
            let description =
                if it.description.is_empty() { 0 } else { cell_width(&it.description) + 2 };
            cell_width(&it.name) + description + 6
        };
        let widest = self.choices.iter().map(cells).max().unwrap_or(0);
        let widest = u16::try_from(widest).unwrap_or(u16::MAX);
        widest.clamp(WIDTH_MIN, WIDTH_MAX).min(page_width.saturating_sub(4))
    }

    /// Lays the filter out beside its mark, with a cell for the cursor.
    pub(crate) fn set_width(&mut self, page_width: u16) {
        self.filter.set_width(self.width(page_width).saturating_sub(3));
    }

    /// A question has no filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.purpose != PickerPurpose::CancelTurn
    }

    pub(crate) fn filter(&self) -> &TextEditor {
        &self.filter
    }

    pub(crate) fn all_choices(&self) -> &[PickerChoice] {
        &self.choices
    }

    pub(crate) fn matching_choices(&self) -> impl ExactSizeIterator<Item = &PickerChoice> {
        self.matching.iter().map(|it| &self.choices[*it])
    }

    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    pub(crate) fn selected_choice(&self) -> Option<&PickerChoice> {
        self.matching.get(self.selected).map(|it| &self.choices[*it])
    }

    /// Moves the selection. Other actions have no effect.
    pub(crate) fn move_selection(&mut self, action: KeyAction) {
        const PAGE: usize = 10;
        let last = self.matching.len().saturating_sub(1);
        let selected = self.selected;
        self.selected = match action {
            KeyAction::MoveDown if selected == last => 0,
            KeyAction::MoveDown => selected + 1,
            KeyAction::MoveUp => selected.checked_sub(1).unwrap_or(last),
            KeyAction::MovePageDown => (selected + PAGE).min(last),
            KeyAction::MovePageUp => selected.saturating_sub(PAGE),
            KeyAction::MoveFirst => 0,
            KeyAction::MoveLast => last,
            _ => selected,
        };
    }

    /// A key of the filter.
    pub(crate) fn on_filter_key(&mut self, key: &KeyEvent) {
        if !self.has_filter() {
            return;
        }
        let before = self.filter.text();
        self.filter.on_key(key);
        if self.filter.text() != before {
            self.apply_filter();
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if !self.has_filter() {
            return;
        }
        self.filter.paste(text);
        self.apply_filter();
    }

    fn apply_filter(&mut self) {
        let pattern =
            Pattern::parse(&self.filter.text(), CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut chars = Vec::new();
        let mut scored: Vec<(usize, u32)> = self
            .choices
            .iter()
            .enumerate()
            .filter_map(|(index, it)| {
                let text = format!("{} {}", it.name, it.value);
                let score = pattern.score(Utf32Str::new(&text, &mut chars), &mut matcher)?;
                Some((index, score))
            })
            .collect();
        scored.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        self.matching = scored.into_iter().map(|(index, _)| index).collect();
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};

    fn picker() -> ChoicePicker {
        let choice = |name: &str, is_current| PickerChoice {
            value: name.to_lowercase(),
            name: name.to_owned(),
            description: String::new(),
            is_current,
        };
        let choices = vec![choice("Opus", false), choice("Sonnet", true), choice("Haiku", false)];
        ChoicePicker::new(PickerPurpose::Model, "Model", choices)
    }

    #[test]
    fn filter_selects_the_best_match() {
        let mut picker = picker();
        assert_eq!(picker.selected_choice().unwrap().name, "Sonnet");
        for char in "hku".chars() {
            picker.on_filter_key(&KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE));
        }
        assert_eq!(picker.matching_choices().len(), 1);
        assert_eq!(picker.selected_choice().unwrap().value, "haiku");
    }

    #[test]
    fn selection_goes_around() {
        let mut picker = picker();
        picker.move_selection(KeyAction::MoveDown);
        picker.move_selection(KeyAction::MoveDown);
        assert_eq!(picker.selected(), 0);
        picker.move_selection(KeyAction::MoveUp);
        assert_eq!(picker.selected_choice().unwrap().name, "Haiku");
    }
}
