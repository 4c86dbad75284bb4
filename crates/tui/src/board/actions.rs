//! What keys and the mouse do on the board.

use super::{
    BoardDialog, BoardLine, BoardState, NewSessionDialog, SelectedLine, StateGroup,
    outcome::AwaitedOutcome,
};
use crate::{
    hub::HubRequest,
    keymap::{KeyAction, KeyContext},
    page::{AppEffect, LineField, PageChange, UpdateContext},
    text::{sanitize_line, shorten_path},
};
use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};

/// Lines that one step of the mouse wheel moves.
const WHEEL_LINES: isize = 3;
/// Cells of a directory in a notice.
const NOTICE_PATH_CELLS: usize = 40;

impl BoardState {
    pub(super) fn on_key(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        if self.dialog.is_some() {
            return self.on_dialog_key(cx, key);
        }
        match cx.keymap.action(self.key_context(), key) {
            Some(action) => self.on_action(cx, action, key),
            None if self.is_filtering && self.filter.on_key(key) => self.apply_filter(),
            None => {}
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) {
        match &mut self.dialog {
            Some(BoardDialog::NewSession(dialog)) => dialog.directory.insert(text),
            Some(BoardDialog::Rename { field, .. }) => field.insert(text),
            None if self.is_filtering => {
                self.filter.insert(text);
                self.apply_filter();
            }
            _ => {}
        }
    }

    pub(super) fn on_mouse(&mut self, cx: &mut UpdateContext<'_>, mouse: MouseEvent) {
        if self.dialog.is_some() {
            return;
        }
        match mouse.kind {
            MouseEventKind::ScrollDown => self.step(WHEEL_LINES),
            MouseEventKind::ScrollUp => self.step(-WHEEL_LINES),
            MouseEventKind::Down(MouseButton::Left) => self.on_click(cx, mouse.row),
            _ => {}
        }
    }

    /// A click selects a session; a click on the selected one opens it.
    fn on_click(&mut self, cx: &mut UpdateContext<'_>, row: u16) {
        let above = usize::from(self.size.1) - self.list_height().min(usize::from(self.size.1));
        let Some(offset) = usize::from(row).checked_sub(above) else { return };
        let line = self.cursor.top() + offset;
        if let Some(BoardLine::Project(project)) = self.list.lines.get(line) {
            let cwd = self.list.projects[*project].cwd.clone();
            return self.toggle_project(&cwd);
        }
        if line == self.cursor.line() {
            self.open_selected(cx);
        } else if self.list.is_selectable(line) {
            self.cursor.select_near(&self.table, &self.list, line);
        }
    }

    fn on_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction, key: &KeyEvent) {
        let page = isize::try_from(self.list_height().max(2) - 1).unwrap_or(isize::MAX);
        match action {
            KeyAction::MoveDown => self.step(1),
            KeyAction::MoveUp => self.step(-1),
            KeyAction::MovePageDown => self.step(page),
            KeyAction::MovePageUp => self.step(-page),
            KeyAction::MoveFirst => self.step(isize::MIN),
            KeyAction::MoveLast => self.step(isize::MAX),
            KeyAction::OpenSession => self.open_selected(cx),
            KeyAction::FilterBoard => self.is_filtering = true,
            KeyAction::GoBack => self.go_back(cx, key),
            KeyAction::ToggleGroup => self.toggle_selected_project(),
            KeyAction::ToggleClosed => self.toggle_closed(cx),
            KeyAction::NewSession => self.start_session(cx, None, cx.options.cwd.clone()),
            KeyAction::NewSessionWithAgent => self.ask_for_new_session(cx),
            KeyAction::UndoDelete => self.undo_deletion(cx),
            _ => self.on_session_action(cx, action),
        }
    }

    /// An action on the selected session.
    fn on_session_action(&mut self, cx: &mut UpdateContext<'_>, action: KeyAction) {
        let Some(SelectedLine::Session(session)) = self.cursor.selected().cloned() else {
            return cx.show_notice("Select a session first");
        };
        let Some(row) = self.table.find(&session) else { return };
        let title = sanitize_line(row.row.display_title()).into_owned();
        match action {
            KeyAction::ForkSession => {
                cx.show_notice(format!("Forking “{title}”…"));
                let number = cx.send(HubRequest::ForkSession { session, at: None });
                self.awaited.insert(number, AwaitedOutcome::Fork { title });
            }
            KeyAction::CloseSession => match row.group {
                StateGroup::Closed => cx.show_notice(format!("“{title}” is closed already")),
                StateGroup::NeedsUser | StateGroup::Working => {
                    self.dialog = Some(BoardDialog::ConfirmClose { session, title });
                }
                StateGroup::Idle | StateGroup::Asleep => self.close_session(cx, session, title),
            },
            KeyAction::DeleteSession => self.delete_session(cx, session, title),
            KeyAction::RenameSession => {
                self.dialog = Some(BoardDialog::Rename { session, field: LineField::new(&title) });
            }
            KeyAction::CopySessionId => {
                cx.show_notice(format!("Copied {session}"));
                cx.push_effect(AppEffect::Copy(session));
            }
            _ => {}
        }
    }

    fn step(&mut self, steps: isize) {
        let height = self.list_height();
        self.cursor.step((&self.table, &self.list), steps, height);
    }

    fn open_selected(&mut self, cx: &mut UpdateContext<'_>) {
        match self.cursor.selected().cloned() {
            Some(SelectedLine::Session(session)) => cx.change_page(PageChange::Session(session)),
            Some(SelectedLine::Project(cwd)) => self.toggle_project(&cwd),
            None => {}
        }
    }

    /// Closes the filter. Without one, `q` ends the interface; Esc does not, because it is pressed to leave other things.
    fn go_back(&mut self, cx: &mut UpdateContext<'_>, key: &KeyEvent) {
        if self.filter().is_some() {
            self.is_filtering = false;
            self.filter = LineField::default();
            return self.apply_filter();
        }
        if key.code == KeyCode::Esc {
            let quit = cx.keymap.key_label(KeyContext::Board, KeyAction::Quit).unwrap_or_default();
            return cx.show_notice(format!("Press {quit} to quit; sessions keep running"));
        }
        self.finish_deletions(cx);
        cx.push_effect(AppEffect::Quit);
    }

    pub(super) fn apply_filter(&mut self) {
        self.choice.filter = self.filter.text().trim().to_owned();
        self.rebuild_list();
        if let Some(best) = self.list.best_match {
            self.cursor.select_session(&self.table.rows()[best].row.session_id.clone());
            self.follow_cursor();
        }
    }

    fn toggle_selected_project(&mut self) {
        let cwd = match self.cursor.selected() {
            Some(SelectedLine::Session(session)) => {
                self.table.find(session).map(|it| it.row.cwd.clone())
            }
            Some(SelectedLine::Project(cwd)) => Some(cwd.clone()),
            None => None,
        };
        if let Some(cwd) = cwd {
            self.toggle_project(&cwd);
        }
    }

    fn toggle_project(&mut self, cwd: &str) {
        if self.choice.collapsed.remove(cwd) {
            self.rebuild_list();
        } else {
            self.choice.collapsed.insert(cwd.to_owned());
            self.cursor.select_project(cwd);
            self.rebuild_list();
        }
    }

    fn toggle_closed(&mut self, cx: &mut UpdateContext<'_>) {
        self.choice.shows_closed = !self.choice.shows_closed;
        self.rebuild_list();
        let shown = if self.choice.shows_closed { "shown" } else { "hidden" };
        cx.show_notice(format!("Closed sessions are {shown}"));
    }

    fn ask_for_new_session(&mut self, cx: &mut UpdateContext<'_>) {
        let home = cx.options.home.as_deref().unwrap_or_default();
        let directory = shorten_path(&cx.options.cwd, home, usize::MAX);
        self.dialog = Some(BoardDialog::NewSession(NewSessionDialog::new(&directory)));
        cx.send(HubRequest::ListAgents);
    }

    pub(super) fn start_session(
        &mut self,
        cx: &mut UpdateContext<'_>,
        agent: Option<String>,
        cwd: String,
    ) {
        let name = agent.as_deref().unwrap_or("the default agent");
        let home = cx.options.home.as_deref().unwrap_or_default();
        let directory = shorten_path(&cwd, home, NOTICE_PATH_CELLS);
        cx.show_notice(format!("Starting {name} in {directory}…"));
        let number = cx.send(HubRequest::NewSession { agent, cwd });
        self.awaited.insert(number, AwaitedOutcome::NewSession);
    }

    pub(super) fn close_session(
        &mut self,
        cx: &mut UpdateContext<'_>,
        session: String,
        title: String,
    ) {
        cx.show_notice(format!("Closing “{title}”…"));
        let number = cx.send(HubRequest::CloseSession { session });
        self.awaited.insert(number, AwaitedOutcome::Close { title });
    }

    /// Hides the session now, and deletes it when the deletion can no longer be taken back.
    fn delete_session(&mut self, cx: &mut UpdateContext<'_>, session: String, title: String) {
        let undo =
            cx.keymap.key_label(KeyContext::Board, KeyAction::UndoDelete).unwrap_or_default();
        cx.show_notice(format!("Deleted “{title}”; {undo} takes it back"));
        self.choice.deleted.insert(session.clone());
        self.deletions.push(cx, session, title);
        self.rebuild_list();
    }

    fn undo_deletion(&mut self, cx: &mut UpdateContext<'_>) {
        let Some(deletion) = self.deletions.undo() else {
            return cx.show_notice("No deletion can be taken back");
        };
        cx.show_notice(format!("“{}” is not deleted", deletion.title));
        self.choice.deleted.remove(&deletion.session);
        self.cursor.select_session(&deletion.session);
        self.rebuild_list();
    }

    pub(super) fn send_due_deletions(&mut self, cx: &mut UpdateContext<'_>) {
        for it in self.deletions.take_due(cx.now) {
            let number = cx.send(HubRequest::DeleteSession { session: it.session.clone() });
            let awaited = AwaitedOutcome::Delete { session: it.session, title: it.title };
            self.awaited.insert(number, awaited);
        }
    }

    /// Sends the deletions that could still be taken back, because the interface ends.
    pub(crate) fn finish_deletions(&mut self, cx: &mut UpdateContext<'_>) {
        self.deletions.finish(cx);
    }
}
