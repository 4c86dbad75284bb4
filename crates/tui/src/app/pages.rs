//! Changes the page that has the focus.

use super::AppState;
use crate::{
    page::{ActivePage, AppEffect, PageChange},
    session::SessionView,
};

impl AppState {
    pub(super) fn change_page(&mut self, change: PageChange, effects: &mut Vec<AppEffect>) {
        let page = match change {
            PageChange::Board => ActivePage::Board,
            PageChange::Session(id) => return self.open_session(&id, effects),
            PageChange::Inbox => ActivePage::Inbox,
            PageChange::Help => ActivePage::Help,
            PageChange::Back => self.previous_page,
        };
        self.focus_page(page, effects);
    }

    /// The inbox and the help return to the board or the session.
    fn focus_page(&mut self, page: ActivePage, effects: &mut Vec<AppEffect>) {
        if matches!(self.page, ActivePage::Board | ActivePage::Session) {
            self.previous_page = self.page;
        }
        self.page = page;
        self.with_context(effects, |app, cx| app.inbox.on_focus(cx, page == ActivePage::Inbox));
    }

    /// Shows a session. One that is already open keeps its state.
    fn open_session(&mut self, id: &str, effects: &mut Vec<AppEffect>) {
        let is_open = self.session.as_ref().is_some_and(|it| it.session_id() == id);
        if !is_open {
            let row = self.board.find_row(id).cloned();
            self.with_context(effects, |app, cx| {
                if let Some(previous) = app.session.take() {
                    previous.close(cx);
                }
                *app.session = Some(SessionView::open(cx, id, row.as_ref()));
            });
        }
        self.focus_page(ActivePage::Session, effects);
    }
}
