//! Gives the terminal to other programs and takes it back, and prints into its scrollback.

use super::{
    external_editor::{edit_text, find_editor},
    frame_painter::{FramePainter, wrap_text},
    pacing::FrameNeed,
    run::{TerminalInterface, TuiError},
};
use crate::{page::AppInput, text::sanitize_text};
use crossterm::{
    event::EventStream,
    queue,
    style::Print,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen},
};
use ratatui::text::Line;
use rustix::process::{Signal, kill_current_process_group};
use std::{
    io::{self, BufWriter},
    time::Duration,
};

impl TerminalInterface {
    /// Gives the terminal to another program.
    fn release_terminal(&mut self) -> Result<(), TuiError> {
        // Ends the thread that reads keys.
        self.events = None;
        self.painter.finish()?;
        Ok(self.modes.leave()?)
    }

    /// Takes the terminal over again and draws everything.
    pub(super) fn resume(&mut self) -> Result<(), TuiError> {
        self.events = None;
        self.modes.enter()?;
        let size = crossterm::terminal::size()?;
        let writer = BufWriter::new(io::stdout());
        self.painter = FramePainter::new(writer, size, self.modes.is_inline)?;
        self.events = Some(EventStream::new());
        self.pacing.request(FrameNeed::Key);
        self.on_resize(size)
    }

    /// Stops this process, as Ctrl-Z does in other programs. Continues here.
    pub(super) fn suspend(&mut self) -> Result<(), TuiError> {
        self.release_terminal()?;
        kill_current_process_group(Signal::TSTP).map_err(io::Error::from)?;
        self.resume()
    }

    pub(super) fn start_editor(&mut self, text: String) -> Result<(), TuiError> {
        if self.editor.is_some() {
            return Ok(());
        }
        self.release_terminal()?;
        let editor = find_editor(|name| std::env::var(name).ok());
        let run = move || edit_text(&editor, &text).ok().flatten();
        self.editor = Some(tokio::task::spawn_blocking(run));
        Ok(())
    }

    pub(super) fn on_edited(&mut self, text: Option<String>) -> Result<(), TuiError> {
        self.resume()?;
        self.on_input(AppInput::EditedText(text), FrameNeed::Key)
    }

    /// Prints lines into the scrollback: above an inline frame, or on the main screen.
    pub(super) fn print_lines(&mut self, lines: &[String]) -> Result<(), TuiError> {
        if self.modes.is_inline {
            let width = self.painter.size().0;
            self.print_above(lines.iter().flat_map(|it| wrap_text(it, width)).collect());
            return Ok(());
        }
        let mut text = String::new();
        for line in lines.iter().flat_map(|it| it.lines()) {
            text.push_str(&sanitize_text(line));
            text.push_str("\r\n");
        }
        let mut sequence = Vec::new();
        queue!(sequence, LeaveAlternateScreen, Print(text), EnterAlternateScreen)?;
        self.painter.write(&sequence)?;
        self.painter.clear()?;
        self.pacing.request(FrameNeed::Key);
        Ok(())
    }

    /// Prints lines above an inline frame, before that is drawn: another program may have the terminal.
    pub(super) fn print_above(&mut self, lines: Vec<Line<'static>>) {
        self.lines_above.extend(lines);
        self.pacing.request(FrameNeed::Key);
    }

    /// Asks the terminal for the row of its cursor, which is at the beginning of an inline frame before that is drawn.
    /// Only clicks need it.
    pub(super) fn read_top_row(&mut self) {
        if !self.modes.is_inline || !self.modes.uses_mouse {
            return;
        }
        // The terminal answers among the keys, which nothing else may read meanwhile.
        self.events = None;
        // The dropped stream may have left a wake-up, which would end the next read at once.
        let _has_events = crossterm::event::poll(Duration::ZERO);
        if let Ok((_, row)) = crossterm::cursor::position() {
            self.painter.set_top_row(row);
        }
        self.events = Some(EventStream::new());
    }
}
