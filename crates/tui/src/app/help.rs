//! The page with all keys: how far it is scrolled.

use crate::{
    keymap::{KeyAction, KeyBindings, KeyContext},
    page::{AppInput, PageChange, UpdateContext},
};

/// One line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HelpLine {
    Heading(&'static str),
    Key { keys: String, meaning: &'static str },
    Empty,
}

/// The help. The keys of the page from which it was opened come first.
#[derive(Debug, Default)]
pub(crate) struct HelpState {
    lines: Vec<HelpLine>,
    top: usize,
    height: usize,
}

impl HelpState {
    /// Shows the help from its beginning.
    pub(crate) fn open(&mut self, keymap: &KeyBindings, context: KeyContext) {
        let others = KeyContext::ALL.iter().copied().filter(|it| *it != context);
        self.lines.clear();
        for context in std::iter::once(context).chain(others) {
            self.push_context(keymap, context);
        }
        self.top = 0;
    }

    fn push_context(&mut self, keymap: &KeyBindings, context: KeyContext) {
        if !self.lines.is_empty() {
            self.lines.push(HelpLine::Empty);
        }
        self.lines.push(HelpLine::Heading(context.label()));
        let rows = keymap.help_rows(context).into_iter();
        self.lines.extend(rows.map(|(keys, meaning)| HelpLine::Key { keys, meaning }));
    }

    pub(crate) fn update(&mut self, cx: &mut UpdateContext<'_>, input: &AppInput) {
        match input {
            AppInput::Key(key) => match cx.keymap.action(KeyContext::Help, key) {
                Some(KeyAction::GoBack) => cx.change_page(PageChange::Back),
                Some(KeyAction::MoveDown) => self.scroll(1),
                Some(KeyAction::MoveUp) => self.scroll(-1),
                Some(KeyAction::MovePageDown) => self.scroll_pages(1),
                Some(KeyAction::MovePageUp) => self.scroll_pages(-1),
                Some(KeyAction::MoveFirst) => self.scroll(isize::MIN),
                Some(KeyAction::MoveLast) => self.scroll(isize::MAX),
                _ => {}
            },
            AppInput::Resize { height, .. } => {
                self.height = usize::from(*height);
                self.scroll(0);
            }
            _ => {}
        }
    }

    fn scroll_pages(&mut self, pages: isize) {
        let lines = isize::try_from(self.height.max(2) - 1).unwrap_or(isize::MAX);
        self.scroll(pages.saturating_mul(lines));
    }

    fn scroll(&mut self, lines: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(lines).min(last);
    }

    /// The lines from the first visible one.
    pub(crate) fn visible_lines(&self) -> &[HelpLine] {
        &self.lines[self.top.min(self.lines.len())..]
    }
}
