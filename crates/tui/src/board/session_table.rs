//! All sessions that the hub lists, with what is computed once for each row.

use crate::hub::{SessionRow, SessionState};
use jackfield_protocol::parse_rfc3339;
use std::collections::BTreeMap;

/// What a session needs or does. Sessions of a project are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum StateGroup {
    NeedsUser,
    Working,
    Idle,
    Asleep,
    Closed,
}

impl StateGroup {
    pub(crate) const ALL: [StateGroup; 5] = [
        StateGroup::NeedsUser,
        StateGroup::Working,
        StateGroup::Idle,
        StateGroup::Asleep,
        StateGroup::Closed,
    ];

    fn of_row(row: &SessionRow) -> StateGroup {
        match row.state {
            SessionState::Closed => StateGroup::Closed,
            SessionState::Asks => StateGroup::NeedsUser,
            _ if row.asks > 0 => StateGroup::NeedsUser,
            SessionState::Working | SessionState::Other => StateGroup::Working,
            SessionState::Idle => StateGroup::Idle,
            SessionState::Asleep => StateGroup::Asleep,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            StateGroup::NeedsUser => "needs you",
            StateGroup::Working => "working",
            StateGroup::Idle => "idle",
            StateGroup::Asleep => "asleep",
            StateGroup::Closed => "closed",
        }
    }

    /// One cell that stands for the state where there is no place for its name.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            StateGroup::NeedsUser => "!",
            StateGroup::Working => "●",
            StateGroup::Idle => "○",
            StateGroup::Asleep => "·",
            StateGroup::Closed => "×",
        }
    }
}

/// A session of the board.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BoardRow {
    pub(crate) row: SessionRow,
    pub(crate) group: StateGroup,
    pub(crate) opened_ms: u64,
    pub(crate) updated_ms: u64,
}

impl BoardRow {
    fn new(row: SessionRow) -> BoardRow {
        let group = StateGroup::of_row(&row);
        let opened_ms = parse_rfc3339(&row.opened_at).unwrap_or_default();
        let updated_ms = parse_rfc3339(&row.updated_at).unwrap_or(opened_ms);
        BoardRow { row, group, opened_ms, updated_ms }
    }

    /// Newer rows come first. A row that changes all the time stays where it is.
    pub(super) fn order_ms(&self) -> u64 {
        match self.group {
            StateGroup::NeedsUser | StateGroup::Working => self.opened_ms,
            StateGroup::Idle | StateGroup::Asleep | StateGroup::Closed => self.updated_ms,
        }
    }

    /// Whether the list stays the same if this row is replaced by the other one.
    fn has_same_place(&self, other: &BoardRow) -> bool {
        self.group == other.group
            && self.order_ms() == other.order_ms()
            && self.row.host == other.row.host
            && self.row.cwd == other.row.cwd
            && self.row.agent == other.row.agent
            && self.row.display_title() == other.row.display_title()
    }
}

/// Sessions by id. A position is valid until a session is removed.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    rows: Vec<BoardRow>,
    positions: BTreeMap<String, usize>,
}

impl SessionTable {
    pub(crate) fn rows(&self) -> &[BoardRow] {
        &self.rows
    }

    pub(crate) fn find(&self, session: &str) -> Option<&BoardRow> {
        self.positions.get(session).map(|it| &self.rows[*it])
    }

    /// Replaces all rows.
    pub(crate) fn reset(&mut self, rows: Vec<SessionRow>) {
        self.rows.clear();
        self.positions.clear();
        for row in rows {
            self.insert(row);
        }
    }

    /// Adds or replaces a row. Returns whether the list must be made again.
    pub(crate) fn insert(&mut self, row: SessionRow) -> bool {
        let row = BoardRow::new(row);
        let Some(position) = self.positions.get(&row.row.session_id) else {
            self.positions.insert(row.row.session_id.clone(), self.rows.len());
            self.rows.push(row);
            return true;
        };
        let old = &mut self.rows[*position];
        let is_moved = !old.has_same_place(&row);
        *old = row;
        is_moved
    }

    pub(crate) fn remove(&mut self, session: &str) -> bool {
        let Some(position) = self.positions.remove(session) else { return false };
        self.rows.swap_remove(position);
        if let Some(moved) = self.rows.get(position) {
            self.positions.insert(moved.row.session_id.clone(), position);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::session_row;

    #[test]
    fn removed_row_leaves_the_others_at_their_ids() {
        let mut table = SessionTable::default();
        table.reset(["s-1", "s-2", "s-3"].map(session_row).to_vec());
        assert!(table.remove("s-1"));
        assert!(!table.remove("s-1"));
        assert_eq!(table.find("s-3").unwrap().row.session_id, "s-3");
        assert_eq!(table.find("s-2").unwrap().row.session_id, "s-2");
        assert_eq!(table.rows().len(), 2);
    }

    #[test]
    fn new_words_of_a_working_session_do_not_change_the_list() {
        let mut table = SessionTable::default();
        let mut row = SessionRow { state: SessionState::Working, ..session_row("s-1") };
        assert!(table.insert(row.clone()));
        row.doing = Some("no output for 4 s".into());
        row.updated_at = "2026-11-18T06:30:00.000Z".into();
        assert!(!table.insert(row.clone()));
        row.asks = 1;
        assert!(table.insert(row));
    }

    #[test]
    fn open_request_outranks_every_state_but_closed() {
        let group =
            |state, asks| StateGroup::of_row(&SessionRow { state, asks, ..Default::default() });
        assert_eq!(group(SessionState::Working, 1), StateGroup::NeedsUser);
        assert_eq!(group(SessionState::Asks, 0), StateGroup::NeedsUser);
        assert_eq!(group(SessionState::Closed, 1), StateGroup::Closed);
        assert_eq!(group(SessionState::Other, 0), StateGroup::Working);
    }
}
