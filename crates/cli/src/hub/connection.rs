//! One connection to the hub: requests, responses, notifications, and the input that arrives meanwhile.

use super::{
    BlockingSocket, EndpointAddress,
    event_sources::{EventSources, SourceEvent, TypedInput},
    storage::print_storage_notice,
};
use crate::{
    out::CommandOutput,
    report::{CommandError, ErrorResponse},
};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{FRAME_BYTES_MAX, Fault, Frame, Kind};
use serde_json::Value;
use std::{
    collections::{BTreeSet, VecDeque},
    io::{self, IsTerminal as _, Read as _, Write as _},
    net::Shutdown,
    sync::{Arc, mpsc::RecvTimeoutError},
    time::{Duration, Instant},
};

/// How long the hub itself may take to answer. It never waits for others, so a longer silence means that it hangs.
const HUB_SECONDS_MAX: u64 = 10;
/// How long a request about a session may take: a gateway searches for the session's host for 30 s.
const SESSION_HOST_SECONDS_MAX: u64 = 40;
/// After this time the user is told what the command waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// A line that is typed sooner after a question cannot be an answer to it.
const READING_TIME: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct HubConnection {
    socket: Arc<BlockingSocket>,
    sources: EventSources,
    /// Frames that arrived while the connection waited for a response.
    backlog: VecDeque<Frame>,
    next_id: u64,
    output: CommandOutput,
    /// Whether ACP frames are printed in both directions.
    prints_frames: bool,
    /// Ids of `_jackfield/…` requests. Their responses are not ACP and are not printed.
    control_requests: BTreeSet<u64>,
    /// Lines from stdin stay in their queue.
    is_stdin_paused: bool,
    /// A line that was typed before this time is ignored.
    ignore_input_before: Option<Instant>,
    /// False if the daemon reported that this process belongs to an agent.
    pub(super) is_operator: bool,
    /// How many frames the daemon has sent.
    received_count: u64,
}

/// The next thing that happened on a connection.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    Frame(Frame),
    /// A line from stdin, or the error that it was too long.
    StdinLine(Result<String, CommandError>),
    StdinClosed,
    Interrupt,
    /// The hub closed the connection.
    Closed,
    TimedOut,
}

/// What a request waits for, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseWait<'a> {
    pub(crate) waited_for: &'a str,
    pub(crate) limit: WaitLimit,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    /// The hub itself answers.
    Hub,
    /// The host of the session answers; in a fleet it has to be found first.
    SessionHost,
    /// An agent answers, within the limit that the caller may have set.
    Caller(Option<TimeLimit>),
    /// An agent answers, within the limit for its start.
    AgentStart(TimeLimit),
}

/// A deadline, and the length of the time that it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) at: Instant,
    pub(crate) seconds: u64,
}

impl TimeLimit {
    pub(crate) fn after(seconds: u64) -> TimeLimit {
        TimeLimit { at: Instant::now() + Duration::from_secs(seconds), seconds }
    }
}

impl HubConnection {
    pub(crate) fn new(
        socket: BlockingSocket,
        output: &CommandOutput,
    ) -> Result<HubConnection, CommandError> {
        let failed = |source| CommandError::local("cannot start reading from the daemon", source);
        let (sources, socket) = (EventSources::new(), Arc::new(socket));
        sources.read_frames(socket.clone()).map_err(failed)?;
        Ok(HubConnection {
            socket,
            sources,
            backlog: VecDeque::new(),
            next_id: 0,
            output: output.clone(),
            prints_frames: false,
            control_requests: BTreeSet::new(),
            is_stdin_paused: false,
            ignore_input_before: None,
            is_operator: true,
            received_count: 0,
        })
    }

    /// Whether this command may choose the agent's command and environment.
    pub(crate) fn is_operator(&self) -> bool {
        self.is_operator
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

    /// Delivers lines of stdin from now on.
    pub(crate) fn watch_stdin(&mut self) -> Result<(), CommandError> {
        let watched = self.sources.read_stdin();
        watched.map_err(|source| CommandError::local("cannot read stdin", source))
    }

    /// Sets whether lines of stdin stay in their queue for now.
    pub(crate) fn set_stdin_paused(&mut self, is_paused: bool) {
        self.is_stdin_paused = is_paused;
    }

    /// Prints a question. Lines that were typed before the user could read it do not answer it.
    pub(crate) fn show_question(&mut self, text: &str) {
        if io::stdin().is_terminal() {
            self.ignore_input_before = Some(Instant::now() + READING_TIME);
        }
        self.output.print_question(text);
    }

    pub(crate) fn print_warning(&self, text: &str) {
        self.output.print_alert(&format!("warning: {text}"));
    }

    /// Sends a request and returns its id. The response arrives through [`HubConnection::next_event`].
    pub(crate) fn send_request(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<u64, CommandError> {
        self.next_id += 1;
        if method.starts_with("_jackfield/") {
            self.control_requests.insert(self.next_id);
        }
        let id = self.next_id.to_string();
        self.send(&Frame::request(&id, method, &params.to_string()))?;
        Ok(self.next_id)
    }

    pub(crate) fn send_notification(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<(), CommandError> {
        self.send(&Frame::notification(method, &params.to_string()))
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

    /// Sends a request and waits for its response. Other frames are kept for [`HubConnection::next_event`].
    pub(crate) fn call_method(
        &mut self,
        method: &str,
        params: &Value,
        wait: ResponseWait<'_>,
    ) -> Result<Value, CommandError> {
        let id = self.send_request(method, params)?;
        let started_at = Instant::now();
        let limit = match wait.limit {
            WaitLimit::Hub => Some(started_at + Duration::from_secs(HUB_SECONDS_MAX)),
            WaitLimit::SessionHost => {
                Some(started_at + Duration::from_secs(SESSION_HOST_SECONDS_MAX))
            }
            WaitLimit::Caller(deadline) => deadline.map(|it| it.at),
            WaitLimit::AgentStart(deadline) => Some(deadline.at),
        };
        let mut notice_pending = true;
        loop {
            let notice_at =
                (started_at + NOTICE_DELAY).min(limit.unwrap_or(started_at + NOTICE_DELAY));
            let waited_for = || wait.waited_for.to_owned();
            match self.receive(if notice_pending { Some(notice_at) } else { limit }, false)? {
                ConnectionEvent::Frame(frame) if is_response_to(&frame, id) => {
                    return parse_response(&frame);
                }
                ConnectionEvent::Frame(frame) => self.backlog.push_back(frame),
                ConnectionEvent::Closed => {
                    return Err(CommandError::ConnectionClosed { waited_for: waited_for() });
                }
                ConnectionEvent::Interrupt => {
                    return Err(CommandError::Interrupted { waited_for: waited_for() });
                }
                ConnectionEvent::TimedOut
                    if notice_pending && limit.is_none_or(|it| notice_at < it) =>
                {
                    notice_pending = false;
                    self.output.print_note(&format!("waiting for {}…", wait.waited_for));
                }
                ConnectionEvent::TimedOut => return Err(self.timeout_error(wait)),
                ConnectionEvent::StdinLine(_) | ConnectionEvent::StdinClosed => {
                    unreachable!("stdin was not asked for")
                }
            }
        }
    }

    /// Waits for the next event, at most until `until`.
    pub(crate) fn next_event(
        &mut self,
        until: Option<Instant>,
    ) -> Result<ConnectionEvent, CommandError> {
        match self.backlog.pop_front() {
            Some(frame) => Ok(ConnectionEvent::Frame(frame)),
            None => self.receive(until, !self.is_stdin_paused),
        }
    }

    fn receive(
        &mut self,
        until: Option<Instant>,
        wants_stdin: bool,
    ) -> Result<ConnectionEvent, CommandError> {
        loop {
            if self.sources.take_interrupt() {
                return Ok(ConnectionEvent::Interrupt);
            }
            match wants_stdin.then(|| self.sources.take_typed()).flatten() {
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
            return Ok(match event {
                Ok(SourceEvent::Frame(frame)) if frame.is_method(Method::ControlStorage) => {
                    print_storage_notice(&self.output, &frame);
                    continue;
                }
                Ok(SourceEvent::Frame(frame)) => {
                    self.received_count += 1;
                    self.print_received(&frame)?;
                    ConnectionEvent::Frame(frame)
                }
                Ok(SourceEvent::Wakeup) => continue,
                Ok(SourceEvent::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    ConnectionEvent::Closed
                }
                Err(RecvTimeoutError::Timeout) => ConnectionEvent::TimedOut,
            });
        }
    }

    fn timeout_error(&self, wait: ResponseWait<'_>) -> CommandError {
        let waited_for = wait.waited_for.to_owned();
        match wait.limit {
            WaitLimit::Hub | WaitLimit::Caller(None) => {
                // A daemon that has answered something does not hang: it only has no answer to this request.
                let pid = (self.received_count == 0).then(|| self.peer_pid()).flatten();
                CommandError::NoReply { waited_for, seconds: HUB_SECONDS_MAX, pid }
            }
            WaitLimit::SessionHost => {
                CommandError::NoReply { waited_for, seconds: SESSION_HOST_SECONDS_MAX, pid: None }
            }
            WaitLimit::Caller(Some(TimeLimit { seconds, .. })) => {
                CommandError::TimedOut { seconds, waited_for }
            }
            WaitLimit::AgentStart(TimeLimit { seconds, .. }) => {
                CommandError::AgentStartTimedOut { seconds, waited_for }
            }
        }
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
        let is_control = frame.method().is_some_and(|it| it.starts_with("_jackfield/"));
        if self.prints_frames && !is_control {
            self.output.print_raw(&format!("{}\n", frame.text()))
        } else {
            Ok(())
        }
    }

    fn print_received(&self, frame: &Frame) -> Result<(), CommandError> {
        let request_id =
            (frame.kind() == Kind::Response).then(|| frame.id()?.parse().ok()).flatten();
        let is_control = request_id.is_some_and(|it| self.control_requests.contains(&it));
        if is_control { Ok(()) } else { self.print_frame(frame) }
    }
}

impl Drop for HubConnection {
    fn drop(&mut self) {
        // The reader thread has a reference to the socket and would keep the connection open.
        let _already_closed = self.socket.shutdown(Shutdown::Both);
    }
}

/// The pid of the process at the other end, if it runs on this machine.
pub(super) fn peer_pid(socket: &BlockingSocket) -> Option<i32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// Whether a frame is the response to the request with this id.
pub(crate) fn is_response_to(frame: &Frame, id: u64) -> bool {
    frame.kind() == Kind::Response && frame.id() == Some(id.to_string().as_str())
}

/// The result of a response, or its error.
pub(crate) fn parse_response(frame: &Frame) -> Result<Value, CommandError> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    match (frame.result(), frame.error()) {
        (Some(result), _) => Ok(value(result)),
        (None, error) => {
            Err(CommandError::Response(ErrorResponse::new(value(error.unwrap_or("null")))))
        }
    }
}

/// Sends one request on a new socket and waits for its response. No byte after the response is read, so the socket can
/// be handed on.
pub(crate) fn send_single_request(
    socket: &BlockingSocket,
    method: &str,
    params: &Value,
) -> Result<Value, CommandError> {
    send_single_request_within(socket, method, params, HUB_SECONDS_MAX)
}

/// [`send_single_request`] with another limit.
pub(crate) fn send_single_request_within(
    socket: &BlockingSocket,
    method: &str,
    params: &Value,
    seconds: u64,
) -> Result<Value, CommandError> {
    let waited_for = || format!("the response to `{method}`");
    let io_failure = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            CommandError::NoReply { waited_for: waited_for(), seconds, pid: peer_pid(socket) }
        }
        _ => CommandError::ConnectionClosed { waited_for: waited_for() },
    };
    set_read_timeout(socket, Some(Duration::from_secs(seconds))).map_err(io_failure)?;
    let request = Frame::request("0", method, &params.to_string());
    let mut connection = socket;
    connection.write_all(format!("{}\n", request.text()).as_bytes()).map_err(io_failure)?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" {
        connection.read_exact(&mut byte).map_err(io_failure)?;
        line.push(byte[0]);
    }
    set_read_timeout(socket, None).map_err(io_failure)?;
    let response = Frame::parse(line.into());
    parse_response(
        &response
            .map_err(|error| CommandError::local("the daemon sent an invalid frame", error))?,
    )
}

fn set_read_timeout(socket: &BlockingSocket, limit: Option<Duration>) -> io::Result<()> {
    match socket {
        BlockingSocket::Unix(stream) => stream.set_read_timeout(limit),
        BlockingSocket::Tcp(stream) => stream.set_read_timeout(limit),
    }
}
