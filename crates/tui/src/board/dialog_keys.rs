//! Keys of the dialogs of the board.

use super::{BoardDialog, BoardState, dialog::resolve_directory, outcome::AwaitedOutcome};
use crate::{hub::HubRequest, keymap::KeyAction, page::UpdateContext};
use crossterm::event::{KeyCode, KeyEvent};

impl BoardState {
    pub(super) fn on_dialog_key(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        let action = cx.keymap.action(self.key_context(), key);
        if action == Some(KeyAction::GoBack) {
            self.dialog = None;
            return;
        }
        let is_accepted = action == Some(KeyAction::Accept);
        match &mut self.dialog {
            Some(BoardDialog::NewSession(dialog)) => match action {
                Some(KeyAction::MoveDown) => dialog.step(1),
                Some(KeyAction::MoveUp) => dialog.step(-1),
                Some(KeyAction::Accept) => self.accept_dialog(cx),
                _ => {
                    dialog.directory.on_key(key);
                }
            },
            Some(BoardDialog::Rename { .. }) if is_accepted => self.accept_dialog(cx),
            Some(BoardDialog::Rename { field, .. }) => {
                field.on_key(key);
            }
            Some(BoardDialog::ConfirmClose { .. }) => {
                if is_accepted || key.code == KeyCode::Char('y') {
                    self.accept_dialog(cx);
                } else {
                    self.dialog = None;
                }
            }
            None => {}
        }
    }

    fn accept_dialog(&mut self, cx: &mut UpdateContext<'_>) {
        match self.dialog.take() {
            Some(BoardDialog::NewSession(dialog)) => {
                let cwd = resolve_directory(dialog.directory.text(), cx.options);
                self.start_session(cx, dialog.agent().map(str::to_owned), cwd);
            }
            Some(BoardDialog::Rename { session, field }) => {
                let name = field.text().trim().to_owned();
                if name.is_empty() {
                    return cx.show_notice("The name is empty; the session keeps its name");
                }
                let title = name.clone();
                let number = cx.send(HubRequest::RenameSession { session, name });
                self.awaited.insert(number, AwaitedOutcome::Rename { title });
            }
            Some(BoardDialog::ConfirmClose { session, title }) => {
                self.close_session(cx, session, title);
            }
            None => {}
        }
    }
}
