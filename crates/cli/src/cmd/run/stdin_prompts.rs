//! `run --interactive`: runs the prompts from stdin one after the other in one session.

use super::{
    driver::{CancelCause, TurnCompletion, TurnDriver},
    input::{InputFormat, InputLine},
};
use crate::{
    exit::CliExitCode,
    hub::{ConnectionEvent, TimeLimit},
    out::{ConversationFormat, TranscriptPrinter},
    plain_text::format_count,
    report::CommandError,
};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// How many prompts wait for the running turn. Stdin is not read while the queue is full.
const WAITING_MAX: usize = 16;

/// The prompts from stdin.
#[derive(Debug, Default)]
pub(super) struct StdinPrompts {
    /// The parameters of the prompts that wait for the running turn.
    waiting: VecDeque<Value>,
    /// Stdin is closed.
    pub(super) is_closed: bool,
    /// The exit code of the last error, which was printed when it occurred.
    last_error: Option<CliExitCode>,
}

impl TurnDriver<'_> {
    /// Runs turns until stdin is closed or the user interrupts the command.
    pub(super) fn run_stdin_prompts(&mut self, first_prompt: Option<Value>) -> TurnCompletion {
        self.stdin_prompts = Some(StdinPrompts {
            waiting: first_prompt.into_iter().collect(),
            ..StdinPrompts::default()
        });
        let ended = self.conn.watch_stdin().and_then(|()| self.run_turns());
        let is_turn_over = matches!(ended, Ok(()) | Err(CommandError::StdoutClosed));
        let last_error = self.stdin_prompts.take().and_then(|it| it.last_error);
        let reported = last_error.map_or(Ok(()), |exit| Err(CommandError::AlreadyReported(exit)));
        TurnCompletion { is_turn_over, outcome: ended.and(reported) }
    }

    fn run_turns(&mut self) -> Result<(), CommandError> {
        while let Some(prompt) = self.next_prompt()? {
            let completion = self.run_turn(&prompt, self.options.timeout.map(TimeLimit::after));
            match completion.outcome {
                Ok(()) => {}
                Err(CommandError::StdoutClosed) => return Err(CommandError::StdoutClosed),
                Err(error) if completion.is_turn_over => self.report_error(&error),
                Err(error) => return Err(error),
            }
            self.separate_turns()?;
        }
        Ok(())
    }

    /// Prints a separator and starts a new transcript for the next turn.
    fn separate_turns(&mut self) -> Result<(), CommandError> {
        self.transcript = TranscriptPrinter::new(&self.output, self.options.note_destination());
        match self.options.format {
            ConversationFormat::Text | ConversationFormat::Quiet => self.output.print_text("\n"),
            ConversationFormat::Json
            | ConversationFormat::Events
            | ConversationFormat::Envelopes
            | ConversationFormat::ExtendedEnvelopes => Ok(()),
        }
    }

    /// Waits for the next prompt and handles frames meanwhile; `None` if stdin is closed or the user interrupts the
    /// command.
    fn next_prompt(&mut self) -> Result<Option<Value>, CommandError> {
        let prompt_shown = self.show_input_prompt();
        loop {
            let Some(prompts) = &mut self.stdin_prompts else { return Ok(None) };
            let prompt = prompts.waiting.pop_front();
            if prompt.is_some() || prompts.is_closed {
                if prompt_shown && prompt.is_none() {
                    // No typed line has ended the line.
                    self.output.print_alert("");
                }
                self.conn.set_stdin_paused(false);
                return Ok(prompt);
            }
            match self.conn.next_event(None)? {
                ConnectionEvent::Frame(frame) => self.on_frame(&frame)?,
                ConnectionEvent::StdinLine(line) => self.on_stdin_line(line)?,
                ConnectionEvent::StdinClosed => self.on_stdin_closed()?,
                ConnectionEvent::Interrupt => return Ok(None),
                ConnectionEvent::Response(_)
                | ConnectionEvent::LogEvent(_)
                | ConnectionEvent::TimedOut => {}
                ConnectionEvent::Closed => {
                    return Err(CommandError::ConnectionClosed {
                        waited_for: "the next prompt".into(),
                    });
                }
            }
        }
    }

    /// Prints the input prompt on a terminal if no prompt is waiting; returns whether it did.
    fn show_input_prompt(&self) -> bool {
        let is_needed =
            self.stdin_prompts.as_ref().is_some_and(|it| it.waiting.is_empty() && !it.is_closed);
        let is_shown =
            is_needed && self.options.input == InputFormat::Text && self.output.can_prompt_user();
        if is_shown {
            self.output.print_prompt(">");
        }
        is_shown
    }

    /// Handles a line of stdin that is not an answer to a question.
    pub(super) fn on_prompt_line(&mut self, line: &str) -> Result<(), CommandError> {
        let Some(prompts) = &mut self.stdin_prompts else { return Ok(()) };
        match self.options.input.parse_line(line) {
            InputLine::Empty => {}
            InputLine::Prompt(blocks) => {
                let params = json!({ "sessionId": self.target.session, "prompt": blocks });
                prompts.waiting.push_back(params);
                self.conn.set_stdin_paused(WAITING_MAX <= prompts.waiting.len());
            }
            InputLine::Cancel => {
                self.withdraw_waiting();
                return self.cancel_turn(CancelCause::StdinRequest);
            }
            InputLine::Invalid(why) => self.report_error(&CommandError::usage(
                format!("invalid line on stdin: {why}"),
                "write `{\"prompt\":\"…\"}`, `{\"prompt\":[BLOCK,…]}` or `{\"type\":\"cancel\"}`",
            )),
        }
        Ok(())
    }

    /// Withdraws the waiting prompts, because a cancel applies to everything before it.
    fn withdraw_waiting(&mut self) {
        let Some(prompts) = self.stdin_prompts.as_mut().filter(|it| !it.waiting.is_empty()) else {
            return;
        };
        let withdrawn = prompts.waiting.len();
        prompts.waiting.clear();
        prompts.last_error = Some(CommandError::TurnCanceled.exit_code());
        self.output.print_note(&format!("{} withdrawn", format_count(withdrawn, "prompt")));
        self.conn.set_stdin_paused(false);
    }

    /// Prints an error and continues.
    pub(super) fn report_error(&mut self, error: &CommandError) {
        let exit_code = self.output.print_error(error);
        if let Some(prompts) = &mut self.stdin_prompts {
            prompts.last_error = Some(exit_code);
        }
    }
}
