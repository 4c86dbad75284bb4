//! Finds what a key does: in what is open above the page first, then in the part that has the focus.

use super::{SessionFocus, SessionOverlay, SessionView, composer::ComposerReply};
use crate::{
    keymap::KeyAction,
    page::{AppEffect, UpdateContext},
};
use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Lines for a step of the mouse wheel.
const WHEEL_LINES: isize = 3;

impl SessionView {
    pub(super) fn on_key(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        if self.overlay.is_some() {
            return self.on_overlay_key(cx, key);
        }
        if self.focus == SessionFocus::Composer && self.on_menu_key(key) {
            return;
        }
        let is_escape = key.code == KeyCode::Esc && self.composer.editor().uses_escape();
        let action = cx.keymap.action(self.focus(), key);
        match action.filter(|_| !(is_escape && self.focus == SessionFocus::Composer)) {
            Some(action) => self.run_action(cx, action),
            None if self.focus == SessionFocus::Composer => {
                let reply = self.composer.on_key(key, &self.settings.commands);
                self.apply_reply(cx, reply);
            }
            None => {}
        }
    }

    pub(super) fn on_paste(&mut self, cx: &mut UpdateContext<'_>, text: &str) {
        match &mut self.overlay {
            Some(SessionOverlay::Picker(picker)) => picker.paste(text),
            Some(SessionOverlay::Line(line)) => line.editor.paste(text),
            Some(SessionOverlay::Detail(_)) => {}
            None => {
                self.focus = SessionFocus::Composer;
                let reply = self.composer.paste(text, &self.settings.commands);
                self.apply_reply(cx, reply);
            }
        }
    }

    pub(super) fn on_mouse(&mut self, mouse: MouseEvent) {
        let (lines, action) = match mouse.kind {
            MouseEventKind::ScrollDown => (WHEEL_LINES, KeyAction::MoveDown),
            MouseEventKind::ScrollUp => (-WHEEL_LINES, KeyAction::MoveUp),
            MouseEventKind::Down(MouseButton::Left) => {
                return self.on_click(Position::new(mouse.column, mouse.row));
            }
            _ => return,
        };
        match &mut self.overlay {
            Some(SessionOverlay::Detail(page)) => {
                (0..WHEEL_LINES).for_each(|_| page.scroll(action));
            }
            Some(SessionOverlay::Picker(picker)) => picker.move_selection(action),
            Some(SessionOverlay::Line(_)) | None => self.pane.scroll_lines(lines),
        }
    }

    fn on_click(&mut self, at: Position) {
        if self.overlay.is_some() {
            return;
        }
        let areas = self.areas(Rect::new(0, 0, self.size.0, self.size.1));
        if areas.transcript.contains(at) {
            self.focus = SessionFocus::Transcript;
            self.pane.select_row(at.y - areas.transcript.y);
        } else if areas.composer.contains(at) {
            self.focus = SessionFocus::Composer;
        } else if areas.queue.contains(at) {
            self.focus = SessionFocus::Queue;
        }
    }

    /// The keys of an open completion menu. Returns whether the key was one of them.
    fn on_menu_key(&mut self, key: &KeyEvent) -> bool {
        if self.composer.menu().is_none() || !key.modifiers.is_empty() {
            return false;
        }
        match key.code {
            KeyCode::Up => self.composer.select_entry(false),
            KeyCode::Down => self.composer.select_entry(true),
            KeyCode::Tab => {
                self.composer.complete();
            }
            // A word that is complete is sent.
            KeyCode::Enter if !self.composer.is_completed() => {
                self.composer.complete();
            }
            KeyCode::Esc => self.composer.close_menu(),
            _ => return false,
        }
        true
    }

    fn on_overlay_key(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        let action = cx.keymap.action(self.focus(), key);
        match (&mut self.overlay, action) {
            (_, Some(KeyAction::GoBack)) => self.close_overlay(),
            (Some(SessionOverlay::Picker(_)), Some(KeyAction::Accept)) => self.accept_choice(cx),
            (Some(SessionOverlay::Line(_)), Some(KeyAction::Accept)) => self.accept_line(cx),
            (Some(SessionOverlay::Picker(picker)), Some(action)) => picker.move_selection(action),
            (Some(SessionOverlay::Picker(picker)), None) => picker.on_filter_key(key),
            (Some(SessionOverlay::Line(line)), None) => {
                line.editor.on_key(key);
            }
            (
                Some(SessionOverlay::Detail(_)),
                Some(action @ (KeyAction::CopyItem | KeyAction::CopyCode)),
            ) => {
                self.run_action(cx, action);
            }
            (Some(SessionOverlay::Detail(page)), Some(action)) => page.scroll(action),
            _ => {}
        }
    }

    /// The directories of the session. The additional ones are known when the settings were read.
    fn directories(&self) -> Vec<String> {
        match &self.settings.directories[..] {
            [] => vec![self.row.cwd.clone()],
            directories => directories.to_vec(),
        }
    }

    pub(super) fn apply_reply(&mut self, cx: &mut UpdateContext<'_>, reply: ComposerReply) {
        match reply {
            ComposerReply::FindFiles(query) => cx.push_effect(AppEffect::FindFiles {
                session: self.session.clone(),
                directories: self.directories(),
                query,
            }),
            ComposerReply::EditExternally(text) => cx.push_effect(AppEffect::EditExternally(text)),
            ComposerReply::Done | ComposerReply::Ignored => {}
        }
    }
}
