//! The modes of the terminal: set when the interface starts, and reset when it ends, is suspended or panics.

use crossterm::{
    cursor::{MoveTo, Show},
    event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture},
    queue,
    style::ResetColor,
    terminal::{
        Clear, ClearType, EnableLineWrap, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use std::{
    io::{self, Write},
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The modes that the interface uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScreenModes {
    /// The frame is below the prompt of the shell, not on the alternate screen.
    pub(super) is_inline: bool,
    pub(super) uses_mouse: bool,
}

impl ScreenModes {
    /// Takes over the terminal.
    pub(super) fn enter(self) -> io::Result<()> {
        enable_raw_mode()?;
        self.write_enter(&mut io::stdout().lock())
    }

    /// Gives the terminal back as it was.
    pub(super) fn leave(self) -> io::Result<()> {
        let written = self.write_leave(&mut io::stdout().lock());
        disable_raw_mode()?;
        written
    }

    pub(super) fn write_enter(self, out: &mut impl Write) -> io::Result<()> {
        if !self.is_inline {
            queue!(out, EnterAlternateScreen, Clear(ClearType::All), MoveTo(0, 0))?;
        }
        queue!(out, EnableBracketedPaste)?;
        if self.uses_mouse {
            queue!(out, EnableMouseCapture)?;
        }
        out.flush()
    }

    pub(super) fn write_leave(self, out: &mut impl Write) -> io::Result<()> {
        // The frame may be incomplete.
        queue!(out, EndSynchronizedUpdate, EnableLineWrap, ResetColor)?;
        if self.uses_mouse {
            queue!(out, DisableMouseCapture)?;
        }
        queue!(out, DisableBracketedPaste)?;
        if !self.is_inline {
            queue!(out, LeaveAlternateScreen)?;
        }
        queue!(out, Show)?;
        out.flush()
    }
}

/// Calls `restore` before a panic is reported. The flag is set when that has happened: a task that panics does not end
/// the interface by itself.
pub(super) fn restore_on_panic(restore: impl Fn() + Send + Sync + 'static) -> Arc<AtomicBool> {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let (flag, report) = (has_panicked.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        if !flag.swap(true, Ordering::SeqCst) {
            restore();
        }
        report(info);
    }));
    has_panicked
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{num::NonZero, sync::Mutex, thread};

    const MODES: ScreenModes = ScreenModes { is_inline: false, uses_mouse: true };

    fn parse(bytes: &[u8]) -> vt100::Parser {
        let [rows, columns] = [24, 80].map(|it| NonZero::new(it).unwrap());
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        terminal.process(bytes);
        terminal
    }

    fn is_untouched(terminal: &vt100::Parser) -> bool {
        let screen = terminal.screen();
        let has_modes =
            screen.alternate_screen() || screen.bracketed_paste() || screen.hide_cursor();
        !has_modes && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    #[test]
    fn leaving_resets_every_mode_that_was_set() {
        for modes in [MODES, ScreenModes { is_inline: true, uses_mouse: false }] {
            let mut bytes = Vec::new();
            modes.write_enter(&mut bytes).unwrap();
            assert!(!is_untouched(&parse(&bytes)));
            // A frame hides the cursor.
            bytes.extend_from_slice(b"\x1b[?2026h\x1b[?25l\x1b[31mtext");
            modes.write_leave(&mut bytes).unwrap();
            bytes.push(b'x');
            let terminal = parse(&bytes);
            assert!(is_untouched(&terminal), "{modes:?}");
            let (row, column) = terminal.screen().cursor_position();
            let cell = terminal.screen().cell(row, column - 1).unwrap();
            assert_eq!((cell.contents(), cell.fgcolor()), ("x", vt100::Color::Default));
        }
    }

    #[test]
    fn panic_restores_the_terminal_once_before_it_is_reported() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let output = written.clone();
        MODES.write_enter(&mut *output.lock().unwrap()).unwrap();
        let report = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let has_panicked = restore_on_panic(move || {
            MODES.write_leave(&mut *output.lock().unwrap()).unwrap();
        });
        for _ in 0..2 {
            assert!(thread::spawn(|| panic!("a defect")).join().is_err());
        }
        panic::set_hook(report);
        assert!(has_panicked.load(Ordering::SeqCst));
        let bytes = written.lock().unwrap();
        assert!(is_untouched(&parse(&bytes)));
        let restored = bytes.windows(8).filter(|it| *it == b"\x1b[?1049l").count();
        assert_eq!(restored, 1);
    }
}
