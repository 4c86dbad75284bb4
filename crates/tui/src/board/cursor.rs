//! The selected line of the board, and the part of the list that is visible.

use super::{BoardLine, BoardList, SessionTable};

/// What is selected. A session stays selected wherever its line moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SelectedLine {
    Session(String),
    /// A project whose sessions are not shown, by its directory.
    Project(String),
}

/// The selected line and the first visible one.
#[derive(Debug, Default)]
pub(crate) struct ListCursor {
    selected: Option<SelectedLine>,
    line: usize,
    top: usize,
}

impl ListCursor {
    pub(crate) fn selected(&self) -> Option<&SelectedLine> {
        self.selected.as_ref()
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The first visible line.
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// Finds the selected session in a new list. If it is gone, the line at its place is selected.
    pub(crate) fn follow(&mut self, table: &SessionTable, list: &BoardList, height: usize) {
        let place = self.line.saturating_sub(self.top);
        let found = self.selected.as_ref().and_then(|it| find_line(table, list, it));
        match found {
            Some(line) => {
                self.line = line;
                self.top = line.saturating_sub(place);
            }
            None => self.select_near(table, list, self.line),
        }
        self.show_selected(list, height);
    }

    /// Selects the first session.
    pub(crate) fn select_first(&mut self, table: &SessionTable, list: &BoardList, height: usize) {
        self.top = 0;
        self.select_near(table, list, 0);
        self.show_selected(list, height);
    }

    pub(crate) fn select_session(&mut self, session: &str) {
        self.selected = Some(SelectedLine::Session(session.to_owned()));
    }

    pub(crate) fn select_project(&mut self, cwd: &str) {
        self.selected = Some(SelectedLine::Project(cwd.to_owned()));
    }

    /// Selects the line that is `steps` further down, or up if negative.
    pub(crate) fn step(
        &mut self,
        (table, list): (&SessionTable, &BoardList),
        steps: isize,
        height: usize,
    ) {
        let target = self.line.saturating_add_signed(steps);
        let last = list.lines.len().saturating_sub(1);
        let is_down = steps > 0;
        let mut line = target.min(last);
        while !list.is_selectable(line) {
            let next = if is_down { line.checked_add(1) } else { line.checked_sub(1) };
            match next.filter(|it| *it <= last) {
                Some(next) => line = next,
                None => return self.select_near_and_show((table, list), target.min(last), height),
            }
        }
        self.select_near_and_show((table, list), line, height);
    }

    fn select_near_and_show(
        &mut self,
        (table, list): (&SessionTable, &BoardList),
        line: usize,
        height: usize,
    ) {
        self.select_near(table, list, line);
        self.show_selected(list, height);
    }

    /// Selects the line, or the nearest one that can be selected.
    pub(crate) fn select_near(&mut self, table: &SessionTable, list: &BoardList, line: usize) {
        let after = (line..list.lines.len()).find(|it| list.is_selectable(*it));
        let before = || (0..line.min(list.lines.len())).rev().find(|it| list.is_selectable(*it));
        match after.or_else(before) {
            Some(line) => {
                self.line = line;
                self.selected = line_key(table, list, line);
            }
            None => *self = ListCursor::default(),
        }
    }

    /// Scrolls so that the selected line is visible, with the heading above the first session of a project.
    fn show_selected(&mut self, list: &BoardList, height: usize) {
        if height == 0 {
            return;
        }
        let has_heading =
            self.line > 0 && matches!(list.lines.get(self.line - 1), Some(BoardLine::Project(_)));
        let first = self.line - usize::from(has_heading && height > 1);
        self.top = self.top.min(first).max((self.line + 1).saturating_sub(height));
        self.top = self.top.min(list.lines.len().saturating_sub(height));
    }
}

fn find_line(table: &SessionTable, list: &BoardList, wanted: &SelectedLine) -> Option<usize> {
    list.lines.iter().position(|line| match (line, wanted) {
        (BoardLine::Session { row, .. }, SelectedLine::Session(id)) => {
            table.rows()[*row].row.session_id == *id
        }
        (BoardLine::Project(project), SelectedLine::Project(cwd)) => {
            let project = &list.projects[*project];
            project.is_collapsed && project.cwd == *cwd
        }
        _ => false,
    })
}

fn line_key(table: &SessionTable, list: &BoardList, line: usize) -> Option<SelectedLine> {
    Some(match list.lines.get(line)? {
        BoardLine::Session { row, .. } => {
            SelectedLine::Session(table.rows()[*row].row.session_id.clone())
        }
        BoardLine::Project(project) => SelectedLine::Project(list.projects[*project].cwd.clone()),
    })
}
