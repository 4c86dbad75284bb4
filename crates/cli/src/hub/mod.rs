//! The client side of the control protocol: reaching a daemon, talking to it, waiting for it.

mod conn;
mod hello;
mod rows;
mod sources;
mod start;

pub(crate) use conn::{Conn, Deadline, Heard, Until, Wait, is_answer, result_of};
pub(crate) use hello::{AgentChoice, initialize, working_directory};
pub(crate) use jackfield_clients::{Address, Socket};
pub(crate) use rows::{Row, find, sessions, unique_chars};

use crate::{out::Out, report::Failure};
use jackfield_clients::{Token, dial_blocking};
use jackfield_daemon::Paths;

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
            Address::Tcp(_) => Some(Token::read(&self.paths.token()).map_err(Failure::Token)?),
            Address::Unix(_) | Address::Stdio => None,
        };
        match dial_blocking(&address, token.as_ref()) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if error.is_absent() && self.named.is_none() => Ok(None),
            Err(error) => Err(Failure::Unreachable(error)),
        }
    }

    /// A connection to the daemon, which is started if there is none and the caller named none.
    pub(crate) fn open(&self) -> Result<Socket, Failure> {
        match self.running()? {
            Some(socket) => Ok(socket),
            None => start::start(&self.paths, &self.out),
        }
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

/// `initialize` on a connection without an agent: the hub answers by itself.
pub(crate) fn greet(conn: &mut Conn, command: &str, aware: bool) -> Result<(), Failure> {
    let wait = Wait { what: "the daemon to answer", until: Until::Hub };
    initialize(conn, command, aware, wait).map(drop)
}
