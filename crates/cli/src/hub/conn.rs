//! One connection to the hub: requests and their answers, and everything else in between.

use super::{
    BlockingSocket, EndpointAddress,
    sources::{Happening, Sources, Typed},
    storage::show_storage,
};
use crate::{
    out::Out,
    report::{Answer, Failure},
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

/// How long the hub itself may take to answer: it never waits, so this is a hub that hangs.
const HUB_SECONDS_MAX: u64 = 10;
/// How long a request about a session may take: a gateway looks for the host of the session for 30 s.
const OWNER_SECONDS_MAX: u64 = 40;
/// From when on a wait is worth a word.
const PATIENCE: Duration = Duration::from_secs(1);
/// Nobody reads a question and answers it in less.
const READING_TIME: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct Conn {
    socket: Arc<BlockingSocket>,
    sources: Sources,
    /// Heard while an answer was waited for.
    backlog: VecDeque<Frame>,
    next_id: u64,
    out: Out,
    /// Print what is said and heard, as it is.
    tapped: bool,
    /// Requests that are not ACP; neither are their answers.
    control: BTreeSet<u64>,
    /// What is typed waits where it is.
    typing_waits: bool,
    /// A line that was typed earlier than this is ignored.
    answers_from: Option<Instant>,
    /// The daemon has not said that we run below an agent.
    pub(super) is_operator: bool,
    /// How many messages the daemon has sent.
    heard_count: u64,
}

/// What came next.
#[derive(Debug)]
pub(crate) enum Heard {
    Frame(Frame),
    /// A typed line, or why it is none.
    Typed(Result<String, Failure>),
    TypedEnd,
    Interrupt,
    HubGone,
    TimedOut,
}

/// What is waited for, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait<'a> {
    pub(crate) what: &'a str,
    pub(crate) until: Until,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// The hub answers by itself.
    Hub,
    /// The hub answers by itself, in a fleet when the host of the session was found.
    Owner,
    /// An agent has to answer; the caller may have set a limit.
    Deadline(Option<Deadline>),
    /// An agent has to answer, within the limit for a start.
    Started(Deadline),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) seconds: u64,
}

impl Deadline {
    pub(crate) fn after(seconds: u64) -> Deadline {
        Deadline { at: Instant::now() + Duration::from_secs(seconds), seconds }
    }
}

impl Conn {
    pub(crate) fn new(socket: BlockingSocket, out: &Out) -> Result<Conn, Failure> {
        let failed = |source| Failure::local("cannot listen to the daemon", source);
        let (sources, socket) = (Sources::new(), Arc::new(socket));
        sources.listen(socket.clone()).map_err(failed)?;
        Ok(Conn {
            socket,
            sources,
            backlog: VecDeque::new(),
            next_id: 0,
            out: out.clone(),
            tapped: false,
            control: BTreeSet::new(),
            typing_waits: false,
            answers_from: None,
            is_operator: true,
            heard_count: 0,
        })
    }

    /// Whether we may say which agent is started, and how.
    pub(crate) fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// From now on every ACP message of this connection is printed, both ways.
    pub(crate) fn tap(&mut self) {
        self.tapped = true;
    }

    /// Enough printed.
    pub(crate) fn untap(&mut self) {
        self.tapped = false;
    }

    /// The socket file that the daemon listens on, if it is one.
    pub(crate) fn peer_address(&self) -> Option<EndpointAddress> {
        let BlockingSocket::Unix(stream) = &*self.socket else { return None };
        Some(EndpointAddress::Unix(stream.peer_addr().ok()?.as_pathname()?.to_owned()))
    }

    /// The daemon's process, if it is on this machine.
    pub(crate) fn peer_pid(&self) -> Option<i32> {
        peer_pid(&self.socket)
    }

    pub(crate) fn heed_signals(&self) -> Result<(), Failure> {
        let listening = self.sources.listen_to_signals();
        listening.map_err(|source| Failure::local("cannot listen to signals", source))
    }

    pub(crate) fn heed_typing(&mut self) -> Result<(), Failure> {
        let listening = self.sources.listen_to_typing();
        listening.map_err(|source| Failure::local("cannot read stdin", source))
    }

    /// Whether what is typed is left where it is for now.
    pub(crate) fn let_typing_wait(&mut self, waits: bool) {
        self.typing_waits = waits;
    }

    /// Asks the person at the terminal. A line that was typed before the question could be read does not answer it.
    pub(crate) fn show_question(&mut self, text: &str) {
        if io::stdin().is_terminal() {
            self.answers_from = Some(Instant::now() + READING_TIME);
        }
        self.out.question(text);
    }

    /// Tells the person at the terminal something that matters.
    pub(crate) fn warn(&self, text: &str) {
        self.out.alert(&format!("warning: {text}"));
    }

    /// Sends a request; its answer is heard like everything else. Returns the id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<u64, Failure> {
        self.next_id += 1;
        if method.starts_with("_jackfield/") {
            self.control.insert(self.next_id);
        }
        let id = self.next_id.to_string();
        self.send(&Frame::request(&id, method, &params.to_string()))?;
        Ok(self.next_id)
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        self.send(&Frame::notification(method, &params.to_string()))
    }

    /// Answers a request of the hub; `id` is its JSON text.
    pub(crate) fn answer(&mut self, id: &str, result: &Value) -> Result<(), Failure> {
        self.send(&Frame::result_for(id, &result.to_string()))
    }

    /// Refuses a request that we have no use for.
    pub(crate) fn refuse(&mut self, request: &Frame) -> Result<(), Failure> {
        let method = request.method().unwrap_or_default().into_owned();
        let fault = Fault::MethodNotFound { method };
        self.send(&Frame::error_for(request.id().unwrap_or("null"), &fault))
    }

    /// Sends a request and waits for its answer; what else comes is kept for [`Conn::next`].
    pub(crate) fn call(
        &mut self,
        method: &str,
        params: &Value,
        wait: Wait<'_>,
    ) -> Result<Value, Failure> {
        let id = self.ask(method, params)?;
        let began = Instant::now();
        let limit = match wait.until {
            Until::Hub => Some(began + Duration::from_secs(HUB_SECONDS_MAX)),
            Until::Owner => Some(began + Duration::from_secs(OWNER_SECONDS_MAX)),
            Until::Deadline(deadline) => deadline.map(|it| it.at),
            Until::Started(deadline) => Some(deadline.at),
        };
        let mut patient = true;
        loop {
            let soon = (began + PATIENCE).min(limit.unwrap_or(began + PATIENCE));
            let waited_for = || wait.what.to_owned();
            match self.hear(if patient { Some(soon) } else { limit }, false)? {
                Heard::Frame(frame) if is_answer(&frame, id) => return result_of(&frame),
                Heard::Frame(frame) => self.backlog.push_back(frame),
                Heard::HubGone => return Err(Failure::HubGone { waited_for: waited_for() }),
                Heard::Interrupt => return Err(Failure::Interrupted { waited_for: waited_for() }),
                Heard::TimedOut if patient && limit.is_none_or(|it| soon < it) => {
                    patient = false;
                    self.out.note(&format!("waiting for {}…", wait.what));
                }
                Heard::TimedOut => return Err(self.timed_out(wait)),
                Heard::Typed(_) | Heard::TypedEnd => unreachable!("nothing typed is wanted here"),
            }
        }
    }

    /// What comes next.
    pub(crate) fn next(&mut self, until: Option<Instant>) -> Result<Heard, Failure> {
        match self.backlog.pop_front() {
            Some(frame) => Ok(Heard::Frame(frame)),
            None => self.hear(until, !self.typing_waits),
        }
    }

    fn hear(&mut self, until: Option<Instant>, typing: bool) -> Result<Heard, Failure> {
        loop {
            if self.sources.take_interrupt() {
                return Ok(Heard::Interrupt);
            }
            match typing.then(|| self.sources.take_typed()).flatten() {
                Some(Typed::Line(_, at)) if self.answers_from.is_some_and(|it| at < it) => {
                    self.out
                        .alert("this line came before the question could be read: type it again");
                    continue;
                }
                Some(Typed::Line(line, _)) => return Ok(Heard::Typed(Ok(line))),
                Some(Typed::TooLong) => return Ok(Heard::Typed(Err(Failure::TooLong))),
                Some(Typed::End) => return Ok(Heard::TypedEnd),
                None => {}
            }
            let happenings = &self.sources.happenings;
            let happening = match until {
                None => happenings.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    happenings.recv_timeout(until.saturating_duration_since(Instant::now()))
                }
            };
            return Ok(match happening {
                Ok(Happening::Frame(frame)) if frame.is_method(Method::ControlStorage) => {
                    show_storage(&self.out, &frame);
                    continue;
                }
                Ok(Happening::Frame(frame)) => {
                    self.heard_count += 1;
                    self.print_heard(&frame)?;
                    Heard::Frame(frame)
                }
                Ok(Happening::Woken) => continue,
                Ok(Happening::HubGone) | Err(RecvTimeoutError::Disconnected) => Heard::HubGone,
                Err(RecvTimeoutError::Timeout) => Heard::TimedOut,
            });
        }
    }

    fn timed_out(&self, wait: Wait<'_>) -> Failure {
        let waited_for = wait.what.to_owned();
        match wait.until {
            Until::Hub | Until::Deadline(None) => {
                // A daemon that has answered something does not hang: it has no answer to this one.
                let pid = (self.heard_count == 0).then(|| self.peer_pid()).flatten();
                Failure::Silent { waited_for, seconds: HUB_SECONDS_MAX, pid }
            }
            Until::Owner => Failure::Silent { waited_for, seconds: OWNER_SECONDS_MAX, pid: None },
            Until::Deadline(Some(Deadline { seconds, .. })) => {
                Failure::TimedOut { seconds, waited_for }
            }
            Until::Started(Deadline { seconds, .. }) => Failure::SlowStart { seconds, waited_for },
        }
    }

    fn send(&mut self, frame: &Frame) -> Result<(), Failure> {
        // The hub would skip it, and its answer would be waited for.
        if FRAME_BYTES_MAX < frame.bytes().len() {
            return Err(Failure::TooLong);
        }
        self.print(frame)?;
        let mut line = frame.bytes().to_vec();
        line.push(b'\n');
        let waited_for = || "the daemon to take a message".to_owned();
        (&*self.socket).write_all(&line).map_err(|_| Failure::HubGone { waited_for: waited_for() })
    }

    fn print(&self, frame: &Frame) -> Result<(), Failure> {
        let control = frame.method().is_some_and(|it| it.starts_with("_jackfield/"));
        if self.tapped && !control {
            self.out.exact(&format!("{}\n", frame.text()))
        } else {
            Ok(())
        }
    }

    fn print_heard(&self, frame: &Frame) -> Result<(), Failure> {
        let answered = (frame.kind() == Kind::Response).then(|| frame.id()?.parse().ok()).flatten();
        let control = answered.is_some_and(|it| self.control.contains(&it));
        if control { Ok(()) } else { self.print(frame) }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // The reader thread holds it too, and would keep the connection open.
        let _ended = self.socket.shutdown(Shutdown::Both);
    }
}

/// The process that listens at the other end, if it is on this machine.
pub(super) fn peer_pid(socket: &BlockingSocket) -> Option<i32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// Whether a frame answers the request with this id.
pub(crate) fn is_answer(frame: &Frame, id: u64) -> bool {
    frame.kind() == Kind::Response && frame.id() == Some(id.to_string().as_str())
}

/// The result of an answer, or the failure that it is.
pub(crate) fn result_of(frame: &Frame) -> Result<Value, Failure> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    match (frame.result(), frame.error()) {
        (Some(result), _) => Ok(value(result)),
        (None, error) => Err(Failure::Answer(Answer::new(value(error.unwrap_or("null"))))),
    }
}

/// One request and its answer on a connection on which nothing else is said yet. Not a byte behind
/// the answer is read: whoever uses the connection next gets them all.
pub(crate) fn answer_of(
    socket: &BlockingSocket,
    method: &str,
    params: &Value,
) -> Result<Value, Failure> {
    answer_within(socket, method, params, HUB_SECONDS_MAX)
}

/// [`answer_of`] with another limit.
pub(crate) fn answer_within(
    socket: &BlockingSocket,
    method: &str,
    params: &Value,
    seconds: u64,
) -> Result<Value, Failure> {
    let waited_for = || format!("the answer to `{method}`");
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Failure::Silent { waited_for: waited_for(), seconds, pid: peer_pid(socket) }
        }
        _ => Failure::HubGone { waited_for: waited_for() },
    };
    limit_reads(socket, Some(Duration::from_secs(seconds))).map_err(gone)?;
    let request = Frame::request("0", method, &params.to_string());
    let mut connection = socket;
    connection.write_all(format!("{}\n", request.text()).as_bytes()).map_err(gone)?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" {
        connection.read_exact(&mut byte).map_err(gone)?;
        line.push(byte[0]);
    }
    limit_reads(socket, None).map_err(gone)?;
    let answer = Frame::parse(line.into());
    result_of(&answer.map_err(|error| Failure::local("the daemon does not speak ACP", error))?)
}

fn limit_reads(socket: &BlockingSocket, limit: Option<Duration>) -> io::Result<()> {
    match socket {
        BlockingSocket::Unix(stream) => stream.set_read_timeout(limit),
        BlockingSocket::Tcp(stream) => stream.set_read_timeout(limit),
    }
}
