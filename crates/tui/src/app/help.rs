//! The page with all keys: its lines, and how far it is scrolled.

use crate::{
    keymap::{KeyAction, KeyContext},
    page::{AppInput, PageChange, UpdateContext},
    text::{ViewTheme, truncate_cells, wrap_line},
};
use ratatui::text::{Line, Span};

/// The cells of the column of keys.
const KEYS_CELLS_MAX: usize = 24;

/// The help. The keys of the page from which it was opened come first.
#[derive(Debug, Default)]
pub(crate) struct HelpState {
    first_context: Option<KeyContext>,
    lines: Vec<Line<'static>>,
    top: usize,
    height: usize,
}

impl HelpState {
    /// Shows the help from its beginning.
    pub(crate) fn open(&mut self, cx: &UpdateContext<'_>, context: KeyContext) {
        self.first_context = Some(context);
        self.top = 0;
        self.lay_out(cx);
    }

    fn lay_out(&mut self, cx: &UpdateContext<'_>) {
        self.lines.clear();
        let Some(first) = self.first_context else { return };
        let others = KeyContext::ALL.iter().copied().filter(|it| *it != first);
        for context in std::iter::once(first).chain(others) {
            self.push_context(cx, context);
        }
        self.height = usize::from(cx.page_size.1);
        self.scroll(0);
    }

    fn push_context(&mut self, cx: &UpdateContext<'_>, context: KeyContext) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let mut name = context.label().to_owned();
        name[..1].make_ascii_uppercase();
        self.lines.push(Line::styled(format!(" {name}"), cx.theme.strong));
        for (keys, meaning) in cx.keymap.help_rows(context) {
            self.lines.extend(key_lines(cx.theme, &keys, meaning, cx.page_size.0));
        }
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
            AppInput::Resize { .. } => self.lay_out(cx),
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
    pub(crate) fn visible_lines(&self) -> &[Line<'static>] {
        &self.lines[self.top.min(self.lines.len())..]
    }
}

/// Keys on the left, their meaning on the right.
fn key_lines(
    theme: &ViewTheme,
    keys: &str,
    meaning: &'static str,
    width: u16,
) -> Vec<Line<'static>> {
    let cells = (usize::from(width) / 3).min(KEYS_CELLS_MAX);
    let keys = truncate_cells(keys, cells);
    let line = Line::from(vec![
        Span::styled(format!(" {keys:cells$}  "), theme.accent),
        Span::styled(meaning, theme.text),
    ]);
    wrap_line(line, width, u16::try_from(cells).unwrap_or(0) + 3)
}
