//! The client side of the control protocol: reaching a daemon, talking to it, waiting for it.

mod conn;
mod facts;
mod hearing;
mod hello;
mod host;
mod operator;
mod rows;
mod sources;
mod start;
mod storage;

pub(crate) use conn::{Conn, Deadline, Heard, Until, Wait, answer_of, is_answer, result_of};
pub(crate) use facts::{Part, facts, facts_of};
pub(crate) use hearing::Hearing;
pub(crate) use hello::{AgentChoice, directory, initialize, working_directory};
pub(crate) use host::{Hosted, guard, not_booted, options, settings};
pub(crate) use jackfield_clients::{Address, Socket};
pub(crate) use rows::{Row, find, sessions, unique_chars};
pub(crate) use start::ALREADY_RUNS;
pub(crate) use storage::{lost_records_warning, storage_warning};

use crate::{out::Out, report::Failure};
use jackfield_clients::{DialError, dial_blocking};
use jackfield_daemon::{Paths, token};
use serde_json::json;
use std::{
    thread,
    time::{Duration, Instant},
};

/// How to reach the daemon.
#[derive(Debug, Clone)]
pub(crate) struct Dial {
    /// The one the caller named; no other is started in its place.
    named: Option<Address>,
    paths: Paths,
    out: Out,
}

impl Dial {
    pub(crate) fn new(named: Option<Address>, out: &Out) -> Dial {
        Dial { named, paths: Paths::from_env(), out: out.clone() }
    }

    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(crate) fn address(&self) -> Address {
        self.named.clone().unwrap_or_else(|| Address::Unix(self.paths.socket()))
    }

    /// A connection to a running daemon, `None` if there is none.
    pub(crate) fn running(&self) -> Result<Option<Socket>, Failure> {
        let address = self.address();
        let token = match address {
            Address::Tcp(_) => Some(token::read(&self.paths)).transpose(),
            _ => Ok(None),
        };
        match dial_blocking(&address, token.as_ref().ok().and_then(Option::as_ref)) {
            Ok(socket) => Ok(Some(socket)),
            Err(error @ DialError::NeedsToken { .. }) => {
                Err(token.map_or_else(Failure::Token, |_| Failure::Unreachable(error)))
            }
            Err(error) if error.is_absent() && self.named.is_none() => Ok(None),
            Err(error) => Err(Failure::Unreachable(error)),
        }
    }

    /// Whether anybody takes a connection there.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.running(), Ok(Some(_)))
    }

    /// A connection to the daemon, which is started if there is none and the caller named none.
    pub(crate) fn open(&self) -> Result<Socket, Failure> {
        let Some(socket) = self.running()? else { return start::start(&self.paths, &self.out) };
        // One that is about to end still takes connections; one that has a client stays.
        match answer_of(&socket, "_jackfield/status", &json!({})) {
            Ok(_) => Ok(socket),
            Err(failure) if self.named.is_none() && is_the_end(&failure) => {
                self.wait_until_gone()?;
                start::start(&self.paths, &self.out)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Returns when nobody takes a connection there any more.
    pub(crate) fn wait_until_gone(&self) -> Result<(), Failure> {
        let limit = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        while matches!(self.running(), Ok(Some(_))) {
            if limit < Instant::now() {
                return Err(Failure::Silent {
                    waited_for: "it to stop".into(),
                    seconds: STOP_SECONDS_MAX,
                });
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
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
