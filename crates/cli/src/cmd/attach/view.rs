//! Prints an attached session and handles typed lines.

use super::super::log::print_frame;
use crate::{
    exit::CliExitCode,
    hub::{CommandConnection, ConnectionEvent, SessionRow},
    out::{
        CommandOutput, ConversationFormat, DIM, NoteDestination, TranscriptPrinter, ViewPrinter,
        paint,
    },
    report::CommandError,
    requests::PermissionPrompt,
};
use jackfield_events::{EventBody, TurnOutcome, UserAsked};
use jackfield_hub_client::{EventDecoder, HubResponse, parse_event};
use jackfield_protocol::{Frame, Kind, acp::Method};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    io::{self, IsTerminal as _},
};

/// An attached session.
pub(super) struct AttachView {
    conn: CommandConnection,
    output: CommandOutput,
    row: SessionRow,
    format: ConversationFormat,
    transcript: TranscriptPrinter,
    /// Prints the conversation as events or envelopes.
    view_printer: Option<(EventDecoder, ViewPrinter)>,
    /// The ids of this client's prompts that have no response yet.
    pending_prompts: BTreeSet<u64>,
    /// Requests that wait for the user; the first one is shown.
    open_requests: VecDeque<PermissionPrompt>,
    turn: AttachedTurn,
    /// Whether the failure of the last turn was printed.
    is_failure_printed: bool,
    /// The exit code of this client's last prompt that failed.
    last_error: Option<CliExitCode>,
    /// Stdin is closed: exit when all prompts are answered.
    is_stdin_closed: bool,
    /// Whether all earlier events were printed.
    is_live: bool,
}

/// The state of the running turn, of this client or another one.
#[derive(PartialEq, Eq)]
enum AttachedTurn {
    None,
    Running,
    /// This client canceled it.
    Canceled,
}

/// Whether to continue after an input.
#[derive(PartialEq, Eq)]
enum NextStep {
    Continue,
    Detach,
}

/// Whether a prompt waits for the running turn or replaces it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptKind {
    Queue,
    Steer,
}

impl AttachView {
    pub(super) fn new(
        conn: CommandConnection,
        output: &CommandOutput,
        row: SessionRow,
        format: ConversationFormat,
    ) -> AttachView {
        let notes = if format == ConversationFormat::Text {
            NoteDestination::Stderr
        } else {
            NoteDestination::Nowhere
        };
        let view_printer = ViewPrinter::new(output, format, &row.session_id);
        let is_working = matches!(row.state.as_str(), "working" | "asks");
        AttachView {
            conn,
            output: output.clone(),
            row,
            format,
            transcript: TranscriptPrinter::new(output, notes),
            view_printer: view_printer.map(|it| (EventDecoder::default(), it)),
            pending_prompts: BTreeSet::new(),
            open_requests: VecDeque::new(),
            turn: if is_working { AttachedTurn::Running } else { AttachedTurn::None },
            is_failure_printed: false,
            last_error: None,
            is_stdin_closed: false,
            is_live: false,
        }
    }

    /// Runs until the user detaches; `attach_id` is the request whose response follows the earlier events.
    pub(super) fn run(mut self, attach_id: u64) -> Result<(), CommandError> {
        self.print_note(&format!(
            "{} with {} in {}; /detach exits, /cancel cancels the turn",
            self.row.session_id, self.row.agent, self.row.cwd
        ));
        loop {
            let next = match self.conn.next_event(None)? {
                ConnectionEvent::Response(response) if response.id == attach_id => {
                    response.into_result()?;
                    self.go_live()?
                }
                ConnectionEvent::Response(response) => self.on_response(response)?,
                ConnectionEvent::Frame(frame) => {
                    self.on_frame(&frame)?;
                    NextStep::Continue
                }
                ConnectionEvent::StdinLine(line) => self.on_stdin_line(line?.trim())?,
                ConnectionEvent::StdinClosed => self.on_stdin_closed(),
                ConnectionEvent::Interrupt => self.on_interrupt()?,
                ConnectionEvent::LogEvent(_) | ConnectionEvent::TimedOut => NextStep::Continue,
                ConnectionEvent::Closed => {
                    self.transcript.finish()?;
                    let waited_for = "new events".to_owned();
                    return Err(CommandError::ConnectionClosed { waited_for });
                }
            };
            if next == NextStep::Detach {
                self.transcript.finish()?;
                return self.outcome();
            }
        }
    }

    /// On a terminal the user has seen the failures of prompts; a script gets the exit code of the last one.
    fn outcome(&self) -> Result<(), CommandError> {
        match self.last_error {
            Some(exit_code) if !io::stdin().is_terminal() => {
                Err(CommandError::AlreadyReported(exit_code))
            }
            _ => Ok(()),
        }
    }

    /// Called when all earlier events were printed: starts to read typed lines.
    fn go_live(&mut self) -> Result<NextStep, CommandError> {
        self.is_live = true;
        self.transcript.finish()?;
        self.show_question();
        self.conn.watch_stdin()?;
        Ok(NextStep::Continue)
    }

    fn on_frame(&mut self, frame: &Frame) -> Result<(), CommandError> {
        match (frame.kind(), frame.known_method()) {
            (Kind::Request, _) => self.on_request(frame)?,
            (Kind::Response, _) => {}
            (Kind::Notification, Some(Method::CancelRequest)) => {
                let request = frame.request_id().unwrap_or_default();
                self.open_requests.retain(|it| it.id != request);
                self.show_question();
            }
            (Kind::Notification, _) => {
                if let Some((decoder, printer)) = &mut self.view_printer
                    && let Some(event) = decoder.decode_frame(frame)
                {
                    printer.print_event(&event)?;
                }
                let event = parse_event(frame);
                // A permission request also arrives as a request, which is shown as a question; a form does not.
                match event.as_ref().map(|it| &it.body) {
                    Some(EventBody::Asked(asked)) if self.is_live && is_permission(asked) => {
                        self.transcript.store_request(asked);
                    }
                    _ => print_frame(&mut self.transcript, frame)?,
                }
                if let Some(event) = event {
                    self.on_event(&event.body)?;
                }
                if self.turn == AttachedTurn::None {
                    self.transcript.finish()?;
                }
            }
        }
        Ok(())
    }

    fn on_event(&mut self, body: &EventBody<Value>) -> Result<(), CommandError> {
        match body {
            EventBody::Prompted(_) => {
                self.turn = AttachedTurn::Running;
                self.is_failure_printed = false;
            }
            EventBody::Ended(ended) => {
                self.turn = AttachedTurn::None;
                self.is_failure_printed = self.format == ConversationFormat::Text
                    && !matches!(ended.outcome, TurnOutcome::Stopped(_));
                if self.format == ConversationFormat::Quiet && self.is_live {
                    self.output.print_text(self.transcript.final_message())?;
                    self.output.end_line()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn on_request(&mut self, frame: &Frame) -> Result<(), CommandError> {
        match PermissionPrompt::parse(frame, &mut |call| self.transcript.find_tool(call)) {
            None => self.conn.refuse_request(frame),
            Some(request) => {
                self.transcript.finish()?;
                self.open_requests.push_back(request);
                if self.open_requests.len() == 1 {
                    self.show_question();
                }
                Ok(())
            }
        }
    }

    /// Handles the response to a prompt. An error is printed unless an event has reported it.
    fn on_response(&mut self, response: HubResponse) -> Result<NextStep, CommandError> {
        if !self.pending_prompts.remove(&response.id) {
            return Ok(NextStep::Continue);
        }
        self.transcript.finish()?;
        if let Err(error) = check_prompt_result(response) {
            self.last_error = Some(error.exit_code());
            let is_printed = match error {
                CommandError::TurnStopped { .. } => self.format == ConversationFormat::Text,
                _ => self.is_failure_printed,
            };
            if !is_printed {
                self.output.print_error(&error);
            }
        }
        Ok(if self.is_stdin_closed && self.pending_prompts.is_empty() {
            NextStep::Detach
        } else {
            NextStep::Continue
        })
    }

    fn on_stdin_line(&mut self, line: &str) -> Result<NextStep, CommandError> {
        match line {
            "/detach" | "/quit" => return Ok(NextStep::Detach),
            "/cancel" => self.cancel_turn()?,
            "/steer" => self.print_note("type the new prompt after `/steer`: `/steer TEXT`"),
            _ if line.starts_with("/steer ") => {
                self.send_prompt(line["/steer ".len()..].trim_start(), PromptKind::Steer)?;
            }
            _ => {
                if let Some(request) = self.open_requests.front() {
                    let (answer, id) = (request.answer_for_input(line), request.id.clone());
                    if let Some(answer) = answer {
                        self.open_requests.pop_front();
                        self.conn.send_result(&id, &answer)?;
                    }
                    self.show_question();
                } else if !line.is_empty() {
                    self.send_prompt(line, PromptKind::Queue)?;
                }
            }
        }
        Ok(NextStep::Continue)
    }

    fn send_prompt(&mut self, line: &str, kind: PromptKind) -> Result<(), CommandError> {
        let blocks = json!([{ "type": "text", "text": line }]);
        let mut params = json!({ "sessionId": self.row.session_id, "prompt": blocks });
        if kind == PromptKind::Steer {
            params["_meta"] = json!({ "jackfield": { "steer": true } });
        }
        let id = self.conn.send_request(Method::SessionPrompt, &params)?;
        self.pending_prompts.insert(id);
        if kind == PromptKind::Steer && self.turn == AttachedTurn::Running {
            self.turn = AttachedTurn::Canceled;
            // The hub answers the open requests of a turn that it cancels.
            self.open_requests.clear();
            self.print_note("canceling the running turn");
        } else if self.turn != AttachedTurn::None {
            self.print_note("queued behind the running turn");
        }
        Ok(())
    }

    fn on_stdin_closed(&mut self) -> NextStep {
        self.is_stdin_closed = true;
        let has_pending = !self.pending_prompts.is_empty() && !io::stdin().is_terminal();
        if has_pending { NextStep::Continue } else { NextStep::Detach }
    }

    fn on_interrupt(&mut self) -> Result<NextStep, CommandError> {
        if self.turn != AttachedTurn::Running {
            return Ok(NextStep::Detach);
        }
        self.output.print_alert(&format!(
            "canceling: waiting for {} to stop; press Ctrl-C again to exit",
            self.row.agent
        ));
        self.cancel_turn()?;
        Ok(NextStep::Continue)
    }

    fn cancel_turn(&mut self) -> Result<(), CommandError> {
        if self.turn == AttachedTurn::Running {
            self.turn = AttachedTurn::Canceled;
        }
        let params = json!({ "sessionId": self.row.session_id });
        self.conn.send_notification(Method::SessionCancel, &params)
    }

    fn print_note(&self, line: &str) {
        if self.format == ConversationFormat::Text {
            self.output.print_note(&paint(DIM, line));
        }
    }

    fn show_question(&mut self) {
        if let (true, Some(request)) = (self.is_live, self.open_requests.front()) {
            self.conn.show_question(&request.format_question(&self.row.agent));
        }
    }
}

/// A canceled turn is not an error: a typed line or another client has canceled it.
fn check_prompt_result(response: HubResponse) -> Result<(), CommandError> {
    match response.into_result()?["stopReason"].as_str().unwrap_or_default() {
        "end_turn" | "cancelled" => Ok(()),
        reason => Err(CommandError::TurnStopped { reason: reason.to_owned() }),
    }
}

fn is_permission(asked: &UserAsked<Value>) -> bool {
    asked.frame["method"] == Method::SessionRequestPermission.name()
}
