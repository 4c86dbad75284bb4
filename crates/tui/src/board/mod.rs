//! The board: all sessions, grouped and filtered.

mod actions;
mod cursor;
mod deletion;
mod dialog;
mod dialog_keys;
mod filter;
mod list;
mod outcome;
mod session_table;
#[cfg(test)]
mod tests;

use crate::{
    hub::{AgentOverview, HubRequest, HubUpdate, RequestNumber, SessionRow},
    keymap::KeyContext,
    page::{AppInput, LineField, UpdateContext},
};
use std::collections::BTreeMap;

pub(crate) use cursor::{ListCursor, SelectedLine};
use deletion::DeletionQueue;
pub(crate) use dialog::{BoardDialog, NewSessionDialog};
pub(crate) use filter::SessionFilter;
pub(crate) use list::{BoardLine, BoardList, ListChoice, ProjectGroup};
use outcome::AwaitedOutcome;
pub(crate) use session_table::{BoardRow, SessionTable, StateGroup};

/// The lines of the page above the list: the filter, and the headings of the columns.
const FILTER_LINES: u16 = 1;
/// A page must have this many lines for headings.
const HEADINGS_HEIGHT_MIN: u16 = 12;

/// The state of the board.
#[derive(Debug, Default)]
pub(crate) struct BoardState {
    table: SessionTable,
    list: BoardList,
    choice: ListChoice,
    cursor: ListCursor,
    size: (u16, u16),
    /// The agents on this machine, for a user without sessions.
    agents: Option<AgentOverview>,
    /// The lists of the hub have arrived.
    has_lists: bool,
    /// The field of the filter has the focus.
    is_filtering: bool,
    filter: LineField,
    dialog: Option<BoardDialog>,
    deletions: DeletionQueue,
    awaited: BTreeMap<RequestNumber, AwaitedOutcome>,
    /// How often the list was made.
    list_builds: u64,
}

impl BoardState {
    pub(crate) fn update(&mut self, cx: &mut UpdateContext<'_>, input: &AppInput) {
        match input {
            AppInput::Hub(update) => self.on_hub_update(cx, update),
            AppInput::Key(key) => self.on_key(cx, key),
            AppInput::Paste(text) => self.on_paste(text),
            AppInput::Mouse(mouse) => self.on_mouse(cx, *mouse),
            AppInput::Resize { width, height } => {
                self.size = (*width, *height);
                self.follow_cursor();
            }
            AppInput::Tick => self.send_due_deletions(cx),
            _ => {}
        }
    }

    fn on_hub_update(&mut self, cx: &mut UpdateContext<'_>, update: &HubUpdate) {
        match update {
            HubUpdate::Lists { sessions, .. } => {
                self.table.reset(sessions.clone());
                self.rebuild_list();
                if !self.has_lists {
                    self.has_lists = true;
                    self.cursor.select_first(&self.table, &self.list, self.list_height());
                }
                if sessions.is_empty() {
                    cx.send(HubRequest::ListAgents);
                }
            }
            HubUpdate::Changes { sessions, removed, .. } => {
                let mut is_moved = false;
                for row in sessions {
                    is_moved |= self.table.insert(row.clone());
                }
                for id in removed {
                    self.choice.deleted.remove(id);
                    is_moved |= self.table.remove(id);
                }
                if is_moved {
                    self.rebuild_list();
                }
            }
            HubUpdate::Agents(agents) => {
                if let Some(BoardDialog::NewSession(dialog)) = &mut self.dialog {
                    dialog.agents = Some(agents.names());
                }
                self.agents = Some(agents.clone());
            }
            HubUpdate::Outcome { number, result } => self.on_outcome(cx, *number, result),
            _ => {}
        }
    }

    /// What the keys mean.
    pub(crate) fn key_context(&self) -> KeyContext {
        match &self.dialog {
            Some(BoardDialog::NewSession(_)) => KeyContext::Picker,
            Some(BoardDialog::Rename { .. } | BoardDialog::ConfirmClose { .. }) => {
                KeyContext::LineInput
            }
            None if self.is_filtering => KeyContext::BoardFilter,
            None => KeyContext::Board,
        }
    }

    fn rebuild_list(&mut self) {
        self.list_builds += 1;
        self.list = BoardList::build(&self.table, &self.choice);
        self.follow_cursor();
    }

    fn follow_cursor(&mut self) {
        self.cursor.follow(&self.table, &self.list, self.list_height());
    }

    pub(crate) fn find_row(&self, session: &str) -> Option<&SessionRow> {
        self.table.find(session).map(|it| &it.row)
    }

    pub(crate) fn has_lists(&self) -> bool {
        self.has_lists
    }

    pub(crate) fn list(&self) -> &BoardList {
        &self.list
    }

    pub(crate) fn rows(&self) -> &[BoardRow] {
        self.table.rows()
    }

    pub(crate) fn dialog(&self) -> Option<&BoardDialog> {
        self.dialog.as_ref()
    }

    /// The agents on this machine, if there are no sessions at all.
    pub(crate) fn overview(&self) -> Option<&AgentOverview> {
        self.agents.as_ref().filter(|_| self.has_lists && self.table.rows().is_empty())
    }

    /// The field of the filter, if it is shown.
    pub(crate) fn filter(&self) -> Option<&LineField> {
        (self.is_filtering || !self.choice.filter.is_empty()).then_some(&self.filter)
    }

    pub(crate) fn is_filtering(&self) -> bool {
        self.is_filtering
    }

    /// The position of the selected line.
    pub(crate) fn selected_line(&self) -> usize {
        self.cursor.line()
    }

    /// The positions of the lines that fit on the page. Only these are drawn.
    pub(crate) fn visible_lines(&self) -> std::ops::Range<usize> {
        let top = self.cursor.top();
        top..self.list.lines.len().min(top + self.list_height())
    }

    /// Whether the columns have headings.
    pub(crate) fn has_headings(&self) -> bool {
        !self.list.lines.is_empty() && HEADINGS_HEIGHT_MIN <= self.size.1
    }

    fn list_height(&self) -> usize {
        let filter = if self.filter().is_some() { FILTER_LINES } else { 0 };
        // The headings need a line even when the list is empty, so that it does not move when a session comes.
        let headings = u16::from(HEADINGS_HEIGHT_MIN <= self.size.1);
        usize::from(self.size.1.saturating_sub(filter + headings))
    }

    /// Whether a session has a host: columns show it in a fleet only.
    pub(crate) fn is_fleet(&self) -> bool {
        self.table.rows().iter().any(|it| it.row.host.is_some())
    }

    /// The number of sessions in each state, in the order of [`StateGroup::ALL`].
    pub(crate) fn state_counts(&self) -> [usize; 5] {
        let mut counts = [0; 5];
        let is_deleted = |it: &BoardRow| self.choice.deleted.contains(&it.row.session_id);
        for it in self.table.rows().iter().filter(|it| !is_deleted(it)) {
            counts[it.group as usize] += 1;
        }
        counts
    }
}
