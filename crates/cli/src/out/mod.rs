//! The only place that prints: data on stdout, everything else on stderr.

mod color;
mod json;
mod retold;
mod table;
mod text;
mod time;

use color::keep_colors;
pub(crate) use color::{ALERT, BRIGHT, DIM, DONE, NAME, WARNING, paint};
pub(crate) use json::document;
pub(crate) use retold::{Retold, Telling};
pub(crate) use table::{Cell, Table};
pub(crate) use text::{Side, Transcript};
pub(crate) use time::{ago, now_ms, parse_rfc3339, rfc3339_now};

use crate::{exit::Exit, report::Failure};
use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use jackfield_protocol::visible;
use rustix::termios::{QueueSelector, tcflush};
use std::{
    borrow::Cow,
    cell::Cell as State,
    io::{self, IsTerminal as _, Write as _},
    rc::Rc,
};

/// How to print what a command has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: ACP messages, one a line; lists and checks as one JSON document
    Json,
    /// Nothing but the essence: the final text, the ids
    Quiet,
}

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    // On a terminal, unless `NO_COLOR` is set. No help of its own: it would make every help longer.
    #[default]
    Auto,
    Always,
    Never,
}

/// Both streams and how talkative to be. Clones print to the same places.
#[derive(Debug, Clone)]
pub(crate) struct Out(Rc<Settings>);

/// How much to tell people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Volume {
    Low,
    Normal,
    High,
    Full,
}

#[derive(Debug)]
struct Settings {
    color: ColorChoice,
    volume: Volume,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// What stands on stdout does not end with a newline.
    open_line: State<bool>,
}

impl Out {
    pub(crate) fn new(color: Color, quiet: bool, verbose: u8) -> Out {
        let color = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Out(Rc::new(Settings {
            color,
            volume: match (quiet, verbose) {
                (true, _) => Volume::Low,
                (false, 0) => Volume::Normal,
                (false, 1) => Volume::High,
                (false, _) => Volume::Full,
            },
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            open_line: State::new(false),
        }))
    }

    /// What clap has to say: help and version are data, the rest is wrong usage.
    pub(crate) fn usage(error: &clap::Error) -> Exit {
        let _unheard = error.print();
        if error.use_stderr() { Exit::Usage } else { Exit::Ok }
    }

    pub(crate) fn volume(&self) -> Volume {
        self.0.volume
    }

    pub(crate) fn is_verbose(&self) -> bool {
        Volume::High <= self.0.volume
    }

    fn is_quiet(&self) -> bool {
        self.0.volume == Volume::Low
    }

    /// Whether a person looks at what stands on stdout.
    pub(crate) fn has_reader(&self) -> bool {
        self.0.stdout_is_terminal
    }

    /// Whether a person can be asked something: there is a screen for the question and a keyboard.
    pub(crate) fn can_ask(&self) -> bool {
        self.0.stderr_is_terminal && io::stdin().is_terminal()
    }

    /// Columns that fit on the terminal, if stdout is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (self.0.stdout_is_terminal && 0 < size.ws_col).then(|| usize::from(size.ws_col))
    }

    /// A piece of text, whoever wrote it.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        self.write(&clean(text))
    }

    /// JSON or a file for programs: every byte of it, but on a terminal as escapes of JSON where that matters.
    pub(crate) fn exact(&self, text: &str) -> Result<(), Failure> {
        let is_shown = self.0.stdout_is_terminal;
        self.write(&if is_shown { visible::json(text) } else { Cow::Borrowed(text) })
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.0.open_line.set(!text.ends_with('\n'));
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(Failure::from_stdout)
    }

    /// Ends the line on stdout if one is open.
    pub(crate) fn end_line(&self) -> Result<(), Failure> {
        if self.0.open_line.get() { self.data("\n") } else { Ok(()) }
    }

    /// A line of data that we styled ourselves; what is in it of others is made visible here.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.end_line()?;
        let mut stdout = AutoStream::new(io::stdout().lock(), self.0.color);
        let written = writeln!(stdout, "{}", keep_colors(line)).and_then(|()| stdout.flush());
        written.map_err(Failure::from_stdout)
    }

    /// A line for people, unless they want none.
    pub(crate) fn note(&self, line: &str) {
        if !self.is_quiet() {
            self.alert(line);
        }
    }

    /// A line for people in any case.
    pub(crate) fn alert(&self, line: &str) {
        self.make_room();
        let mut stderr = AutoStream::new(io::stderr().lock(), self.0.color);
        // Nobody is left to tell that stderr is gone.
        let _unheard = writeln!(stderr, "{}", keep_colors(line));
    }

    /// A question: the answer is typed on the same line. What was typed before it is shown is discarded.
    pub(crate) fn question(&self, text: &str) {
        if io::stdin().is_terminal() {
            // A terminal that cannot discard it has hung up: then nothing is typed at all.
            let _hung_up = tcflush(io::stdin(), QueueSelector::IFlush);
        }
        self.prompt(text);
    }

    /// The place where the next line is typed.
    pub(crate) fn prompt(&self, text: &str) {
        self.make_room();
        let mut stderr = AutoStream::new(io::stderr().lock(), self.0.color);
        // What is typed on a terminal ends the line; what comes out of a pipe is not seen.
        let end = if io::stdin().is_terminal() { ' ' } else { '\n' };
        let _unheard = write!(stderr, "{}{end}", keep_colors(text)).and_then(|()| stderr.flush());
    }

    /// On one screen, a note starts on a line of its own.
    fn make_room(&self) {
        if self.0.stdout_is_terminal && self.0.stderr_is_terminal {
            let _unheard = self.end_line();
        }
    }
}

/// Text of others that cannot repaint the screen.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    visible::prose(text)
}

/// `1 agent`, `2 agents`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// `event 4`, `events 4 to 6`.
pub(crate) fn events_between(first: u64, last: u64) -> String {
    if first == last { format!("event {first}") } else { format!("events {first} to {last}") }
}

/// The text itself, without colors.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// The same on one line, without colors, and no longer than `chars_max`.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let line = plain(text);
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = clean(&words.join(" ")).into_owned();
    if line.chars().count() <= chars_max {
        return line;
    }
    let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(one_line(" run\n  \u{1b}[1mcargo\u{1b}[0m \ttest ", 80), "run cargo test");
        assert_eq!(one_line("0123456789", 6), "01234…");
    }
}
