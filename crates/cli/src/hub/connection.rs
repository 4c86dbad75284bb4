//! One connection to the hub: requests, responses, notifications, and the input that arrives meanwhile.

use super::{
    BlockingSocket, EndpointAddress,
    bridge_link::{LocalBridge, parse_link_notice},
    event_sources::{EventSources, SourceEvent, TypedInput},
    single_request::peer_pid,
    storage::print_storage_notice,
};
use crate::{out::CommandOutput, report::CommandError};
use jackfield_hub_client::{EventLine, HubMessage, HubResponse, PendingRequests};
use jackfield_protocol::acp::{Method, MethodStability};
use jackfield_protocol::{FRAME_BYTES_MAX, Fault, Frame};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _, Write as _},
    net::Shutdown,
    sync::{Arc, mpsc::RecvTimeoutError},
    time::{Duration, Instant},
};

/// A line that is typed sooner after a question cannot be an answer to it.
const READING_TIME: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct CommandConnection {
    socket: Arc<BlockingSocket>,
    sources: EventSources,
    requests: PendingRequests,
    /// Messages that arrived while the connection waited for a response.
    backlog: VecDeque<ConnectionEvent>,
    output: CommandOutput,
    /// Whether ACP frames are printed in both directions.
    prints_frames: bool,
    stdin: StdinUse,
    /// A line that was typed before this time is ignored.
    ignore_input_before: Option<Instant>,
    /// False if the daemon reported that this process belongs to an agent.
    is_operator: bool,
    /// Whether the daemon has sent a message.
    has_received: bool,
    /// The bridge between this connection and the daemon, if there is one.
    bridge: Option<LocalBridge>,
}

/// The next thing that happened on a connection.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    /// A notification, or a request to the client.
    Frame(Frame),
    Response(HubResponse),
    /// An event of a log that the command reads.
    LogEvent(EventLine),
    /// A line from stdin, or the error that it was too long.
    StdinLine(Result<String, CommandError>),
    StdinClosed,
    Interrupt,
    /// The hub closed the connection.
    Closed,
    TimedOut,
}

/// Whether typed lines are events, or stay in their queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdinUse {
    Read,
    Keep,
}

impl CommandConnection {
    pub(crate) fn new(
        socket: BlockingSocket,
        output: &CommandOutput,
    ) -> Result<CommandConnection, CommandError> {
        let failed = |source| CommandError::local("cannot start reading from the daemon", source);
        let (sources, socket) = (EventSources::new(), Arc::new(socket));
        sources.read_messages(socket.clone()).map_err(failed)?;
        Ok(CommandConnection {
            socket,
            sources,
            requests: PendingRequests::default(),
            backlog: VecDeque::new(),
            output: output.clone(),
            prints_frames: false,
            stdin: StdinUse::Read,
            ignore_input_before: None,
            is_operator: true,
            has_received: false,
            bridge: None,
        })
    }

    pub(super) fn with_bridge(mut self, bridge: LocalBridge) -> CommandConnection {
        self.bridge = Some(bridge);
        self
    }

    /// Whether this command may choose the agent's command and environment.
    pub(crate) fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// Stores what the result of `initialize` reports about this process.
    pub(super) fn set_initialized(&mut self, result: &Value) {
        self.is_operator = result["_meta"]["jackfield"]["operator"] != false;
    }

    /// Whether the daemon has sent a message.
    pub(super) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Prints every ACP frame from now on, in both directions.
    pub(crate) fn start_printing_frames(&mut self) {
        self.prints_frames = true;
    }

    /// Stops printing frames.
    pub(crate) fn stop_printing_frames(&mut self) {
        self.prints_frames = false;
    }

    /// The socket file that the daemon listens on, if the connection uses one.
    pub(crate) fn peer_address(&self) -> Option<EndpointAddress> {
        let BlockingSocket::Unix(stream) = &*self.socket else { return None };
        Some(EndpointAddress::Unix(stream.peer_addr().ok()?.as_pathname()?.to_owned()))
    }

    /// The pid of the daemon, if it runs on this machine.
    pub(crate) fn peer_pid(&self) -> Option<i32> {
        peer_pid(&self.socket)
    }

    /// Delivers SIGINT and SIGTERM as [`ConnectionEvent::Interrupt`] from now on.
    pub(crate) fn watch_signals(&self) -> Result<(), CommandError> {
        let watched = self.sources.watch_signals();
        watched.map_err(|source| CommandError::local("cannot handle signals", source))
    }

    /// Fails with [`CommandError::StdoutClosed`] from now on when the reader of stdout closes it.
    pub(crate) fn watch_stdout(&self) -> Result<(), CommandError> {
        let watched = self.sources.watch_stdout();
        watched.map_err(|source| CommandError::local("cannot watch stdout", source))
    }

    /// Delivers lines of stdin from now on.
    pub(crate) fn watch_stdin(&mut self) -> Result<(), CommandError> {
        let watched = self.sources.read_stdin();
        watched.map_err(|source| CommandError::local("cannot read stdin", source))
    }

    /// Sets whether lines of stdin stay in their queue for now.
    pub(crate) fn set_stdin_paused(&mut self, is_paused: bool) {
        self.stdin = if is_paused { StdinUse::Keep } else { StdinUse::Read };
    }

    /// Prints a question. Lines that were typed before the user could read it do not answer it.
    pub(crate) fn show_question(&mut self, text: &str) {
        if io::stdin().is_terminal() {
            self.ignore_input_before = Some(Instant::now() + READING_TIME);
        }
        self.output.print_question(text);
    }

    pub(super) fn print_note(&self, text: &str) {
        self.output.print_note(text);
    }

    pub(crate) fn print_warning(&self, text: &str) {
        self.output.print_alert(&format!("warning: {text}"));
    }

    /// Sends a request and returns its id. The response arrives through [`CommandConnection::next_event`].
    pub(crate) fn send_request(
        &mut self,
        method: Method,
        params: &Value,
    ) -> Result<u64, CommandError> {
        let (id, frame) = self.requests.add(method, params);
        self.send(&frame)?;
        Ok(id)
    }

    pub(crate) fn send_notification(
        &mut self,
        method: Method,
        params: &Value,
    ) -> Result<(), CommandError> {
        self.send(&Frame::notification(method.name(), &params.to_string()))
    }

    /// Responds to a request of the hub; `id` is its JSON text.
    pub(crate) fn send_result(&mut self, id: &str, result: &Value) -> Result<(), CommandError> {
        self.send(&Frame::result_for(id, &result.to_string()))
    }

    /// Responds to a request that this client does not support.
    pub(crate) fn refuse_request(&mut self, request: &Frame) -> Result<(), CommandError> {
        let method = request.method().unwrap_or_default().into_owned();
        let fault = Fault::MethodNotFound { method };
        self.send(&Frame::error_for(request.id().unwrap_or("null"), &fault))
    }

    /// Waits for the next event, at most until `until`.
    pub(crate) fn next_event(
        &mut self,
        until: Option<Instant>,
    ) -> Result<ConnectionEvent, CommandError> {
        match self.backlog.pop_front() {
            Some(event) => Ok(event),
            None => self.receive(until, self.stdin),
        }
    }

    /// Keeps an event for [`CommandConnection::next_event`].
    pub(super) fn defer_event(&mut self, event: ConnectionEvent) {
        self.backlog.push_back(event);
    }

    /// Waits for the next event that was not deferred.
    pub(super) fn receive(
        &mut self,
        until: Option<Instant>,
        stdin: StdinUse,
    ) -> Result<ConnectionEvent, CommandError> {
        loop {
            if self.sources.take_interrupt() {
                return Ok(ConnectionEvent::Interrupt);
            }
            if self.sources.take_stdout_closed() {
                return Err(CommandError::StdoutClosed);
            }
            let typed = (stdin == StdinUse::Read).then(|| self.sources.take_typed()).flatten();
            match typed {
                Some(TypedInput::Line(_, at))
                    if self.ignore_input_before.is_some_and(|it| at < it) =>
                {
                    self.output.print_alert(
                        "this line was typed before the question was shown; type it again",
                    );
                    continue;
                }
                Some(TypedInput::Line(line, _)) => return Ok(ConnectionEvent::StdinLine(Ok(line))),
                Some(TypedInput::TooLong) => {
                    return Ok(ConnectionEvent::StdinLine(Err(CommandError::MessageTooLong)));
                }
                Some(TypedInput::End) => return Ok(ConnectionEvent::StdinClosed),
                None => {}
            }
            let events = &self.sources.events;
            let event = match until {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(SourceEvent::Message(message)) => {
                    if let Some(event) = self.on_message(message)? {
                        return Ok(event);
                    }
                }
                Ok(SourceEvent::Wakeup) => {}
                Ok(SourceEvent::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(ConnectionEvent::Closed);
                }
                Err(RecvTimeoutError::Timeout) => return Ok(ConnectionEvent::TimedOut),
            }
        }
    }

    /// Prints and matches a message; `None` if it was handled here.
    fn on_message(&mut self, message: HubMessage) -> Result<Option<ConnectionEvent>, CommandError> {
        if let HubMessage::Frame(frame) = &message
            && frame.is_method(Method::ControlStorage)
        {
            print_storage_notice(&self.output, frame);
            return Ok(None);
        }
        if let HubMessage::Frame(frame) = &message
            && let Some(notice) = parse_link_notice(frame)
        {
            self.output.print_note(notice);
            return Ok(None);
        }
        self.has_received = true;
        Ok(match message {
            HubMessage::Event(event) => Some(ConnectionEvent::LogEvent(event)),
            HubMessage::Frame(frame) => {
                self.print_frame(&frame)?;
                Some(ConnectionEvent::Frame(frame))
            }
            HubMessage::Response(response) => {
                let Some(method) = self.requests.remove(&response) else { return Ok(None) };
                // Responses to `_jackfield/…` requests are not ACP.
                if method.row().stability != MethodStability::Ours {
                    self.print_frame(response.frame())?;
                }
                Some(ConnectionEvent::Response(response))
            }
        })
    }

    fn send(&mut self, frame: &Frame) -> Result<(), CommandError> {
        // The hub would skip the line, and the response would never come.
        if FRAME_BYTES_MAX < frame.bytes().len() {
            return Err(CommandError::MessageTooLong);
        }
        self.print_frame(frame)?;
        let mut line = frame.bytes().to_vec();
        line.push(b'\n');
        let waited_for = || "the daemon to read a message".to_owned();
        (&*self.socket)
            .write_all(&line)
            .map_err(|_| CommandError::ConnectionClosed { waited_for: waited_for() })
    }

    fn print_frame(&self, frame: &Frame) -> Result<(), CommandError> {
        if self.prints_frames && !frame.is_control() {
            self.output.print_raw(&format!("{}\n", frame.text()))
        } else {
            Ok(())
        }
    }
}

impl Drop for CommandConnection {
    fn drop(&mut self) {
        // The reader thread has a reference to the socket and would keep the connection open.
        let _already_closed = self.socket.shutdown(Shutdown::Both);
        self.bridge.iter().for_each(LocalBridge::finish);
    }
}
