//! Tables without borders: left-aligned, headings in capitals, truncated only on a terminal.

use super::{CommandOutput, paint};
use crate::{plain_text::to_one_line, report::CommandError};
use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// One cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    pub(crate) fn new(text: impl Into<String>) -> TableCell {
        TableCell { text: text.into(), style: Style::new() }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> TableCell {
        TableCell { text: text.into(), style }
    }
}

#[derive(Debug)]
pub(crate) struct TextTable {
    headings: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    pub(crate) fn new(headings: &[&'static str]) -> TextTable {
        TextTable { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn add_row(&mut self, cells: Vec<TableCell>) {
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, output: &CommandOutput) -> Result<(), CommandError> {
        for line in self.lines(output.width()) {
            output.print_line(&line)?;
        }
        Ok(())
    }

    /// The last column gets the rest of `width`; the others are as wide as their longest cell.
    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.headings.len()).map(|it| self.column_width(it)).collect();
        let used_width: usize = widths.iter().rev().skip(1).map(|it| it + GAP).sum();
        let last_width =
            width.map_or(usize::MAX, |it| it.saturating_sub(used_width).max(LAST_WIDTH_MIN));
        let headings = self.headings.iter().map(|it| TableCell::new(*it)).collect();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|row: &Vec<TableCell>| format_row(row, &widths, last_width))
            .collect()
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|it| it[column].text.width());
        cells.max().unwrap_or(0).max(self.headings[column].len())
    }
}

const GAP: usize = 2;
const LAST_WIDTH_MIN: usize = 8;

fn format_row(row: &[TableCell], widths: &[usize], last_width: usize) -> String {
    let mut line = String::new();
    for (column, cell) in row.iter().enumerate() {
        let is_last = column + 1 == row.len();
        let text = if is_last {
            // Both limits: characters without a width would make the line arbitrarily long.
            truncate_to_width(to_one_line(&cell.text, last_width), last_width)
        } else {
            cell.text.clone()
        };
        let padding = if is_last { 0 } else { widths[column] + GAP - text.width() };
        if cell.style == Style::new() {
            line.push_str(&text);
        } else {
            line.push_str(&paint(cell.style, &text));
        }
        line.extend(std::iter::repeat_n(' ', padding));
    }
    line.trim_end().to_owned()
}

/// Cuts a line after so many columns of a terminal. East Asian characters and emoji have two.
fn truncate_to_width(line: String, width_max: usize) -> String {
    if line.width() <= width_max {
        return line;
    }
    let mut width = 0;
    let fits = |it: &char| {
        width += it.width().unwrap_or(0);
        width < width_max
    };
    let start: String = line.chars().take_while(fits).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::DIM;

    fn table() -> TextTable {
        let mut table = TextTable::new(&["SESSION", "STATE", "TITLE"]);
        table.add_row(vec![
            TableCell::new("s-7f3"),
            TableCell::new("working"),
            TableCell::new("a long title here"),
        ]);
        table.add_row(vec![TableCell::new("s-91c"), TableCell::new("idle"), TableCell::new("")]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let lines =
            ["SESSION  STATE    TITLE", "s-7f3    working  a long title here", "s-91c    idle"];
        assert_eq!(table().lines(None), lines);
    }

    #[test]
    fn only_the_last_column_is_truncated_and_only_on_a_terminal() {
        assert_eq!(table().lines(Some(28))[1], "s-7f3    working  a long ti…");
        assert_eq!(table().lines(Some(10))[1], "s-7f3    working  a long…");
    }

    #[test]
    fn style_does_not_count_toward_the_width() {
        let mut table = TextTable::new(&["A", "B"]);
        table.add_row(vec![TableCell::styled("x", DIM), TableCell::new("y")]);
        assert_eq!(table.lines(None)[1], "\u{1b}[2mx\u{1b}[0m  y");
    }

    #[test]
    fn east_asian_characters_count_as_two_columns() {
        let mut table = TextTable::new(&["NAME", "TITLE"]);
        table.add_row(vec![TableCell::new("日本語"), TableCell::new("一二三四五六")]);
        table.add_row(vec![TableCell::new("é"), TableCell::new("x")]);
        assert_eq!(table.lines(None), ["NAME    TITLE", "日本語  一二三四五六", "é       x"]);
        assert_eq!(table.lines(Some(18))[1], "日本語  一二三四…");
    }

    #[test]
    fn characters_without_a_width_do_not_make_a_line_longer() {
        let mut table = TextTable::new(&["A", "B"]);
        table.add_row(vec![TableCell::new("a"), TableCell::new("\u{301}".repeat(1000))]);
        assert!(table.lines(Some(20))[1].chars().count() <= 20);
    }
}
