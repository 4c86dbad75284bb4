//! All printing: data on stdout, everything else on stderr.

mod color;
mod error_report;
mod json;
mod table;
mod time;
mod transcript;
mod view_printer;

use color::escape_except_colors;
pub(crate) use color::{ALERT, BRIGHT, DIM, DONE, NAME, WARNING, paint};
pub(crate) use jackfield_protocol::parse_rfc3339;
pub(crate) use json::print_json_document;
pub(crate) use table::{TableCell, TextTable};
pub(crate) use time::{format_age, now_ms, rfc3339_now};
pub(crate) use transcript::{NoteDestination, TranscriptPrinter};
pub(crate) use view_printer::{ConversationFormat, ViewPrinter};

use crate::{exit::CliExitCode, plain_text::escape_control_chars, report::CommandError};
use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use jackfield_protocol::visible;
use rustix::termios::{QueueSelector, tcflush};
use std::{
    borrow::Cow,
    cell::Cell,
    io::{self, IsTerminal as _, Write as _},
    rc::Rc,
};

/// How to print the result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Human-readable
    #[default]
    Text,
    /// Machine-readable: one JSON document, or ACP messages, one per line
    Json,
    /// Only the final text, or ids
    Quiet,
}

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorMode {
    // On a terminal, unless `NO_COLOR` is set. A doc comment here would make the help of every command longer.
    #[default]
    Auto,
    Always,
    Never,
}

/// Stdout and stderr, and how they are used. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct CommandOutput(Rc<OutputSettings>);

/// How many messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VerbosityLevel {
    Quiet,
    Normal,
    Verbose,
    Debug,
}

#[derive(Debug)]
struct OutputSettings {
    color: ColorChoice,
    verbosity: VerbosityLevel,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// Whether the last output on stdout did not end with a newline.
    has_open_line: Cell<bool>,
}

impl CommandOutput {
    pub(crate) fn new(color: ColorMode, quiet: bool, verbose: u8) -> CommandOutput {
        let color = match color {
            ColorMode::Auto => ColorChoice::Auto,
            ColorMode::Always => ColorChoice::Always,
            ColorMode::Never => ColorChoice::Never,
        };
        CommandOutput(Rc::new(OutputSettings {
            color,
            verbosity: match (quiet, verbose) {
                (true, _) => VerbosityLevel::Quiet,
                (false, 0) => VerbosityLevel::Normal,
                (false, 1) => VerbosityLevel::Verbose,
                (false, _) => VerbosityLevel::Debug,
            },
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            has_open_line: Cell::new(false),
        }))
    }

    /// Prints clap's message: help and version are data, everything else is a usage error.
    pub(crate) fn print_usage(error: &clap::Error) -> CliExitCode {
        let _stream_closed = error.print();
        if error.use_stderr() { CliExitCode::Usage } else { CliExitCode::Ok }
    }

    pub(crate) fn verbosity(&self) -> VerbosityLevel {
        self.0.verbosity
    }

    pub(crate) fn is_verbose(&self) -> bool {
        VerbosityLevel::Verbose <= self.0.verbosity
    }

    fn is_quiet(&self) -> bool {
        self.0.verbosity == VerbosityLevel::Quiet
    }

    /// Whether color is allowed; `NO_COLOR` may still forbid it.
    pub(crate) fn has_color(&self) -> bool {
        self.0.color != ColorChoice::Never
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.stdout_is_terminal
    }

    /// Whether the user can be asked: stdin and stderr are terminals.
    pub(crate) fn can_prompt_user(&self) -> bool {
        self.0.stderr_is_terminal && io::stdin().is_terminal()
    }

    /// The columns of the terminal, if stdout is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (self.0.stdout_is_terminal && 0 < size.ws_col).then(|| usize::from(size.ws_col))
    }

    /// Prints text to stdout with its control characters escaped.
    pub(crate) fn print_text(&self, text: &str) -> Result<(), CommandError> {
        self.write(&escape_control_chars(text))
    }

    /// Prints JSON or a file to stdout unchanged; on a terminal, control characters become JSON escapes.
    pub(crate) fn print_raw(&self, text: &str) -> Result<(), CommandError> {
        let is_terminal = self.0.stdout_is_terminal;
        self.write(&if is_terminal { visible::json(text) } else { Cow::Borrowed(text) })
    }

    fn write(&self, text: &str) -> Result<(), CommandError> {
        if text.is_empty() {
            return Ok(());
        }
        self.0.has_open_line.set(!text.ends_with('\n'));
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(CommandError::from_stdout)
    }

    /// Ends the current line on stdout, if it has text.
    pub(crate) fn end_line(&self) -> Result<(), CommandError> {
        if self.0.has_open_line.get() { self.print_text("\n") } else { Ok(()) }
    }

    /// Prints a styled line to stdout. Control characters in it are escaped.
    pub(crate) fn print_line(&self, line: &str) -> Result<(), CommandError> {
        self.end_line()?;
        let mut stdout = AutoStream::new(io::stdout().lock(), self.0.color);
        let written =
            writeln!(stdout, "{}", escape_except_colors(line)).and_then(|()| stdout.flush());
        written.map_err(CommandError::from_stdout)
    }

    /// Prints a line to stderr, unless `--quiet` is set.
    pub(crate) fn print_note(&self, line: &str) {
        if !self.is_quiet() {
            self.print_alert(line);
        }
    }

    /// Prints a line to stderr, even with `--quiet`.
    pub(crate) fn print_alert(&self, line: &str) {
        self.end_line_on_shared_terminal();
        let mut stderr = AutoStream::new(io::stderr().lock(), self.0.color);
        // If stderr is closed, there is no place to report that.
        let _stream_closed = writeln!(stderr, "{}", escape_except_colors(line));
    }

    /// Prints a question whose answer is typed on the same line. Earlier input is discarded.
    pub(crate) fn print_question(&self, text: &str) {
        if io::stdin().is_terminal() {
            // This fails only if the terminal is gone, and then no input follows.
            let _terminal_gone = tcflush(io::stdin(), QueueSelector::IFlush);
        }
        self.print_prompt(text);
    }

    /// Prints the prompt for the next line.
    pub(crate) fn print_prompt(&self, text: &str) {
        self.end_line_on_shared_terminal();
        let mut stderr = AutoStream::new(io::stderr().lock(), self.0.color);
        // On a terminal, the typed line ends the line; input from a pipe is not echoed.
        let end = if io::stdin().is_terminal() { ' ' } else { '\n' };
        let _stream_closed =
            write!(stderr, "{}{end}", escape_except_colors(text)).and_then(|()| stderr.flush());
    }

    /// Ends the line on stdout if stderr prints to the same terminal.
    fn end_line_on_shared_terminal(&self) {
        if self.0.stdout_is_terminal && self.0.stderr_is_terminal {
            let _stream_closed = self.end_line();
        }
    }
}
