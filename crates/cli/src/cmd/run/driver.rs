//! Runs a turn: prints the agent's messages, answers its requests, and cancels the turn when asked to.

use super::{input::InputFormat, stdin_prompts::StdinPrompts, target::TargetSession};
use crate::{
    hub::{CommandConnection, ConnectionEvent, TimeLimit},
    out::{CommandOutput, ConversationFormat, NoteDestination, TranscriptPrinter, ViewPrinter},
    report::CommandError,
    requests::{ApprovalRules, PermissionPrompt},
};
use jackfield_events::{EventBody, ReceivedEvent, RequestServed, ServedOutcome, UserAsked};
use jackfield_hub_client::{EventDecoder, parse_event};
use jackfield_protocol::{Frame, Kind, acp::Method};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How long to wait for a canceled turn. The hub kills an agent that does not stop within six seconds.
const STOP_MAX: Duration = Duration::from_secs(15);

/// How long to wait for a turn that `--on-ask fail` has canceled.
const FAIL_MAX: Duration = Duration::from_millis(500);

/// How turns are run and printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnOptions {
    pub(super) format: ConversationFormat,
    pub(super) rules: ApprovalRules,
    /// How many seconds each turn of `--interactive` may take.
    pub(super) timeout: Option<u64>,
    pub(super) input: InputFormat,
}

impl TurnOptions {
    pub(super) fn note_destination(&self) -> NoteDestination {
        if self.format == ConversationFormat::Text {
            NoteDestination::Stderr
        } else {
            NoteDestination::Nowhere
        }
    }
}

/// Why this client canceled the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelCause {
    Interrupted,
    /// A line of stdin requested it.
    StdinRequest,
    TimedOut {
        seconds: u64,
    },
    Denied,
    /// The reader of stdout has closed it.
    StdoutClosed,
}

/// How a turn ended for this client.
pub(super) struct TurnCompletion {
    /// Whether the turn has ended or will end; otherwise only this client has left.
    pub(super) is_turn_over: bool,
    pub(super) outcome: Result<(), CommandError>,
}

/// The running turn.
pub(super) struct RunningTurn {
    time_limit: Option<TimeLimit>,
    /// Until when this client waits for the turn.
    wait_until: Option<Instant>,
    cancel_cause: Option<CancelCause>,
    /// Descriptions of the denied requests.
    pub(super) denied: Vec<String>,
    /// Whether a policy rule denied some of them.
    pub(super) denied_by_rule: bool,
}

pub(super) struct TurnDriver<'a> {
    pub(super) conn: &'a mut CommandConnection,
    pub(super) output: CommandOutput,
    pub(super) target: &'a TargetSession,
    pub(super) options: TurnOptions,
    pub(super) transcript: TranscriptPrinter,
    /// Prints the conversation as events or envelopes.
    view_printer: Option<(EventDecoder, ViewPrinter)>,
    /// Requests that wait for the user; the first one is shown.
    pub(super) open_requests: VecDeque<PermissionPrompt>,
    pub(super) turn: Option<RunningTurn>,
    /// Whether the warning about an agent that does not ask was printed.
    warned: bool,
    /// The prompts from stdin with `--interactive`.
    pub(super) stdin_prompts: Option<StdinPrompts>,
}

impl<'a> TurnDriver<'a> {
    pub(super) fn new(
        conn: &'a mut CommandConnection,
        output: &CommandOutput,
        target: &'a TargetSession,
        options: TurnOptions,
    ) -> TurnDriver<'a> {
        let view_printer = ViewPrinter::new(output, options.format, &target.session);
        TurnDriver {
            conn,
            output: output.clone(),
            target,
            options,
            transcript: TranscriptPrinter::new(output, options.note_destination()),
            view_printer: view_printer.map(|it| (EventDecoder::default(), it)),
            open_requests: VecDeque::new(),
            turn: None,
            warned: false,
            stdin_prompts: None,
        }
    }

    /// Runs one turn and waits for its outcome.
    pub(super) fn run_turn(
        &mut self,
        prompt: &Value,
        time_limit: Option<TimeLimit>,
    ) -> TurnCompletion {
        let wait_until = time_limit.map(|it| it.at);
        let denied = Vec::new();
        self.turn = Some(RunningTurn {
            time_limit,
            wait_until,
            cancel_cause: None,
            denied,
            denied_by_rule: false,
        });
        let answer = self.send_prompt(prompt);
        let turn = self.turn.take();
        let is_turn_over = match &answer {
            Err(it) => matches!(
                it,
                CommandError::Response(_)
                    | CommandError::Denied { .. }
                    | CommandError::MessageTooLong
                    | CommandError::StdoutClosed
            ),
            Ok(_) => true,
        };
        let printed = self.print_end(answer.is_ok());
        let outcome = printed.and_then(|()| match turn {
            Some(turn) => self.outcome(&turn, answer),
            None => answer.map(drop),
        });
        TurnCompletion { is_turn_over, outcome }
    }

    /// Sends the prompt and waits for its response. When the reader of stdout is gone, the turn is
    /// canceled.
    fn send_prompt(&mut self, prompt: &Value) -> Result<Value, CommandError> {
        let id = self.conn.send_request(Method::SessionPrompt, prompt)?;
        let answer = self.wait_for_response(id);
        if matches!(answer, Err(CommandError::StdoutClosed)) {
            self.stop_unread_turn(id)?;
        }
        answer
    }

    /// Cancels a turn whose output nothing reads, and waits until it has ended.
    fn stop_unread_turn(&mut self, id: u64) -> Result<(), CommandError> {
        self.conn.stop_printing_frames();
        self.cancel_turn(CancelCause::StdoutClosed)?;
        loop {
            match self.conn.next_event(self.turn.as_ref().and_then(|it| it.wait_until)) {
                Ok(ConnectionEvent::Response(response)) if response.id == id => return Ok(()),
                Ok(
                    ConnectionEvent::Closed
                    | ConnectionEvent::TimedOut
                    | ConnectionEvent::Interrupt,
                ) => return Ok(()),
                Ok(_) | Err(CommandError::StdoutClosed) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn wait_for_response(&mut self, id: u64) -> Result<Value, CommandError> {
        loop {
            match self.conn.next_event(self.turn.as_ref().and_then(|it| it.wait_until))? {
                ConnectionEvent::Response(response) if response.id == id => {
                    return Ok(response.into_result()?);
                }
                ConnectionEvent::Response(_) | ConnectionEvent::LogEvent(_) => {}
                ConnectionEvent::Frame(frame) => self.on_frame(&frame)?,
                ConnectionEvent::StdinLine(line) => self.on_stdin_line(line)?,
                ConnectionEvent::StdinClosed => self.on_stdin_closed()?,
                ConnectionEvent::Interrupt => self.on_interrupt()?,
                ConnectionEvent::TimedOut => self.on_timeout()?,
                ConnectionEvent::Closed => {
                    let waited_for = format!("the response of {}", self.target.agent);
                    return Err(CommandError::ConnectionClosed { waited_for });
                }
            }
        }
    }

    fn print_end(&mut self, succeeded: bool) -> Result<(), CommandError> {
        self.transcript.finish()?;
        if self.options.format == ConversationFormat::Quiet && succeeded {
            self.output.print_text(self.transcript.final_message())?;
            self.output.end_line()?;
        }
        Ok(())
    }

    fn outcome(
        &self,
        turn: &RunningTurn,
        answer: Result<Value, CommandError>,
    ) -> Result<(), CommandError> {
        let waited_for = || format!("the response of {}", self.target.agent);
        match turn.cancel_cause {
            // This client has left or failed: that error takes precedence.
            _ if matches!(&answer, Err(it) if !matches!(it, CommandError::Response(_))) => {}
            // With `--interactive` only the turn is interrupted, not the command.
            Some(CancelCause::Interrupted) if self.stdin_prompts.is_none() => {
                return Err(CommandError::Interrupted { waited_for: waited_for() });
            }
            Some(CancelCause::TimedOut { seconds }) => {
                return Err(CommandError::TimedOut { seconds, waited_for: waited_for() });
            }
            Some(CancelCause::Denied) => return Err(self.denied_error(turn)),
            Some(
                CancelCause::Interrupted | CancelCause::StdinRequest | CancelCause::StdoutClosed,
            )
            | None => {}
        }
        match answer?["stopReason"].as_str().unwrap_or_default() {
            "end_turn" if !turn.denied.is_empty() => Err(self.denied_error(turn)),
            "end_turn" => Ok(()),
            "cancelled" => Err(CommandError::TurnCanceled),
            reason => Err(CommandError::TurnStopped { reason: reason.to_owned() }),
        }
    }

    pub(super) fn on_frame(&mut self, frame: &Frame) -> Result<(), CommandError> {
        if let Some((decoder, printer)) = &mut self.view_printer
            && let Some(event) = decoder.decode_frame(frame)
        {
            printer.print_event(&event)?;
        }
        match (frame.kind(), frame.known_method()) {
            (Kind::Request, _) => self.on_request(frame),
            (Kind::Notification, Some(Method::SessionUpdate)) => {
                let params = frame.params_value();
                self.transcript.print_update(&params["update"])
            }
            (Kind::Notification, Some(Method::CancelRequest)) => {
                self.withdraw_request(frame.request_id().unwrap_or_default());
                Ok(())
            }
            (
                Kind::Notification,
                Some(Method::ControlSession | Method::ControlTurn | Method::ControlAsk),
            ) => parse_event(frame).map_or(Ok(()), |it| self.on_event(&it)),
            _ => Ok(()),
        }
    }

    /// Prints events of others; the outcome of the turn and this client's own actions are reported elsewhere.
    fn on_event(&mut self, event: &ReceivedEvent) -> Result<(), CommandError> {
        match &event.body {
            EventBody::Bound(_) | EventBody::Quiet(_) => self.transcript.print_event(event),
            EventBody::Unasked(unasked) if !std::mem::replace(&mut self.warned, true) => {
                let title = unasked.call["title"].as_str().unwrap_or("a tool");
                let agent = &self.target.agent;
                self.conn.print_warning(&format!(
                    "{agent} ran `{title}` without asking: policy rules have no effect"
                ));
                Ok(())
            }
            EventBody::Asked(UserAsked { decision: Some(decision), frame, .. })
                if decision["effect"] == "deny" =>
            {
                let title = self.transcript.find_tool(&frame["params"]["toolCall"]).title;
                self.report_denial(&title, decision);
                Ok(())
            }
            EventBody::Served(RequestServed { call, decision, outcome }) => {
                if let ServedOutcome::Denied(_) = outcome {
                    let subject = call["path"].as_str().or(call["command"].as_str());
                    let decision = decision.as_ref().unwrap_or(&Value::Null);
                    self.report_denial(subject.unwrap_or_default(), decision);
                }
                Ok(())
            }
            EventBody::Cancelled(cancelled) if cancelled.step != 1 => {
                self.transcript.print_event(event)
            }
            _ => Ok(()),
        }
    }

    fn on_interrupt(&mut self) -> Result<(), CommandError> {
        if self.turn.as_ref().is_some_and(|it| it.cancel_cause.is_some()) {
            let waited_for = format!("{} to stop", self.target.agent);
            return Err(CommandError::Interrupted { waited_for });
        }
        self.output.print_alert(&format!(
            "canceling: waiting for {} to stop; press Ctrl-C again to exit at once",
            self.target.agent
        ));
        self.cancel_turn(CancelCause::Interrupted)
    }

    fn on_timeout(&mut self) -> Result<(), CommandError> {
        let waited_for = format!("{} to stop", self.target.agent);
        let Some(turn) = &self.turn else { return Ok(()) };
        match (turn.cancel_cause, turn.time_limit) {
            (None, Some(TimeLimit { seconds, .. })) => {
                self.print_note(&format!("timed out after {seconds} s: waiting for {waited_for}"));
                self.cancel_turn(CancelCause::TimedOut { seconds })
            }
            (Some(CancelCause::TimedOut { seconds }), _) => {
                Err(CommandError::TimedOut { seconds, waited_for })
            }
            (Some(CancelCause::Denied), _) => Err(self.denied_error(turn)),
            _ => Err(CommandError::Interrupted { waited_for }),
        }
    }

    /// Sends `session/cancel`, once.
    pub(super) fn cancel_turn(&mut self, cause: CancelCause) -> Result<(), CommandError> {
        let Some(turn) = self.turn.as_mut().filter(|it| it.cancel_cause.is_none()) else {
            return Ok(());
        };
        turn.cancel_cause = Some(cause);
        // A reader of events also needs the event that ends the turn.
        let leaves_soon = cause == CancelCause::Denied && self.view_printer.is_none();
        let grace = if leaves_soon { FAIL_MAX } else { STOP_MAX };
        turn.wait_until = Some(Instant::now() + grace);
        // The hub answers the open requests of a canceled turn.
        self.open_requests.clear();
        let params = json!({ "sessionId": self.target.session });
        self.conn.send_notification(Method::SessionCancel, &params)
    }

    fn denied_error(&self, turn: &RunningTurn) -> CommandError {
        let session_of_rule = turn.denied_by_rule.then(|| self.target.session.clone());
        CommandError::Denied { asks: turn.denied.clone(), session_of_rule }
    }

    pub(super) fn print_note(&self, line: &str) {
        if self.options.format == ConversationFormat::Text {
            self.output.print_note(line);
        }
    }
}
