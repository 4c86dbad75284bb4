//! The lines of the board: projects, and below each its sessions by what they need or do.

use super::{BoardRow, SessionFilter, SessionTable, StateGroup};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// One line of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoardLine {
    /// The heading of a project: its position in [`BoardList::projects`].
    Project(usize),
    /// A session: its position in the table. `starts_group` is set for the first with its state in the project.
    Session { row: usize, starts_group: bool },
}

/// The sessions with the same directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectGroup {
    pub(crate) cwd: String,
    /// The number of sessions in each state, in the order of [`StateGroup::ALL`].
    pub(crate) counts: [usize; 5],
    /// Its sessions are not shown.
    pub(crate) is_collapsed: bool,
}

/// Which sessions are shown.
#[derive(Debug, Default)]
pub(crate) struct ListChoice {
    pub(crate) filter: String,
    pub(crate) shows_closed: bool,
    /// Directories whose sessions are not shown.
    pub(crate) collapsed: BTreeSet<String>,
    /// Sessions that are being deleted.
    pub(crate) deleted: BTreeSet<String>,
}

/// All lines in order.
#[derive(Debug, Default)]
pub(crate) struct BoardList {
    pub(crate) lines: Vec<BoardLine>,
    pub(crate) projects: Vec<ProjectGroup>,
    /// The session that matches the filter best.
    pub(crate) best_match: Option<usize>,
    /// Closed sessions that are not shown.
    pub(crate) hidden_closed: usize,
}

/// Where a project is on the board: what needs the user first, then what works, then the newest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ProjectOrder {
    group: StateGroup,
    newest: Reverse<u64>,
}

impl BoardList {
    pub(crate) fn build(table: &SessionTable, choice: &ListChoice) -> BoardList {
        let mut list = BoardList::default();
        let shown = list.choose_rows(table, choice);
        let rows = table.rows();
        let mut projects: BTreeMap<&str, (ProjectOrder, Vec<usize>)> = BTreeMap::new();
        for position in shown {
            let it = &rows[position];
            let order = ProjectOrder {
                group: it.group.min(StateGroup::Idle),
                newest: Reverse(it.opened_ms),
            };
            let (project, sessions) =
                projects.entry(&it.row.cwd).or_insert_with(|| (order, Vec::new()));
            project.group = project.group.min(it.group.min(StateGroup::Idle));
            project.newest = project.newest.min(Reverse(it.opened_ms));
            sessions.push(position);
        }
        let mut projects: Vec<_> = projects.into_iter().collect();
        projects.sort_by(|(_, (a, _)), (_, (b, _))| a.cmp(b));
        for (cwd, (_, mut sessions)) in projects {
            sessions.sort_by_cached_key(|it| row_order(&rows[*it]));
            list.push_project(rows, cwd, &sessions, choice);
        }
        list
    }

    /// The positions of the rows that are shown.
    fn choose_rows(&mut self, table: &SessionTable, choice: &ListChoice) -> Vec<usize> {
        let mut filter = SessionFilter::parse(&choice.filter);
        let mut best = None;
        let mut shown = Vec::new();
        for (position, it) in table.rows().iter().enumerate() {
            if choice.deleted.contains(&it.row.session_id) {
                continue;
            }
            if let Some(filter) = &mut filter {
                let Some(score) = filter.score(it) else { continue };
                let rank = (score, Reverse(it.group), it.updated_ms, position);
                // A closed session is the best match only if it is shown.
                if choice.shows_closed || it.group != StateGroup::Closed {
                    best = best.max(Some(rank));
                }
            }
            if !choice.shows_closed && it.group == StateGroup::Closed {
                self.hidden_closed += 1;
                continue;
            }
            shown.push(position);
        }
        self.best_match = best.map(|it| it.3);
        shown
    }

    fn push_project(
        &mut self,
        rows: &[BoardRow],
        cwd: &str,
        sessions: &[usize],
        choice: &ListChoice,
    ) {
        let mut counts = [0; 5];
        for it in sessions {
            counts[rows[*it].group as usize] += 1;
        }
        // A filter shows what it finds.
        let is_collapsed = choice.filter.trim().is_empty() && choice.collapsed.contains(cwd);
        self.lines.push(BoardLine::Project(self.projects.len()));
        self.projects.push(ProjectGroup { cwd: cwd.to_owned(), counts, is_collapsed });
        if is_collapsed {
            return;
        }
        let mut previous = None;
        for &row in sessions {
            let group = Some(rows[row].group);
            self.lines.push(BoardLine::Session { row, starts_group: previous != group });
            previous = group;
        }
    }

    /// Whether the line can be selected: sessions, and projects whose sessions are not shown.
    pub(crate) fn is_selectable(&self, line: usize) -> bool {
        match self.lines.get(line) {
            Some(BoardLine::Session { .. }) => true,
            Some(BoardLine::Project(project)) => self.projects[*project].is_collapsed,
            None => false,
        }
    }
}

fn row_order(it: &BoardRow) -> (StateGroup, Reverse<u64>, String) {
    (it.group, Reverse(it.order_ms()), it.row.session_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hub::{SessionRow, SessionState},
        test_data::session_row,
    };

    fn row(id: &str, cwd: &str, state: SessionState, minute: u32) -> SessionRow {
        let opened_at = format!("2026-11-18T06:{minute:02}:00.000Z");
        SessionRow {
            cwd: cwd.into(),
            state,
            updated_at: opened_at.clone(),
            opened_at,
            ..session_row(id)
        }
    }

    fn shown(rows: &[SessionRow], choice: &ListChoice) -> Vec<String> {
        let mut table = SessionTable::default();
        table.reset(rows.to_vec());
        let list = BoardList::build(&table, choice);
        let line = |it: &BoardLine| match it {
            BoardLine::Project(it) => list.projects[*it].cwd.clone(),
            BoardLine::Session { row, starts_group } => {
                let row = &table.rows()[*row];
                let group = if *starts_group { row.group.label() } else { "" };
                format!("  {} {group}", row.row.session_id).trim_end().to_owned()
            }
        };
        list.lines.iter().map(line).collect()
    }

    #[test]
    fn project_that_needs_the_user_is_first_and_its_sessions_are_in_order() {
        let rows = [
            row("s-1", "/new", SessionState::Idle, 50),
            row("s-2", "/old", SessionState::Idle, 10),
            row("s-3", "/old", SessionState::Asleep, 30),
            row("s-4", "/old", SessionState::Asks, 5),
            row("s-5", "/old", SessionState::Idle, 20),
            row("s-6", "/busy", SessionState::Working, 1),
        ];
        let expected = [
            "/old",
            "  s-4 needs you",
            "  s-5 idle",
            "  s-2",
            "  s-3 asleep",
            "/busy",
            "  s-6 working",
            "/new",
            "  s-1 idle",
        ];
        assert_eq!(shown(&rows, &ListChoice::default()), expected);
    }

    #[test]
    fn closed_collapsed_and_deleted_sessions_are_not_shown() {
        let rows = [
            row("s-1", "/a", SessionState::Closed, 1),
            row("s-2", "/a", SessionState::Idle, 2),
            row("s-3", "/b", SessionState::Idle, 3),
        ];
        let mut choice = ListChoice::default();
        assert_eq!(shown(&rows, &choice), ["/b", "  s-3 idle", "/a", "  s-2 idle"]);
        choice.deleted.insert("s-2".into());
        assert_eq!(shown(&rows, &choice), ["/b", "  s-3 idle"]);
        choice.shows_closed = true;
        choice.collapsed.insert("/b".into());
        assert_eq!(shown(&rows, &choice), ["/b", "/a", "  s-1 closed"]);
        choice.filter = "s-3".into();
        assert_eq!(shown(&rows, &choice), ["/b", "  s-3 idle"]);
    }
}
