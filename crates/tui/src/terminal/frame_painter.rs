//! Writes frames to the terminal: only the cells that changed, each frame as one synchronized update.

use super::{screen_backend::ScreenBackend, shared_writer::SharedWriter};
use crate::{
    app::AppState,
    text::{cell_width, sanitize_text},
    view,
};
use crossterm::{
    queue,
    style::Print,
    terminal::{BeginSynchronizedUpdate, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate},
};
use jackfield_protocol::is_planted;
use ratatui::{
    Frame, Terminal,
    backend::Backend as _,
    buffer::{Buffer, Cell},
    layout::{Position, Rect, Size},
    text::Line,
    widgets::Widget as _,
};
use std::io::{self, Write};

/// The lines of the frame if it is below the prompt of the shell.
const INLINE_LINES: u16 = 20;

/// Draws on a writer that is a terminal.
pub(super) struct FramePainter<W: Write> {
    writer: SharedWriter<W>,
    terminal: Terminal<ScreenBackend<SharedWriter<W>>>,
    is_inline: bool,
    /// The size of the whole terminal.
    size: (u16, u16),
    /// The row of the terminal at which the frame begins, as far as it is known.
    top_row: u16,
}

impl<W: Write> FramePainter<W> {
    /// An inline frame begins where the cursor of the terminal is.
    pub(super) fn new(writer: W, size: (u16, u16), is_inline: bool) -> io::Result<FramePainter<W>> {
        let writer = SharedWriter::new(writer);
        let terminal = open_terminal(writer.clone(), size, is_inline)?;
        let mut painter = FramePainter { writer, terminal, is_inline, size, top_row: 0 };
        painter.set_top_row(size.1);
        Ok(painter)
    }

    /// Draws the state. After a resize the whole frame is drawn once.
    pub(super) fn draw(&mut self, state: &AppState) -> io::Result<()> {
        self.draw_frame(|frame| view::draw(state, frame))
    }

    fn draw_frame(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.writer, BeginSynchronizedUpdate)?;
        if self.is_inline {
            // The terminal may be narrower already. Rows that are too long must not become two rows.
            queue!(self.writer, DisableLineWrap)?;
        }
        self.terminal.draw(draw)?;
        if self.is_inline {
            if !self.terminal.backend().is_cursor_shown() {
                // The cursor stays with its line when the size changes.
                self.terminal.set_cursor_position(Position::ORIGIN)?;
            }
            queue!(self.writer, EnableLineWrap)?;
        }
        queue!(self.writer, EndSynchronizedUpdate)?;
        self.writer.flush()
    }

    /// The size of the terminal.
    pub(super) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The first row of the frame.
    pub(super) fn top_row(&self) -> u16 {
        self.top_row
    }

    /// The row at which the frame begins; an inline frame is not below the screen.
    pub(super) fn set_top_row(&mut self, row: u16) {
        let frame = frame_size(self.size, self.is_inline);
        self.top_row = row.min(self.size.1.saturating_sub(frame.1));
    }

    /// The terminal has another size. An inline frame begins again at the row at which it began.
    pub(super) fn resize(&mut self, size: (u16, u16)) -> io::Result<()> {
        if is_planted("keep-size-after-resize") {
            return Ok(());
        }
        let is_narrower = size.0 < self.size.0;
        self.size = size;
        if !self.is_inline {
            self.terminal.backend_mut().set_size(Size::new(size.0, size.1));
            return Ok(());
        }
        let has_rows_above_cursor = 0 < self.terminal.get_cursor_position()?.y;
        self.terminal.backend_mut().clear_inline()?;
        if is_narrower && has_rows_above_cursor {
            // The terminal may have wrapped rows of the frame, and then its first rows are still above. The last one of
            // them is joined with the next row when the terminal becomes wider: that must not be a row of the frame.
            queue!(self.writer, Print("\n"))?;
        }
        self.open_frame()?;
        self.set_top_row(self.top_row);
        self.writer.flush()
    }

    /// Begins an inline frame at the row of the cursor.
    fn open_frame(&mut self) -> io::Result<()> {
        self.terminal = open_terminal(self.writer.clone(), self.size, true)?;
        Ok(())
    }

    /// Draws all cells of the next frame: another program wrote to the terminal.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.terminal.set_cursor_position(Position::ORIGIN)?;
        self.terminal.clear()
    }

    /// Writes bytes that are not part of a frame.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }

    /// Prints lines above an inline frame, into the scrollback. The frame has to be drawn again. Lines have no spaces
    /// at their end, so that a terminal can wrap them when its width changes.
    pub(super) fn print_above(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        queue!(self.writer, BeginSynchronizedUpdate)?;
        self.terminal.backend_mut().clear_inline()?;
        for line in lines {
            let mut buffer = Buffer::empty(Rect::new(0, 0, self.size.0, 1));
            line.render(buffer.area, &mut buffer);
            self.terminal.backend_mut().draw(line_cells(&buffer).into_iter())?;
            // The screen scrolls at its last row.
            queue!(self.writer, Print("\r\n"))?;
        }
        let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        self.set_top_row(self.top_row.saturating_add(count));
        self.open_frame()
    }

    /// Removes an inline frame, so that the prompt of the shell takes its place.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_inline {
            self.terminal.backend_mut().clear_inline()?;
        }
        self.writer.flush()
    }
}

/// The coordinates of an inline frame are those of the frame, not of the terminal.
fn open_terminal<W: Write>(
    writer: W,
    size: (u16, u16),
    is_inline: bool,
) -> io::Result<Terminal<ScreenBackend<W>>> {
    let (width, height) = frame_size(size, is_inline);
    let size = Size::new(width, height);
    let backend = if is_inline {
        ScreenBackend::inline(writer, size)?
    } else {
        ScreenBackend::full_screen(writer, size)
    };
    Terminal::new(backend)
}

/// The cells of a line up to its last visible one. The second cell of a wide character is not drawn.
fn line_cells(buffer: &Buffer) -> Vec<(u16, u16, &Cell)> {
    let last = buffer.content.iter().rposition(|it| *it != Cell::EMPTY).map_or(0, |it| it + 1);
    let mut cells = Vec::with_capacity(last);
    let mut covered = 0;
    for (x, cell) in (0..).zip(&buffer.content[..last]) {
        if x >= covered {
            covered = x + u16::try_from(cell_width(cell.symbol())).unwrap_or(1).max(1);
            cells.push((x, buffer.area.y, cell));
        }
    }
    cells
}

/// The size of the frame on a terminal of this size.
pub(super) fn frame_size(terminal: (u16, u16), is_inline: bool) -> (u16, u16) {
    let (width, height) = terminal;
    (width, if is_inline { height.min(INLINE_LINES) } else { height })
}

/// The lines of a text for the scrollback.
pub(super) fn wrap_text(text: &str, width: u16) -> Vec<Line<'static>> {
    let text = sanitize_text(text).into_owned();
    text.lines()
        .flat_map(|it| crate::text::wrap_line(Line::from(it.to_owned()), width, 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::{
        style::{Color, Style},
        text::Text,
    };
    use std::{
        num::NonZero,
        sync::{Arc, Mutex, PoisonError},
    };

    /// A writer whose bytes a terminal parses.
    #[derive(Clone)]
    struct ParsedTerminal(Arc<Mutex<vt100::Parser>>);

    impl Write for ParsedTerminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).process(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn cells(count: u16) -> NonZero<u16> {
        NonZero::new(count).unwrap()
    }

    fn start(size: (u16, u16)) -> (ParsedTerminal, FramePainter<ParsedTerminal>) {
        let terminal = ParsedTerminal(Arc::new(Mutex::new(vt100::Parser::new(
            cells(size.1),
            cells(size.0),
            0,
        ))));
        let painter = FramePainter::new(terminal.clone(), size, false).unwrap();
        (terminal, painter)
    }

    /// The cells that a terminal shows must be those of the frame.
    fn assert_shows(terminal: &ParsedTerminal, frame: &Buffer, cursor: Option<Position>) {
        let parser = terminal.0.lock().unwrap_or_else(PoisonError::into_inner);
        let screen = parser.screen();
        let mut covered = 0;
        for (index, cell) in frame.content.iter().enumerate() {
            let (x, y) = frame.pos_of(index);
            if x == 0 {
                covered = 0;
            }
            let shown = screen.cell(y, x).unwrap();
            if 0 < covered {
                // The second cell of a wide character.
                covered -= 1;
                continue;
            }
            covered = cell_width(cell.symbol()).saturating_sub(1);
            let text = if shown.contents().is_empty() { " " } else { shown.contents() };
            assert_eq!(text, cell.symbol(), "at {x},{y}");
            assert_eq!(shown.bold(), cell.modifier.contains(ratatui::style::Modifier::BOLD));
        }
        assert_eq!(screen.hide_cursor(), cursor.is_none());
        if let Some(cursor) = cursor {
            assert_eq!(screen.cursor_position(), (cursor.y, cursor.x));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn terminal_shows_the_frame_after_random_resizes(
            steps in prop::collection::vec((1u16..60, 1u16..20, "[ -~äß漢字👍]{0,200}", any::<bool>()), 1..8)
        ) {
            let (terminal, mut painter) = start((20, 6));
            for (width, height, text, has_cursor) in steps {
                terminal.0.lock().unwrap_or_else(PoisonError::into_inner).screen_mut().set_size(cells(height), cells(width));
                painter.resize((width, height)).unwrap();
                let cursor = has_cursor.then(|| Position::new(width - 1, height - 1));
                let mut expected = None;
                painter.draw_frame(|frame| {
                    let lines = wrap_text(&text, width);
                    let style = Style::new().fg(Color::Red).bold();
                    Text::from(lines).style(style).render(frame.area(), frame.buffer_mut());
                    expected = Some(frame.buffer_mut().clone());
                    if let Some(cursor) = cursor {
                        frame.set_cursor_position(cursor);
                    }
                }).unwrap();
                assert_shows(&terminal, &expected.unwrap(), cursor);
            }
        }
    }

    /// All lines of a terminal, also those that have scrolled off the screen.
    fn all_lines(terminal: &ParsedTerminal) -> Vec<String> {
        let mut parser = terminal.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns) = parser.screen().size();
        let (rows, columns) = (usize::from(rows.get()), columns.get());
        parser.screen_mut().set_scrollback(usize::MAX);
        let mut lines = Vec::new();
        while 0 < parser.screen().scrollback() {
            lines.extend(parser.screen().rows(0, columns).next());
            let left = parser.screen().scrollback() - 1;
            parser.screen_mut().set_scrollback(left);
        }
        lines.extend(parser.screen().rows(0, columns).take(rows));
        lines
    }

    #[test]
    fn lines_above_an_inline_frame_are_printed_once_and_in_order() {
        for (height, row) in [(30, 3), (30, 29), (12, 0)] {
            let size = (30, height);
            let parser = vt100::Parser::new(cells(height), cells(30), 1000);
            let terminal = ParsedTerminal(Arc::new(Mutex::new(parser)));
            terminal.clone().write_all(format!("\x1b[{};1H", row + 1).as_bytes()).unwrap();
            let mut painter = FramePainter::new(terminal.clone(), size, true).unwrap();
            let mut printed = Vec::new();
            for count in [1, 4, 50, 2] {
                let first = printed.len();
                printed.extend((first..first + count).map(|it| format!("line {it} 漢字 end")));
                let lines: Vec<_> = printed[first..].iter().map(|it| Line::from(&**it)).collect();
                painter.print_above(&lines).unwrap();
                painter.draw_frame(|frame| frame.render_widget("the frame", frame.area())).unwrap();
                let shown = all_lines(&terminal);
                let shown: Vec<_> = shown.iter().filter(|it| !it.is_empty()).collect();
                let expected: Vec<_> = printed.iter().collect();
                assert_eq!(shown.split_last(), Some((&&"the frame".to_owned(), &expected[..])));
            }
        }
    }

    /// A terminal that becomes higher can take lines out of its scrollback, and reports the new size later.
    #[test]
    fn inline_frame_that_the_terminal_moved_leaves_the_lines_above_it_alone() {
        let parser = vt100::Parser::new(cells(40), cells(30), 1000);
        let terminal = ParsedTerminal(Arc::new(Mutex::new(parser)));
        let mut painter = FramePainter::new(terminal.clone(), (30, 40), true).unwrap();
        let draw = |painter: &mut FramePainter<_>, text: &'static str| {
            let draw = |frame: &mut Frame<'_>| {
                frame.render_widget(text, frame.area());
                frame.set_cursor_position((1, 17));
            };
            painter.draw_frame(draw).unwrap();
        };
        painter.print_above(&["first", "second"].map(Line::from)).unwrap();
        draw(&mut painter, "old frame");
        terminal.clone().write_all(b"\x1b[9T\x1b[9B").unwrap();
        draw(&mut painter, "the frame");
        let shown = |terminal| {
            let lines = all_lines(terminal).into_iter();
            lines.filter(|it| !it.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&terminal), ["first", "second", "the frame"]);
        painter.print_above(&[Line::from("third")]).unwrap();
        painter.resize((30, 40)).unwrap();
        draw(&mut painter, "the frame");
        assert_eq!(shown(&terminal), ["first", "second", "third", "the frame"]);
        painter.finish().unwrap();
        assert_eq!(shown(&terminal), ["first", "second", "third"]);
    }

    #[cfg(planted_bugs)]
    #[test]
    fn planted_bugs_are_found() {
        use crate::planted_tests::assert_found;
        assert_found("keep-size-after-resize", terminal_shows_the_frame_after_random_resizes);
    }

    /// A writer whose bytes a test reads.
    #[derive(Clone, Default)]
    struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for WrittenBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frame_is_one_synchronized_update_without_unchanged_cells() {
        let written = WrittenBytes::default();
        let mut painter = FramePainter::new(written.clone(), (20, 2), false).unwrap();
        for text in ["first", "fixed", "fixed"] {
            written.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
            painter.draw_frame(|frame| frame.render_widget(text, frame.area())).unwrap();
            let written =
                String::from_utf8(written.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
                    .unwrap();
            assert!(written.starts_with("\x1b[?2026h") && written.ends_with("\x1b[?2026l"));
            assert_eq!(written.contains('f'), text == "first", "{written:?}");
        }
    }
}
