//! `jackfield host`: a host of a fleet leaves, or takes part again.

use crate::{app::Desk, env, fleet::At, out::count, report::Failure};
use clap::{Args, Subcommand};
use jackfield_fleet::{FleetConnection, HostDirectory, HostInstance, HostRequest, HostResponse};
use std::time::Duration;

/// How long a host may take to say that it has understood.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Between two looks at how many sessions are left.
const LOOK: Duration = Duration::from_millis(300);

/// Empty a host of a fleet, or let it work again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield host drain build-7 --fleet tls://n1:4222
  $ jackfield host resume build-7")]
pub(crate) struct Host {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Move every session elsewhere: idle ones at once, busy ones when their turn is over
    #[command(after_help = "Examples:
  $ jackfield host drain build-7 --fleet tls://n1:4222
  $ jackfield host drain build-7 --timeout 60 && ssh build-7 systemctl stop jackfield")]
    Drain(Drain),
    /// Let a drained host take sessions again
    #[command(after_help = "Examples:
  $ jackfield host resume build-7 --fleet tls://n1:4222")]
    Resume(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// The name of the host
    #[arg(value_name = "HOST")]
    host: String,

    #[command(flatten)]
    at: At,
}

#[derive(Debug, Args)]
struct Drain {
    #[command(flatten)]
    named: Named,

    /// Give up waiting after so many seconds; the host goes on
    #[arg(long, env = env::TIMEOUT, hide_env_values = true, value_name = "SECS", default_value_t = 600)]
    timeout: u64,
}

impl Host {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Drain(it) => it.run(desk),
            Command::Resume(Named { host, at }) => {
                at.with(async |link, directory| tell(link, directory, &host, false).await)?;
                desk.out.note(&format!("`{host}` takes sessions again"));
                Ok(())
            }
        }
    }
}

impl Drain {
    fn run(self, desk: &Desk) -> Result<(), Failure> {
        let (Named { host, at }, seconds) = (self.named, self.timeout);
        at.with(async |link, directory| {
            let emptied = async {
                let mut before = None;
                loop {
                    let left = tell(link, directory, &host, true).await?;
                    if left == 0 {
                        return Ok(());
                    }
                    if before.replace(left) != Some(left) {
                        desk.out.note(&format!("{} still on `{host}`", count(left, "session")));
                    }
                    tokio::time::sleep(LOOK).await;
                }
            };
            let waited = tokio::time::timeout(Duration::from_secs(seconds), emptied).await;
            let waited_for = format!("the sessions of host `{host}` to move");
            waited.unwrap_or(Err(Failure::TimedOut { seconds, waited_for }))
        })?;
        desk.out.note(&format!("`{host}` is empty: it may be stopped"));
        Ok(())
    }
}

/// Tells a host to drain, or to resume; how many sessions it still has.
async fn tell(
    link: &FleetConnection,
    directory: &HostDirectory,
    host: &str,
    drain: bool,
) -> Result<usize, Failure> {
    let living: Vec<HostInstance> =
        directory.hosts().borrow().iter().map(|it| it.host.clone()).collect();
    let Some(name) = living.iter().find(|it| &*it.name == host) else {
        let known: Vec<_> = living.iter().map(|it| it.name.to_string()).collect();
        let hint = format!("these live: {}", known.join(", "));
        return Err(Failure::usage(format!("no host named `{host}` lives"), hint));
    };
    let failed = |why: String| Failure::local(format!("host `{host}` did not answer"), why);
    match link.send_request(name, &HostRequest::SetDraining(drain), ANSWER_MAX).await {
        Ok(HostResponse::SessionsLeft(left)) => Ok(left as usize),
        Ok(other) => Err(failed(format!("{other:?}"))),
        Err(error) => Err(failed(error.to_string())),
    }
}
