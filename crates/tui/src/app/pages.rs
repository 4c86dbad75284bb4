//! Changes the page that has the focus.

use super::AppState;
use crate::{
    hub::SessionRow,
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
        if page == ActivePage::Help {
            let context = self.key_context();
            self.with_context(effects, |app, cx| app.help.open(cx, context));
        }
        self.page = page;
        self.with_context(effects, |app, cx| app.inbox.on_focus(cx, page == ActivePage::Inbox));
    }

    /// Opens the session that the user named at the start: by its id, the beginning of its id, or its name.
    pub(super) fn open_named_session(&mut self, wanted: &str, effects: &mut Vec<AppEffect>) {
        let rows = || self.board.rows().iter().map(|it| &it.row);
        let is_exact =
            |it: &&SessionRow| it.session_id == wanted || it.name.as_deref() == Some(wanted);
        let mut starting = rows().filter(|it| it.session_id.starts_with(wanted));
        let only = starting.next().filter(|_| starting.next().is_none());
        match rows().find(is_exact).or(only).map(|it| it.session_id.clone()) {
            Some(id) => self.open_session(&id, effects),
            None => self.show_notice(format!("There is no single session `{wanted}`"), effects),
        }
    }

    /// Shows a session. One that is already open keeps its state.
    fn open_session(&mut self, id: &str, effects: &mut Vec<AppEffect>) {
        let is_open = self.session.as_ref().is_some_and(|it| it.session_id() == id);
        if !is_open {
            let row = self.board.find_row(id).cloned();
            self.with_context(effects, |app, cx| {
                let drafts = app.session.take().map(|it| it.close(cx)).unwrap_or_default();
                *app.session = Some(SessionView::open(cx, id, row.as_ref(), drafts));
            });
        }
        self.focus_page(ActivePage::Session, effects);
    }
}
