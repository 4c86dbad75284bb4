//! Tables without borders: left-aligned, headings in capitals, cut only on a terminal.

use super::{Out, one_line, paint};
use crate::report::Failure;
use anstyle::Style;

/// One field of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style: Style::new() }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: text.into(), style }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, out: &Out) -> Result<(), Failure> {
        for line in self.lines(out.width()) {
            out.line(&line)?;
        }
        Ok(())
    }

    /// The last column takes what is left of `width`; the others are as wide as they must be.
    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.headings.len()).map(|it| self.width_of(it)).collect();
        let before: usize = widths.iter().rev().skip(1).map(|it| it + GAP).sum();
        let room = width.map_or(usize::MAX, |it| it.saturating_sub(before).max(ROOM_MIN));
        let headings = self.headings.iter().map(|it| Cell::new(*it)).collect();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|row: &Vec<Cell>| line(row, &widths, room))
            .collect()
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|it| it[column].text.chars().count());
        cells.max().unwrap_or(0).max(self.headings[column].len())
    }
}

const GAP: usize = 2;
const ROOM_MIN: usize = 8;

fn line(row: &[Cell], widths: &[usize], room: usize) -> String {
    let mut line = String::new();
    for (column, cell) in row.iter().enumerate() {
        let last = column + 1 == row.len();
        let text = if last { one_line(&cell.text, room) } else { cell.text.clone() };
        let padding = if last { 0 } else { widths[column] + GAP - text.chars().count() };
        if cell.style == Style::new() {
            line.push_str(&text);
        } else {
            line.push_str(&paint(cell.style, &text));
        }
        line.extend(std::iter::repeat_n(' ', padding));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::DIM;

    fn table() -> Table {
        let mut table = Table::new(&["SESSION", "STATE", "TITLE"]);
        table.row(vec![Cell::new("s-7f3"), Cell::new("working"), Cell::new("a long title here")]);
        table.row(vec![Cell::new("s-91c"), Cell::new("idle"), Cell::new("")]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let lines =
            ["SESSION  STATE    TITLE", "s-7f3    working  a long title here", "s-91c    idle"];
        assert_eq!(table().lines(None), lines);
    }

    #[test]
    fn only_the_last_column_is_cut_and_only_on_a_terminal() {
        assert_eq!(table().lines(Some(28))[1], "s-7f3    working  a long ti…");
        assert_eq!(table().lines(Some(10))[1], "s-7f3    working  a long…");
    }

    #[test]
    fn style_takes_no_room() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![Cell::styled("x", DIM), Cell::new("y")]);
        assert_eq!(table.lines(None)[1], "\u{1b}[2mx\u{1b}[0m  y");
    }
}
