//! `jackfield listen`: opens, closes and lists addresses of the running daemon.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::{EndpointAddress, UNENCRYPTED_HINT},
    out::{DIM, OutputFormat, paint, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Let the running daemon listen on another address
///
/// Starts the daemon if none runs, and returns when clients can connect. The daemon does not exit when
/// it is idle as long as it has such an address. Without an address, all addresses are listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield listen http://127.0.0.1:7456
  $ jackfield listen
  $ jackfield listen --remove http://127.0.0.1:7456")]
pub(crate) struct ListenCommand {
    /// `http://127.0.0.1:PORT`, `https://…`, `tcp://127.0.0.1:PORT` or `unix:///path`; port 0 is a free one
    #[arg(value_name = "URL", value_parser = EndpointAddress::resolve)]
    address: Option<EndpointAddress>,

    /// Close this address, which was added before
    #[arg(
        long,
        env = env::REMOVE,
        hide_env_values = true,
        value_name = "URL",
        value_parser = EndpointAddress::resolve,
        conflicts_with = "address"
    )]
    remove: Option<EndpointAddress>,

    /// Permit an unencrypted address that other machines can reach; they read the token and all messages
    #[arg(long, env = env::INSECURE, hide_env_values = true, value_parser = env::flag_parser())]
    insecure: bool,

    /// How to print the addresses
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ListenCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let text = |it: &Option<EndpointAddress>| it.as_ref().map(ToString::to_string);
        let params = json!({ "add": text(&self.address), "remove": text(&self.remove),
            "insecure": self.insecure });
        let mut conn = context.daemon.connect("listen")?;
        let result = conn
            .call_hub(Method::ControlListen, &params, "the daemon to listen")
            .map_err(|error| self.add_hint(error))?;
        let changed = result["changed"].as_str();
        match (self.format, changed) {
            (OutputFormat::Json, _) => print_json_document(&context.output, &result),
            (OutputFormat::Text, Some(address)) if self.remove.is_some() => {
                context.output.print_note(&format!("no longer listening on {address}"));
                Ok(())
            }
            (OutputFormat::Text, Some(address)) => {
                context.output.print_note(&format!("listening on {address}"));
                Ok(())
            }
            (OutputFormat::Quiet, Some(address)) => context.output.print_line(address),
            (OutputFormat::Text | OutputFormat::Quiet, None) => {
                let listeners = result["listeners"].as_array().cloned().unwrap_or_default();
                listeners.iter().try_for_each(|it| self.print_listener(context, it))
            }
        }
    }

    /// Adds the way out if the address is refused because other machines can reach it.
    fn add_hint(&self, error: CommandError) -> CommandError {
        let is_exposed = self.address.as_ref().is_some_and(|it| it.require_private().is_err());
        if !is_exposed || !matches!(error, CommandError::Response(_)) {
            return error;
        }
        let (what, hint) = ("the daemon refused".to_owned(), UNENCRYPTED_HINT.to_owned());
        CommandError::Local { what, source: Box::new(error), exit: CliExitCode::Usage, hint }
    }

    fn print_listener(&self, context: &CommandContext, row: &Value) -> Result<(), CommandError> {
        let address = row["address"].as_str().unwrap_or_default();
        let note = if self.format == OutputFormat::Text && row["added"] == true {
            paint(DIM, "  (added; close it with --remove)".to_owned())
        } else {
            String::new()
        };
        context.output.print_line(&format!("{address}{note}"))
    }
}
