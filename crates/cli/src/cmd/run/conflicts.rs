//! Flags of `run` that cannot be combined.

use super::RunCommand;
use crate::report::CommandError;

impl RunCommand {
    /// Rejects flags that cannot be combined.
    pub(super) fn check_flags(&self) -> Result<(), CommandError> {
        self.launch_args.check_agent()?;
        if self.isolated && (self.continues_session() || self.no_wait || self.keep) {
            let message = "`--isolated` cannot be combined with `--session`, `--continue`, `--no-wait` or `--keep`: \
                 its sessions end with the command";
            let hint = "leave out `--isolated`, or the other flag";
            return Err(CommandError::usage(message, hint));
        }
        if self.continues_session() {
            self.check_continued_session()?;
        }
        if self.interactive && self.no_wait {
            let message = "`--interactive` cannot be combined with `--no-wait`";
            return Err(CommandError::usage(message, "leave out `--interactive` or `--no-wait`"));
        }
        if self.prompt.is_none() && self.settings.has_images() {
            let message = "`--image` requires a prompt on the command line";
            let hint = "pass a prompt, or send image blocks with `--input json`";
            return Err(CommandError::usage(message, hint));
        }
        if self.interactive && self.prompt.as_deref() == Some("-") {
            let message = "`-` cannot be combined with `--interactive`, which reads one prompt per line of stdin";
            return Err(CommandError::usage(message, "leave out `-`, or `--interactive`"));
        }
        Ok(())
    }

    /// An existing session has its agent, its directories and its name.
    fn check_continued_session(&self) -> Result<(), CommandError> {
        let flag = if self.session.is_some() { "--session" } else { "--continue" };
        let refuse = |other: &str, why: &str, hint: String| {
            let message = format!("`{other}` cannot be combined with `{flag}`: {why}");
            Err(CommandError::usage(message, hint))
        };
        let leave_out = |other: &str| format!("leave out `{other}` or `{flag}`");
        if self.launch_args.has_typed_agent() {
            return refuse("--agent", "the session has its agent", leave_out("--agent"));
        }
        if self.session.is_some() && self.launch_args.has_typed_directory() {
            return refuse("--cwd", "the session has its directory", leave_out("--cwd"));
        }
        if self.settings.has_directories() {
            let why = "directories are set when a session is opened";
            return refuse("--add-dir", why, leave_out("--add-dir"));
        }
        if self.launch_args.has_mcp_servers() {
            let why = "MCP servers are set when a session is opened";
            return refuse("--mcp", why, leave_out("--mcp"));
        }
        if self.name.is_some() {
            let hint = "`jackfield sessions rename SESSION NAME` names an existing session";
            return refuse("--name", "it names a new session", hint.to_owned());
        }
        Ok(())
    }
}
