//! `jackfield token`: what a client over HTTP or TCP shows to be let in.

use crate::{app::Desk, report::Failure};
use clap::Args;
use jackfield_clients::{Token as Secret, TokenError};
use std::io;

/// Print the token that lets clients in over HTTP and TCP
///
/// The daemon makes it at its first start and keeps it in the runtime directory, where only you can
/// read it. Whoever has it can do all that you can do with Jackfield.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield token
  $ curl -H \"Authorization: Bearer $(jackfield token)\" http://127.0.0.1:7456/api/sessions")]
pub(crate) struct Token {}

pub(crate) fn run(desk: &Desk) -> Result<(), Failure> {
    desk.dial.require_operator("token")?;
    match Secret::read(&desk.dial.paths().token()) {
        Ok(token) => desk.out.line(token.reveal()),
        Err(TokenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let hint = "there is a token once a daemon has run: `jackfield daemon start`";
            Err(Failure::NoDaemon { hint })
        }
        Err(error) => Err(Failure::Token(error)),
    }
}
