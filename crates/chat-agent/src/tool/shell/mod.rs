//! The tool `shell`: runs a command line, in a terminal of the client or under our guard.

mod client_terminal;
mod local_process;
mod permission_name;
#[cfg(test)]
mod tests;

use super::{
    PreparedCall, ProgressSink, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::ResolvedPath,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};
use agent_client_protocol::v1::schema::ToolCallContent;
use permission_name::permission_name;
use serde_json::json;
use std::time::Duration;

const TIMEOUT_SECS_DEFAULT: u64 = 120;
const TIMEOUT_SECS_MAX: u64 = 600;
/// Leaves space for the note about the exit status.
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;
/// How much output is stored. This is much more than the model gets, so that the gap can be
/// counted.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct ShellCall {
    line: String,
    cwd: ResolvedPath,
    timeout: Duration,
}

/// The result of a command.
struct ShellResult {
    exit: CommandExit,
    output: String,
    /// For the user.
    content: Vec<ToolCallContent>,
}

/// How a command ended.
enum CommandExit {
    Code(i64),
    Signal(String),
    TimedOut,
    Unknown,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let line = args.required_text("command")?;
    if line.trim().is_empty() {
        return Err(args.invalid_argument("command", "is empty"));
    }
    let cwd = args.optional_text("cwd")?.filter(|it| !it.is_empty());
    let cwd = ResolvedPath::resolve_existing(cwd.as_deref().unwrap_or("."), context).await?;
    if !cwd.is_dir {
        return Err(args.invalid_argument("cwd", "is not a directory"));
    }
    let secs = args.optional_number("timeout")?.unwrap_or(TIMEOUT_SECS_DEFAULT);
    let timeout = Duration::from_secs(secs.min(TIMEOUT_SECS_MAX));
    Ok(PreparedCall {
        input: args.to_input(),
        title: line.clone(),
        kind: args.tool().kind,
        locations: vec![cwd.to_location(None)],
        content: Vec::new(),
        permission: RequiredPermission::Named(permission_name(&line, &cwd.display)),
        work: ToolWork::Shell(ShellCall { line, cwd, timeout }),
    })
}

impl ShellCall {
    pub(super) async fn run(
        self,
        context: &SessionContext,
        on_progress: ProgressSink<'_>,
    ) -> ToolOutcome {
        let result = if context.client_io.has_terminals {
            client_terminal::run_command(&self, context, on_progress).await
        } else {
            local_process::run_command(&self, context, on_progress).await
        };
        result.map_or_else(ToolOutcome::failure, |it| self.to_outcome(it))
    }

    fn to_outcome(&self, result: ShellResult) -> ToolOutcome {
        let ShellResult { exit, output, content } = result;
        let secs = self.timeout.as_secs();
        let status = match &exit {
            CommandExit::Code(code) => format!("exit status {code}"),
            CommandExit::Signal(signal) => format!("ended by {signal}"),
            CommandExit::TimedOut => format!(
                "it had not ended after {secs} s and was killed with all its child processes; \
                 `timeout` may be up to {TIMEOUT_SECS_MAX}"
            ),
            CommandExit::Unknown => "its exit status is unknown".to_owned(),
        };
        let advice = "print less, or into a file that you read in parts";
        let output = truncate_middle(&output, TEXT_CHARS_MAX, advice);
        let text = match output.trim_end() {
            "" => format!("[it printed nothing; {status}]"),
            output => format!("{output}\n[{status}]"),
        };
        let (code, signal, timed_out) = match exit {
            CommandExit::Code(code) => (Some(code), None, false),
            CommandExit::Signal(signal) => (None, Some(signal), false),
            CommandExit::TimedOut => (None, None, true),
            CommandExit::Unknown => (None, None, false),
        };
        let raw_output = json!({ "exitCode": code, "signal": signal, "timedOut": timed_out });
        let is_error = code != Some(0);
        ToolOutcome { text, is_error, content, raw_output: Some(raw_output), plan: None }
    }
}
