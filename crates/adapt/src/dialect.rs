//! What differs between programs: how a prompt is handed over, and what their lines mean.

use crate::{Prompt, Turn};
use jackfield_agents::Exit;
use serde_json::Value;

/// Whether one program serves the whole session, or each turn has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Started with the prompt, ends with the turn; a later turn resumes by argv.
    Turn,
    /// Started with the first prompt, spoken to over its stdin until the session is closed.
    Session,
}

/// What a program can take or give beyond text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Can {
    /// Images in prompts.
    pub images: bool,
    /// MCP servers of the session.
    pub mcp: bool,
}

/// What a program is started with.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub cwd: &'a str,
    /// The id under which the program knows the session; none before its first turn.
    pub native: Option<&'a str>,
    /// None where the program's own default is wanted.
    pub model: Option<&'a str>,
    pub reasoning: Option<&'a str>,
    pub mode: Option<&'a str>,
    /// `mcpServers` as the client gave them.
    pub mcp: &'a [Value],
}

/// A file for one program, which only its user can read and which is removed when the program ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    /// What comes before the file's path among the arguments.
    pub option: &'static str,
    pub text: String,
}

/// A setting that changes while a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting<'a> {
    Mode(&'a str),
    Model(&'a str),
    Reasoning(&'a str),
}

/// What a client said to an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The `id` of one of the [`crate::AskOption`]s.
    Chosen(&'a str),
    /// The turn was cancelled, or nobody could answer.
    Cancelled,
}

/// One program's way of speaking, for one session. No I/O: everything goes through the [`Turn`].
pub trait Dialect: Send {
    fn life(&self) -> Life;

    fn can(&self) -> Can {
        Can::default()
    }

    /// What the program is to be told and no argument should show, such as the keys of MCP servers:
    /// the arguments of a process can be read by everyone.
    fn handover(&self, _start: &Start<'_>) -> Option<Handover> {
        None
    }

    /// A program was just started. Comes before [`Dialect::prompt`], once for each program.
    fn open(&mut self, _start: &Start<'_>, _turn: &mut Turn) {}

    /// A turn begins: hand the prompt over. By default the catalogue says how (`prompt = …`), and
    /// stdin is closed behind it.
    fn prompt(&mut self, _prompt: &Prompt, _turn: &mut Turn) {}

    /// Whether [`Dialect::prompt`] writes the prompt itself.
    fn writes_prompts(&self) -> bool {
        self.life() == Life::Session
    }

    /// One line of stdout, without its newline.
    fn line(&mut self, line: &str, turn: &mut Turn);

    /// The client cancels. Returns false if the program must be stopped for it, which is all that can
    /// be done with a program that has no channel for it.
    fn cancel(&mut self, _turn: &mut Turn) -> bool {
        false
    }

    /// The client answered what [`Turn::ask`] asked under this key.
    fn answer(&mut self, _key: &str, _answer: Answer<'_>, _turn: &mut Turn) {}

    /// A setting changed while the program runs. Returns false if only a new program can have it;
    /// then this one is replaced before the next turn.
    fn set(&mut self, _setting: Setting<'_>, _turn: &mut Turn) -> bool {
        false
    }

    /// The program ended, after everything it said. What is not settled here is settled by the
    /// adapter: a cancelled turn is cancelled, anything else failed for the reason that exit status,
    /// stderr and noise tell.
    fn end(&mut self, _exit: &Exit, _turn: &mut Turn) {}
}
