//! The backend of ratatui: writes like its backend for crossterm, but the size comes from the events of the terminal,
//! so that the state and the frame always have the same size.

use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};
use std::io::{self, Write};

/// Writes cells to a terminal.
pub(super) struct ScreenBackend<W: Write> {
    inner: CrosstermBackend<W>,
    size: Size,
    /// Where the cursor was placed. The terminal is asked only before that: it answers among the keys.
    cursor: Option<Position>,
    is_cursor_shown: bool,
}

impl<W: Write> ScreenBackend<W> {
    /// The terminal is asked for the position of its cursor if that is not known.
    pub(super) fn new(writer: W, size: Size, cursor: Option<Position>) -> ScreenBackend<W> {
        let inner = CrosstermBackend::new(writer);
        ScreenBackend { inner, size, cursor, is_cursor_shown: false }
    }

    pub(super) fn set_size(&mut self, size: Size) {
        self.size = size;
    }

    pub(super) fn cursor(&self) -> Option<Position> {
        self.cursor
    }

    pub(super) fn is_cursor_shown(&self) -> bool {
        self.is_cursor_shown
    }
}

impl<W: Write> Backend for ScreenBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        self.inner.draw(content)
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        self.inner.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.is_cursor_shown = false;
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.is_cursor_shown = true;
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        match self.cursor {
            Some(cursor) => Ok(cursor),
            None => self.inner.get_cursor_position(),
        }
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let position = position.into();
        self.cursor = Some(position);
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.inner.clear_region(region)
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
