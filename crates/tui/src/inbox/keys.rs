//! What keys and the mouse do in the inbox.

use super::{FormField, InboxState, PAGE_SIZE_MIN, form::FormReply};
use crate::{
    keymap::KeyAction,
    page::{AppEffect, PageChange, UpdateContext},
};
use crossterm::event::{KeyEvent, MouseEvent, MouseEventKind};
use jackfield_events::Time;

/// Lines that one step of the mouse wheel scrolls.
const WHEEL_LINES: isize = 3;

impl InboxState {
    pub(super) fn on_key(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        let action = cx.keymap.action(self.key_context(), key);
        let page = isize::try_from(self.content_height().max(2) - 1).unwrap_or(isize::MAX);
        match action {
            Some(KeyAction::GoBack) => return cx.change_page(PageChange::Back),
            Some(KeyAction::MovePageDown) => return self.scroll(page),
            Some(KeyAction::MovePageUp) => return self.scroll(-page),
            _ => {}
        }
        if self.form.is_some() {
            return self.on_form_key(cx, key, action);
        }
        match action {
            Some(KeyAction::MoveDown) => self.scroll(1),
            Some(KeyAction::MoveUp) => self.scroll(-1),
            Some(KeyAction::MoveFirst) => self.scroll(isize::MIN),
            Some(KeyAction::MoveLast) => self.scroll(isize::MAX),
            Some(KeyAction::NextRequest) => self.step(cx, true),
            Some(KeyAction::PreviousRequest) => self.step(cx, false),
            Some(KeyAction::OpenRequestSession) => {
                if let Some((session, _)) = self.shown.clone() {
                    cx.change_page(PageChange::Session(session));
                }
            }
            _ => self.choose_option(cx, key, action),
        }
    }

    /// Answers the request if the key belongs to an option, and the guard permits it.
    fn choose_option(
        &mut self,
        cx: &mut UpdateContext<'_>,
        key: &KeyEvent,
        action: Option<KeyAction>,
    ) {
        if !self.can_answer() {
            return;
        }
        let chosen = self.choices.iter().find(|it| it.is_chosen_by(key, action));
        if let Some(choice) = chosen.cloned() {
            self.send_option(cx, choice.option_id, choice.name);
        }
    }

    fn on_form_key(
        &mut self,
        cx: &mut UpdateContext<'_>,
        key: &KeyEvent,
        action: Option<KeyAction>,
    ) {
        if !self.can_answer() {
            return;
        }
        let Some(form) = &mut self.form else { return };
        match form.on_key(key, action) {
            FormReply::None => {}
            FormReply::Leave { is_forward } => self.step(cx, is_forward),
            FormReply::CopyAddress(url) => {
                cx.show_notice("Copied the address");
                cx.push_effect(AppEffect::Copy(url));
            }
            FormReply::Answer(result, label) => self.send_form(cx, result, label.to_owned()),
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        if self.can_answer()
            && let Some(form) = &mut self.form
        {
            form.insert(text);
        }
    }

    pub(super) fn on_mouse(&mut self, mouse: MouseEvent) {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.scroll(WHEEL_LINES),
            MouseEventKind::ScrollUp => self.scroll(-WHEEL_LINES),
            _ => {}
        }
    }

    fn can_answer(&self) -> bool {
        self.is_key_allowed && self.has_focus && self.shown.is_some() && self.sent.is_none()
    }

    /// Whether a key that is typed now may answer the request.
    pub(crate) fn is_answerable(&self, now: Time) -> bool {
        self.guard.is_open(now) && self.has_focus && self.sent.is_none()
    }

    /// Shows the next request, or the one before.
    fn step(&mut self, cx: &mut UpdateContext<'_>, is_forward: bool) {
        let (Some(index), count) = (self.shown_index(), self.requests.len()) else { return };
        if count > 1 {
            let next = if is_forward { index + 1 } else { index + count - 1 };
            self.show(cx, next % count);
        }
    }

    pub(super) fn scroll(&mut self, lines: isize) {
        let last = self.lines.len().saturating_sub(self.content_height());
        self.top = self.top.saturating_add_signed(lines).min(last);
    }

    /// The lines of the options, or of the form with its buttons. At least some of the text stays visible.
    pub(crate) fn answer_height(&self) -> usize {
        let height = self.free_height();
        match &self.form {
            Some(form) => {
                let wanted = form.fields.iter().map(FormField::line_count).sum::<usize>() + 1;
                wanted.min(height.saturating_sub(self.lines.len().min(3)))
            }
            None if self.has_option_lines() => self.choices.len(),
            None => self.option_rows().len(),
        }
    }

    /// Whether each option has a line of its own; otherwise they are side by side.
    pub(crate) fn has_option_lines(&self) -> bool {
        self.choices.len() <= (self.free_height() / 2).max(2)
    }

    /// The lines without heading and status.
    fn free_height(&self) -> usize {
        usize::from(self.size.1).saturating_sub(2 + usize::from(self.closed.is_some()))
    }

    /// The lines for the text of the request, directly above the options.
    pub(crate) fn content_height(&self) -> usize {
        self.lines.len().min(self.free_height().saturating_sub(self.answer_height()))
    }

    /// Whether the page is large enough for a request and all of its options.
    pub(crate) fn is_readable(&self) -> bool {
        let is_large = PAGE_SIZE_MIN.0 <= self.size.0 && PAGE_SIZE_MIN.1 <= self.size.1;
        is_large && self.answer_height() < self.free_height()
    }
}
