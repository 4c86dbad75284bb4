//! The client side of the control protocol: reaching a daemon, talking to it, waiting for it.

mod conn;
mod facts;
mod hearing;
mod hello;
mod host;
mod locate;
mod operator;
mod rows;
mod sources;
mod start;
mod storage;

pub(crate) use conn::{
    Conn, Deadline, Heard, Until, Wait, answer_of, answer_within, is_answer, result_of,
};
pub(crate) use facts::{Part, facts, facts_of, warn_if_incomplete};
pub(crate) use hearing::{Hearing, event_of};
pub(crate) use hello::{AgentChoice, directory, initialize, working_directory};
pub(crate) use host::{Hosted, guard, not_booted, options, settings};
pub(crate) use jackfield_transport::{BlockingSocket, EndpointAddress};
pub(crate) use operator::check_mark;
pub(crate) use rows::{Row, find, sessions, unique_chars};
pub(crate) use start::ALREADY_RUNS;
pub(crate) use storage::{lost_records_warning, storage_warning};

use crate::{out::Out, report::Failure};
use jackfield_daemon::{LockHolder, Paths, token};
use jackfield_protocol::acp::Method;
use jackfield_transport::{CONNECT_TIMEOUT, DialError, dial_daemon_blocking};
use serde_json::json;
use std::{
    thread,
    time::{Duration, Instant},
};

/// How to reach the daemon.
#[derive(Debug, Clone)]
pub(crate) struct Dial {
    /// The one the caller named; no other is started in its place.
    named: Option<EndpointAddress>,
    paths: Paths,
    out: Out,
}

impl Dial {
    pub(crate) fn new(named: Option<EndpointAddress>, out: &Out) -> Dial {
        Dial { named, paths: Paths::from_env(), out: out.clone() }
    }

    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(crate) fn address(&self) -> EndpointAddress {
        self.named.clone().unwrap_or_else(|| EndpointAddress::Unix(self.paths.socket()))
    }

    /// Whether the caller named an address.
    pub(crate) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// A connection to a running daemon; `None` if none runs. A daemon that has the lock of the state
    /// directory and cannot be reached is an error.
    pub(crate) fn running(&self) -> Result<Option<BlockingSocket>, Failure> {
        match self.connect()? {
            None if self.named.is_none() => self.connect_to_holder(),
            connected => Ok(connected),
        }
    }

    /// A connection to the address, `None` if nothing listens there and the caller did not name it.
    fn connect(&self) -> Result<Option<BlockingSocket>, Failure> {
        let address = self.address();
        let token = match address {
            EndpointAddress::Tcp(_) => Some(token::read(&self.paths)).transpose(),
            _ => Ok(None),
        };
        match dial_daemon_blocking(&address, token.as_ref().ok().and_then(Option::as_ref)) {
            Ok(socket) => Ok(Some(socket)),
            Err(error @ DialError::NeedsToken { .. }) => {
                Err(token.map_or_else(Failure::Token, |_| Failure::Unreachable(error)))
            }
            Err(error) if error.is_absent() && self.named.is_none() => Ok(None),
            Err(error) => Err(self.unreachable(error)),
        }
    }

    /// A daemon that has not accepted its clients for so long that no more fit in its queue hangs.
    fn unreachable(&self, error: DialError) -> Failure {
        if self.named.is_some() || !error.is_full() {
            return Failure::Unreachable(error);
        }
        let pid = self.find_holder().ok().flatten().and_then(|it| it.pid);
        let pid = pid.and_then(|it| it.try_into().ok());
        let waited_for = "it to accept the connection".to_owned();
        Failure::Silent { waited_for, seconds: CONNECT_TIMEOUT.as_secs(), pid }
    }

    /// Whether a daemon runs: it listens, or has the lock of the state directory.
    pub(crate) fn is_running(&self) -> bool {
        let listens = match self.connect() {
            Ok(socket) => socket.is_some(),
            Err(failure) => matches!(failure, Failure::Silent { .. }),
        };
        listens || (self.named.is_none() && matches!(self.find_holder(), Ok(Some(_))))
    }

    /// A connection to the daemon, which is started if there is none and the caller named none.
    pub(crate) fn open(&self) -> Result<BlockingSocket, Failure> {
        let limit = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        loop {
            let Some(socket) = self.running()? else { return start::start(&self.paths, &self.out) };
            // One that is about to end still accepts connections; one that has a client stays.
            match answer_of(&socket, Method::ControlStatus.name(), &json!({})) {
                Ok(_) => return Ok(socket),
                Err(failure) if self.named.is_some() || !is_the_end(&failure) => {
                    return Err(failure);
                }
                Err(failure) if limit < Instant::now() => return Err(failure),
                Err(_) => thread::sleep(LOOK_AGAIN),
            }
        }
    }

    /// Returns when the daemon has ended that had the lock before it was asked to stop; if none had it, when
    /// nothing listens on the address. Where a service manager listens for the daemon, only the lock shows
    /// that it has ended.
    pub(crate) fn wait_until_gone(&self, holder: Option<&LockHolder>) -> Result<(), Failure> {
        let limit = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        let is_there = || match holder {
            Some(holder) => Ok(self.find_holder()?.as_ref() == Some(holder)),
            None => Ok(self.is_running()),
        };
        while is_there()? {
            if limit < Instant::now() {
                let pid = holder.and_then(|it| it.pid?.try_into().ok());
                let waited_for = "it to stop".to_owned();
                return Err(Failure::Silent { waited_for, seconds: STOP_SECONDS_MAX, pid });
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// The pid of the daemon. A service manager can listen for it, so the lock counts more than the socket.
    pub(crate) fn pid_of(&self, conn: &Conn) -> Option<i32> {
        let holder = if self.named.is_some() { None } else { self.find_holder().ok().flatten() };
        holder.and_then(|it| it.pid?.try_into().ok()).or_else(|| conn.peer_pid())
    }

    /// The same, ready to talk about sessions.
    pub(crate) fn talk(&self, command: &str) -> Result<Conn, Failure> {
        let mut conn = Conn::new(self.open()?, &self.out)?;
        greet(&mut conn, command, true)?;
        Ok(conn)
    }

    /// The same with a running daemon only.
    pub(crate) fn talk_if_running(&self, command: &str) -> Result<Option<Conn>, Failure> {
        let Some(socket) = self.running()? else { return Ok(None) };
        let mut conn = Conn::new(socket, &self.out)?;
        greet(&mut conn, command, true)?;
        Ok(Some(conn))
    }
}

/// Running turns get two seconds to end, agents a few more.
pub(crate) const STOP_SECONDS_MAX: u64 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

fn is_the_end(failure: &Failure) -> bool {
    match failure {
        Failure::HubGone { .. } => true,
        Failure::Answer(answer) => answer.name() == "stopping",
        _ => false,
    }
}

/// `initialize` on a connection without an agent: the hub answers by itself.
pub(crate) fn greet(conn: &mut Conn, command: &str, aware: bool) -> Result<(), Failure> {
    let wait = Wait { what: "the daemon to answer", until: Until::Hub };
    initialize(conn, command, aware, wait).map(drop)
}
