//! The backend of ratatui: writes like its backend for crossterm, but the size comes from the events of the terminal,
//! so that the state and the frame always have the same size.
//!
//! The rows of an inline frame are reached by moves relative to the cursor. Terminals move lines when their size
//! changes, some of them long before they report it, and the cursor moves along with its line: so the rows above the
//! frame are never reached, wherever the frame is.

use crossterm::{
    cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show},
    queue,
    style::Print,
    terminal::{Clear, ClearType as ClearedPart},
};
use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};
use std::io::{self, Write};

/// Writes cells to a terminal.
pub(super) struct ScreenBackend<W: Write> {
    writer: W,
    size: Size,
    /// `None` if the frame is the whole screen.
    inline_row: Option<u16>,
    cursor: Position,
    is_cursor_shown: bool,
}

impl<W: Write> ScreenBackend<W> {
    /// A frame that is the whole screen.
    pub(super) fn full_screen(writer: W, size: Size) -> ScreenBackend<W> {
        let cursor = Position::ORIGIN;
        ScreenBackend { writer, size, inline_row: None, cursor, is_cursor_shown: false }
    }

    /// A frame that begins at the row of the cursor. The screen scrolls if there is no room for it.
    pub(super) fn inline(mut writer: W, size: Size) -> io::Result<ScreenBackend<W>> {
        let rows_below = size.height.saturating_sub(1);
        queue!(writer, Print("\r"), Print("\n".repeat(usize::from(rows_below))))?;
        write_up(&mut writer, rows_below)?;
        let cursor = Position::ORIGIN;
        Ok(ScreenBackend { writer, size, inline_row: Some(0), cursor, is_cursor_shown: false })
    }

    pub(super) fn set_size(&mut self, size: Size) {
        self.size = size;
    }

    pub(super) fn is_cursor_shown(&self) -> bool {
        self.is_cursor_shown
    }

    /// Moves to the beginning of an inline frame and clears it.
    pub(super) fn clear_inline(&mut self) -> io::Result<()> {
        self.move_inline(Position::ORIGIN)?;
        // tmux would copy a screen that is cleared from its first cell on into the scrollback.
        queue!(self.writer, Clear(ClearedPart::CurrentLine), MoveToColumn(1))?;
        queue!(self.writer, Clear(ClearedPart::FromCursorDown), Print("\r"))
    }

    /// Moves to a cell of an inline frame.
    fn move_inline(&mut self, to: Position) -> io::Result<()> {
        let row = self.inline_row.replace(to.y).unwrap_or_default();
        write_up(&mut self.writer, row.saturating_sub(to.y))?;
        // A line feed scrolls at the last row, where other moves would stop: so the distances of rows stay right.
        for _ in row..to.y {
            queue!(self.writer, Print("\n"))?;
        }
        queue!(self.writer, MoveToColumn(to.x))
    }

    /// Draws consecutive cells of one row of an inline frame.
    fn draw_run(&mut self, run: &[(u16, u16, &Cell)]) -> io::Result<()> {
        let Some((x, y, _)) = run.first().copied() else { return Ok(()) };
        self.move_inline(Position::new(x, y))?;
        let mut bytes = Vec::new();
        CrosstermBackend::new(&mut bytes).draw(run.iter().copied())?;
        let absolute_move = format!("\x1b[{};{}H", y + 1, x + 1);
        let cells = bytes.strip_prefix(absolute_move.as_bytes());
        self.writer.write_all(cells.expect("a backend first moves to the first cell"))
    }
}

fn write_up(writer: &mut impl Write, rows: u16) -> io::Result<()> {
    if rows > 0 {
        queue!(writer, MoveUp(rows))?;
    }
    Ok(())
}

impl<W: Write> Backend for ScreenBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        if self.inline_row.is_none() {
            return CrosstermBackend::new(&mut self.writer).draw(content);
        }
        let mut run: Vec<(u16, u16, &Cell)> = Vec::new();
        for (x, y, cell) in content {
            if run.last().is_some_and(|last| (last.0 + 1, last.1) != (x, y)) {
                self.draw_run(&run)?;
                run.clear();
            }
            run.push((x, y, cell));
        }
        self.draw_run(&run)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.is_cursor_shown = false;
        queue!(self.writer, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.is_cursor_shown = true;
        queue!(self.writer, Show)
    }

    /// Where it was placed: the terminal is not asked, because it answers among the keys.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        if self.inline_row.is_some() {
            return self.move_inline(self.cursor);
        }
        queue!(self.writer, MoveTo(self.cursor.x, self.cursor.y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        match (self.inline_row, region) {
            (Some(_), ClearType::All) => self.clear_inline(),
            _ => CrosstermBackend::new(&mut self.writer).clear_region(region),
        }
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size, pixels: Size::default() })
    }

    /// The painter flushes when a frame is complete.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
