//! `jackfield host`: drains a host of a fleet, or lets it accept sessions again.

use crate::{
    context::CommandContext, env, fleet::FleetAddressArgs, plain_text::format_count,
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_fleet::{FleetConnection, HostDirectory, HostInstance, HostRequest, HostResponse};
use std::time::Duration;

/// How long a host may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the number of remaining sessions is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Drain a host of a fleet, or let it accept sessions again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield host drain build-7 --fleet tls://n1:4222
  $ jackfield host resume build-7")]
pub(crate) struct HostCommand {
    #[command(subcommand)]
    command: HostSubcommand,
}

#[derive(Debug, Subcommand)]
enum HostSubcommand {
    /// Move all sessions to other hosts: idle ones at once, others after their turn
    #[command(after_help = "Examples:
  $ jackfield host drain build-7 --fleet tls://n1:4222
  $ jackfield host drain build-7 --timeout 60 && ssh build-7 systemctl stop jackfield")]
    Drain(DrainHostCommand),
    /// Let a drained host accept sessions again
    #[command(after_help = "Examples:
  $ jackfield host resume build-7 --fleet tls://n1:4222")]
    Resume(HostArgs),
}

#[derive(Debug, Args)]
struct HostArgs {
    /// The name of the host
    #[arg(value_name = "HOST")]
    host: String,

    #[command(flatten)]
    fleet: FleetAddressArgs,
}

#[derive(Debug, Args)]
struct DrainHostCommand {
    #[command(flatten)]
    target: HostArgs,

    /// Stop waiting after this many seconds; the host continues to drain
    #[arg(long = "timeout", env = env::DRAIN_TIMEOUT, hide_env_values = true, value_name = "SECS", default_value_t = 600)]
    drain_timeout: u64,
}

impl HostCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            HostSubcommand::Drain(it) => it.run(context),
            HostSubcommand::Resume(HostArgs { host, fleet }) => {
                fleet.run_connected(async |connection, directory| {
                    set_draining(connection, directory, &host, false).await
                })?;
                context.output.print_note(&format!("`{host}` accepts sessions again"));
                Ok(())
            }
        }
    }
}

impl DrainHostCommand {
    fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let (HostArgs { host, fleet }, seconds) = (self.target, self.drain_timeout);
        fleet.run_connected(async |connection, directory| {
            let drained = async {
                let mut last_count = None;
                loop {
                    let left = set_draining(connection, directory, &host, true).await?;
                    if left == 0 {
                        return Ok(());
                    }
                    if last_count.replace(left) != Some(left) {
                        context.output.print_note(&format!(
                            "{} still on `{host}`",
                            format_count(left, "session")
                        ));
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            let waited = tokio::time::timeout(Duration::from_secs(seconds), drained).await;
            let waited_for = format!("the sessions of host `{host}` to move");
            waited.unwrap_or(Err(CommandError::TimedOut { seconds, waited_for }))
        })?;
        context.output.print_note(&format!("`{host}` has no sessions and can be stopped"));
        Ok(())
    }
}

/// Sets whether a host drains, and returns how many sessions it still has.
async fn set_draining(
    connection: &FleetConnection,
    directory: &HostDirectory,
    host: &str,
    is_draining: bool,
) -> Result<usize, CommandError> {
    let hosts: Vec<HostInstance> =
        directory.hosts().borrow().iter().map(|it| it.host.clone()).collect();
    let Some(name) = hosts.iter().find(|it| &*it.name == host) else {
        let known: Vec<_> = hosts.iter().map(|it| it.name.to_string()).collect();
        let hint = format!("the live hosts are: {}", known.join(", "));
        return Err(CommandError::usage(format!("no live host `{host}`"), hint));
    };
    let failed =
        |why: String| CommandError::local(format!("host `{host}` did not drain or resume"), why);
    match connection
        .send_request(name, &HostRequest::SetDraining(is_draining), RESPONSE_TIMEOUT)
        .await
    {
        Ok(HostResponse::SessionsLeft(left)) => Ok(left as usize),
        Ok(other) => Err(failed(format!("{other:?}"))),
        Err(error) => Err(failed(error.to_string())),
    }
}
