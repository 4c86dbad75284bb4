//! Runs a command as our own process, under a guard that ends its whole process tree with it.

use super::{CommandExit, OUTPUT_BYTES_MAX, ShellCall, ShellResult};
use crate::{
    process::{child_environment, new_process_marker, open_ledger},
    tool::{ProgressSink, SessionContext, to_fenced_block, truncate::join_ends},
};
use agent_client_protocol::v1::schema::ToolCallUpdateFields;
use jackfield_agents::{
    AgentExit, AgentHandle, AgentProcessEvent, LaunchCommand, ProcessLedger, StdoutFormat,
    StopUrgency, spawn_agent,
};
use jackfield_protocol::chain;
use jackfield_workspace_fs::OutputTail;
use std::{pin::pin, time::Duration};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};

const EVENTS_MAX: usize = 64;
/// How often the user sees new output.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);
/// How much output the user sees: only the end, because each update replaces the previous one.
const SHOWN_CHARS_MAX: usize = 8_000;
/// How much is stored of the beginning of a very long output.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A running command. Dropping it ends the process tree. This is how a command is canceled.
struct RunningProcess {
    handle: AgentHandle,
    events: mpsc::Receiver<((), AgentProcessEvent)>,
    /// Stays open while the process runs.
    _ledger: ProcessLedger,
}

pub(super) async fn run_command(
    command: &ShellCall,
    context: &SessionContext,
    on_progress: ProgressSink<'_>,
) -> Result<ShellResult, String> {
    let mut process = start_process(command, context)?;
    process.handle.close_stdin();
    let mut output = OutputBuffer::new();
    let (mut is_timed_out, mut has_new_output) = (false, false);
    let mut deadline = pin!(sleep(command.timeout));
    let mut tick = interval(UPDATE_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let exit = loop {
        tokio::select! {
            event = process.events.recv() => match event {
                Some(((), AgentProcessEvent::Output(bytes))) => {
                    output.push(&bytes);
                    has_new_output = true;
                }
                Some(((), AgentProcessEvent::Gone(exit))) => break exit,
                Some(_) => {}
                None => break AgentExit::default(),
            },
            () = &mut deadline, if !is_timed_out => {
                is_timed_out = true;
                process.handle.stop(StopUrgency::Soon);
            }
            _ = tick.tick(), if has_new_output => {
                has_new_output = false;
                let content = vec![to_fenced_block(&output.shown_text())];
                on_progress(ToolCallUpdateFields::new().content(content));
            }
        }
    };
    // The channel closes when no process of the tree is left.
    while process.events.recv().await.is_some() {}
    if let Some(error) = exit.failed_to_start {
        return Err(format!("The command could not be started: {error}."));
    }
    let exit = match (is_timed_out, exit.code, exit.signal_name()) {
        (true, ..) => CommandExit::TimedOut,
        (_, Some(code), _) => CommandExit::Code(code.into()),
        (_, None, Some(signal)) => CommandExit::Signal(signal),
        (_, None, None) => CommandExit::Unknown,
    };
    let text = output.text();
    let content =
        if text.is_empty() { Vec::new() } else { vec![to_fenced_block(&output.shown_text())] };
    Ok(ShellResult { exit, output: text, content })
}

fn start_process(command: &ShellCall, context: &SessionContext) -> Result<RunningProcess, String> {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let (ledger, marker) =
        prepare_ledger(context).map_err(|error| format!("No command can be run: {error}."))?;
    let launch = LaunchCommand {
        argv: ["/bin/sh", "-c", &command.line].map(str::to_owned).into(),
        cwd: command.cwd.real.clone(),
        env: child_environment(std::env::vars_os()),
        stdout_format: StdoutFormat::Bytes,
    };
    let handle = spawn_agent(&context.guard, &launch, &marker, &ledger, sender, ())
        .map_err(|error| format!("The command could not be started: {}.", chain(&error)))?;
    Ok(RunningProcess { handle, events, _ledger: ledger })
}

fn prepare_ledger(context: &SessionContext) -> Result<(ProcessLedger, String), String> {
    Ok((open_ledger(&context.ledger_dir)?, new_process_marker("shell")?))
}

/// Stores the beginning and the end of an output.
struct OutputBuffer {
    head: Vec<u8>,
    tail: OutputTail,
    total_bytes: usize,
}

impl OutputBuffer {
    fn new() -> OutputBuffer {
        OutputBuffer { head: Vec::new(), tail: OutputTail::new(OUTPUT_BYTES_MAX), total_bytes: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.tail.push(bytes);
        self.total_bytes += bytes.len();
    }

    /// Returns the end of the output, for the user.
    fn shown_text(&self) -> String {
        let text = self.tail.partial_text().0;
        let first = text.char_indices().rev().nth(SHOWN_CHARS_MAX - 1).map_or(0, |(at, _)| at);
        text[first..].to_owned()
    }

    fn text(&self) -> String {
        let (text, is_truncated) = self.tail.final_text();
        let omitted_bytes = self.total_bytes.saturating_sub(self.head.len() + text.len());
        if is_truncated && 0 < omitted_bytes {
            return join_ends(&String::from_utf8_lossy(&self.head), &text, omitted_bytes);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_long_output_are_kept() {
        let mut output = OutputBuffer::new();
        output.push(b"first\n");
        assert_eq!(output.text(), "first\n");
        for _ in 0..300 {
            output.push(&[b'x'; 10_000]);
        }
        output.push(b"last\n");
        let text = output.text();
        assert!(text.starts_with("first\n") && text.ends_with("last\n"));
        assert!(text.contains("bytes are left out here"));
        assert!(text.len() < OUTPUT_BYTES_MAX + HEAD_BYTES_MAX + 99);
        assert_eq!(output.shown_text().chars().count(), SHOWN_CHARS_MAX);
    }
}
