//! `jackfield token`: what a client over HTTP or TCP shows to be let in.

use crate::{app::Desk, env, report::Failure};
use clap::Args;
use jackfield_daemon::token;

/// Print the token that lets clients in over HTTP and TCP
///
/// The daemon makes it at its first start and keeps it in the state directory, where only you can
/// read it. Whoever has it can do all that you can do with Jackfield.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield token
  $ jackfield token --rotate
  $ curl -H \"Authorization: Bearer $(jackfield token)\" http://127.0.0.1:7456/api/sessions")]
pub(crate) struct Token {
    /// Replace the token, and print the new one
    ///
    /// A running daemon takes only the new one from then on, for new connections and for each request
    /// over HTTP. Connections that are open stay open: `jackfield daemon stop` ends them.
    #[arg(long, env = env::ROTATE, hide_env_values = true, value_parser = env::flag())]
    rotate: bool,
}

impl Token {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        desk.dial.require_operator("token")?;
        let paths = desk.dial.paths();
        let token = if self.rotate { token::rotate(paths) } else { token::read(paths) };
        match token {
            Ok(token) => desk.out.line(token.reveal()),
            Err(error) if error.is_absent() => {
                let hint = "there is a token once a daemon has run: `jackfield daemon start`";
                Err(Failure::NoDaemon { hint })
            }
            Err(error) => Err(Failure::Token(error)),
        }
    }
}
