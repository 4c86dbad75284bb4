//! The part of an adapter that differs between programs: how a prompt is passed, and what their
//! lines mean.

use crate::{AdapterTurn, ProgramCapabilities, PromptInput};
use jackfield_agents::AgentExit;
use serde_json::Value;

/// Whether one process serves the whole session, or each turn has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramLifetime {
    /// Started with the prompt, exits with the turn; a later turn resumes the session by argument.
    PerTurn,
    /// Started with the first prompt, receives input on stdin until the session is closed.
    PerSession,
}

/// The state of the session with which a program is started.
#[derive(Debug, Clone, Copy)]
pub struct StartContext<'a> {
    pub cwd: &'a str,
    /// The program's own session id; absent before its first turn.
    pub agent_session_id: Option<&'a str>,
    /// Absent if the program's own default is wanted.
    pub model: Option<&'a str>,
    pub reasoning: Option<&'a str>,
    pub mode: Option<&'a str>,
    /// The program runs in a sandbox of Jackfield, in which it cannot start one of its own.
    pub is_sandboxed: bool,
    /// `mcpServers` as the client sent them.
    pub mcp_servers: &'a [Value],
}

/// A file for one process. Only its user can read it, and it is removed when the process exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// The option that precedes the file's path in the arguments.
    pub option: &'static str,
    pub text: String,
}

/// A setting that changes while a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramSetting<'a> {
    Mode(&'a str),
    Model(&'a str),
    Reasoning(&'a str),
}

/// The client's response to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionAnswer<'a> {
    /// The `id` of one of the [`crate::PermissionOption`]s.
    Selected(&'a str),
    /// The turn was cancelled, or no client could answer.
    Cancelled,
}

/// Translates between one program and ACP, for one session. It does no I/O: all effects go through
/// the [`AdapterTurn`].
pub trait Dialect: Send {
    fn lifetime(&self) -> ProgramLifetime;

    fn capabilities(&self) -> ProgramCapabilities {
        ProgramCapabilities::default()
    }

    /// Configuration that must not appear in the arguments, such as the keys of MCP servers: every
    /// user of the machine can read the arguments of a process.
    fn private_file(&self, _start: &StartContext<'_>) -> Option<PrivateFile> {
        None
    }

    /// A process was just started. Called once per process, before [`Dialect::on_prompt`].
    fn on_start(&mut self, _start: &StartContext<'_>, _turn: &mut AdapterTurn) {}

    /// A turn begins: pass the prompt to the program. By default the adapter does so as the catalog
    /// specifies (`prompt = …`), and then closes stdin.
    fn on_prompt(&mut self, _prompt: &PromptInput, _turn: &mut AdapterTurn) {}

    /// Whether [`Dialect::on_prompt`] writes the prompt itself.
    fn can_write_prompt(&self) -> bool {
        self.lifetime() == ProgramLifetime::PerSession
    }

    /// Whether the program prints text for people, which is passed to [`Dialect::on_output`] as it
    /// comes. Its stderr is shown as it comes, too.
    fn prints_text(&self) -> bool {
        false
    }

    /// Output of a program that prints text.
    fn on_output(&mut self, _text: &str, _turn: &mut AdapterTurn) {}

    /// One line of stdout, without its newline.
    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn);

    /// The client cancels the turn. Returns false if the process must be stopped for that, which is
    /// the only way for a program that has no channel for it.
    fn on_cancel(&mut self, _turn: &mut AdapterTurn) -> bool {
        false
    }

    /// The client answered the request that [`AdapterTurn::request_permission`] sent under this key.
    fn on_answer(&mut self, _key: &str, _answer: PermissionAnswer<'_>, _turn: &mut AdapterTurn) {}

    /// A setting changed while the program runs. Returns false if only a new process can apply it;
    /// the running one is then replaced before the next turn.
    fn on_setting(&mut self, _setting: ProgramSetting<'_>, _turn: &mut AdapterTurn) -> bool {
        false
    }

    /// The process exited; all its output was delivered before. If the dialect sets no outcome, the
    /// adapter does: a cancelled turn is cancelled, any other turn failed for the reason that exit
    /// status, stderr and unparsable lines suggest.
    fn on_exit(&mut self, _exit: &AgentExit, _turn: &mut AdapterTurn) {}
}
