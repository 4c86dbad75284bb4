//! Writes frames to the terminal: only the cells that changed, each frame as one synchronized update.

use super::screen_backend::ScreenBackend;
use crate::{app::AppState, text::sanitize_text, view};
use crossterm::{
    queue,
    terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate},
};
use jackfield_protocol::is_planted;
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    layout::{Position, Size},
    text::{Line, Text},
    widgets::Widget as _,
};
use std::io::{self, Write};

/// The lines of the frame if it is below the prompt of the shell.
const INLINE_LINES: u16 = 20;

/// Draws on a writer that is a terminal.
pub(super) struct FramePainter<W: Write> {
    terminal: Terminal<ScreenBackend<W>>,
    is_inline: bool,
}

impl<W: Write> FramePainter<W> {
    pub(super) fn new(writer: W, size: (u16, u16), is_inline: bool) -> io::Result<FramePainter<W>> {
        let backend = ScreenBackend::new(writer, Size::new(size.0, size.1));
        let viewport = if is_inline {
            Viewport::Inline(frame_size(size, true).1)
        } else {
            Viewport::Fullscreen
        };
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(FramePainter { terminal, is_inline })
    }

    /// Draws the state. After a resize the whole frame is drawn once.
    pub(super) fn draw(&mut self, state: &AppState) -> io::Result<()> {
        self.draw_frame(|frame| view::draw(state, frame))
    }

    fn draw_frame(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.terminal.backend_mut().writer(), BeginSynchronizedUpdate)?;
        self.terminal.draw(draw)?;
        queue!(self.terminal.backend_mut().writer(), EndSynchronizedUpdate)?;
        self.terminal.backend_mut().writer().flush()
    }

    /// The terminal has another size.
    pub(super) fn resize(&mut self, size: (u16, u16)) {
        if !is_planted("keep-size-after-resize") {
            self.terminal.backend_mut().set_size(Size::new(size.0, size.1));
        }
    }

    /// Draws all cells of the next frame: another program wrote to the terminal.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.terminal.set_cursor_position(Position::ORIGIN)?;
        self.terminal.clear()
    }

    /// Writes bytes that are not part of a frame.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.terminal.backend_mut().writer().write_all(bytes)?;
        self.terminal.backend_mut().writer().flush()
    }

    /// Prints lines above a frame that is below the prompt of the shell.
    pub(super) fn print_above(&mut self, lines: &[String]) -> io::Result<()> {
        let width = self.terminal.size()?.width;
        let lines = lines.iter().flat_map(|it| wrap_text(it, width)).collect::<Vec<_>>();
        // As many lines as a terminal has at once.
        for part in lines.chunks(usize::from(INLINE_LINES)) {
            let height = u16::try_from(part.len()).unwrap_or(INLINE_LINES);
            self.terminal.insert_before(height, |buffer| {
                Text::from(part.to_vec()).render(buffer.area, buffer);
            })?;
        }
        Ok(())
    }

    /// Removes an inline frame, so that the prompt of the shell takes its place.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_inline {
            self.terminal.clear()?;
            let area = self.terminal.get_frame().area();
            self.terminal.set_cursor_position(area.as_position())?;
        }
        self.terminal.backend_mut().writer().flush()
    }
}

/// The size of the frame on a terminal of this size.
pub(super) fn frame_size(terminal: (u16, u16), is_inline: bool) -> (u16, u16) {
    let (width, height) = terminal;
    (width, if is_inline { height.min(INLINE_LINES) } else { height })
}

/// The lines of a text for the scrollback.
fn wrap_text(text: &str, width: u16) -> Vec<Line<'static>> {
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
        buffer::Buffer,
        style::{Color, Style},
    };
    use std::{
        num::NonZero,
        sync::{Arc, Mutex},
    };

    /// A writer whose bytes a terminal parses.
    #[derive(Clone)]
    struct ParsedTerminal(Arc<Mutex<vt100::Parser>>);

    impl Write for ParsedTerminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().process(bytes);
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
        let parser = terminal.0.lock().unwrap();
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
            covered = crate::text::cell_width(cell.symbol()).saturating_sub(1);
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
                terminal.0.lock().unwrap().screen_mut().set_size(cells(height), cells(width));
                painter.resize((width, height));
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
            self.0.lock().unwrap().extend_from_slice(bytes);
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
            written.0.lock().unwrap().clear();
            painter.draw_frame(|frame| frame.render_widget(text, frame.area())).unwrap();
            let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert!(written.starts_with("\x1b[?2026h") && written.ends_with("\x1b[?2026l"));
            assert_eq!(written.contains('f'), text == "first", "{written:?}");
        }
    }
}
