//! `jackfield token`: prints or replaces the token for clients over HTTP and TCP.

use crate::{context::CommandContext, env, report::CommandError};
use clap::Args;
use jackfield_daemon::token;

/// Print the token with which clients authenticate over HTTP and TCP
///
/// The daemon creates it at its first start and stores it in the state directory, where only you can
/// read it. A client with this token can do everything that you can do with Jackfield.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield token
  $ jackfield token --rotate
  $ curl -H \"Authorization: Bearer $(jackfield token)\" http://127.0.0.1:7456/api/sessions")]
pub(crate) struct TokenCommand {
    /// Replace the token, and print the new one
    ///
    /// A running daemon then accepts only the new token, for new connections and for each HTTP request.
    /// Open connections stay open: `jackfield daemon stop` closes them.
    #[arg(long, env = env::ROTATE, hide_env_values = true, value_parser = env::flag_parser())]
    rotate: bool,
}

impl TokenCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("token")?;
        let paths = context.daemon.paths();
        let token = if self.rotate { token::rotate(paths) } else { token::read(paths) };
        match token {
            Ok(token) => context.output.print_line(token.reveal()),
            Err(error) if error.is_absent() => {
                let hint =
                    "the daemon creates the token at its first start: `jackfield daemon start`";
                Err(CommandError::NoDaemon { hint })
            }
            Err(error) => Err(CommandError::Token(error)),
        }
    }
}
