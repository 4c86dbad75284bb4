//! `jackfield fleet`: commands for operators of a fleet. `status.rs` shows its state, `audit.rs` what clients did,
//! `certs.rs` creates its certificates.

mod audit;
mod certs;
mod status;

use crate::{
    app::Desk,
    env,
    fleet::At,
    hub::sessions,
    out::{Cell, DIM, Format, NAME, Table, count, document},
    report::Failure,
};
use audit::Audit;
use certs::CreateCerts;
use clap::{Args, Subcommand};
use jackfield_fleet::{FleetConnection, HostDirectory, HostEntry};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Look at a fleet: its servers, its hosts, its sessions, and who did what
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet status --fleet tls://n1:4222
  $ jackfield fleet hosts --format json | jq '.hosts[] | select(.draining)'
  $ jackfield fleet sessions")]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Whether the servers answer, and how much there is to do
    #[command(after_help = "Examples:
  $ jackfield fleet status --fleet tls://n1:4222
  $ JACKFIELD_FLEET=tls://n1:4222 jackfield fleet status --format json")]
    Status(Look),
    /// List the hosts that live
    #[command(after_help = "Examples:
  $ jackfield fleet hosts --fleet tls://n1:4222
  $ jackfield fleet hosts --format json | jq '.hosts[] | select(.draining)'")]
    Hosts(Look),
    /// Count the sessions of each host, as the gateway on this machine knows them
    #[command(after_help = "Examples:
  $ jackfield fleet sessions
  $ jackfield fleet sessions --format json | jq '.hosts | map_values(length)'")]
    Sessions(Sessions),
    Audit(Audit),
    Certs(CreateCerts),
}

#[derive(Debug, Args)]
struct Look {
    #[command(flatten)]
    at: At,

    /// How to print it; `quiet` prints names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
struct Sessions {
    /// How to print it; `quiet` prints names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Fleet {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Status(look) => look.status(desk),
            Command::Hosts(look) => look.hosts(desk),
            Command::Sessions(it) => it.run(desk),
            Command::Audit(it) => it.run(desk),
            Command::Certs(it) => it.run(desk),
        }
    }
}

impl Look {
    fn hosts(self, desk: &Desk) -> Result<(), Failure> {
        let format = self.format;
        let hosts = self.at.with(async |link, directory| Ok(called(link, directory).await))?;
        match format {
            Format::Json => {
                let told = |(entry, answers): &(HostEntry, bool)| {
                    let mut told = json!(entry);
                    told["answers"] = json!(answers);
                    told
                };
                let hosts: Vec<Value> = hosts.iter().map(told).collect();
                document(&desk.out, &json!({ "hosts": hosts }))
            }
            Format::Quiet => {
                let mut here = hosts.iter().filter(|(_, answers)| *answers);
                here.try_for_each(|(it, _)| desk.out.line(&it.host.name))
            }
            Format::Text => table(desk, &hosts),
        }
    }
}

/// The hosts that are listed, and whether they answer: one that has died is listed for a while.
async fn called(link: &FleetConnection, directory: &HostDirectory) -> Vec<(HostEntry, bool)> {
    let hosts = directory.hosts().borrow().clone();
    let answers = link.ping_hosts(&hosts).await;
    hosts.iter().cloned().zip(answers).collect()
}

fn table(desk: &Desk, hosts: &[(HostEntry, bool)]) -> Result<(), Failure> {
    if hosts.is_empty() {
        desk.out.note("no host lives: start one with `jackfield serve --fleet … --role host`");
        return Ok(());
    }
    let mut table = Table::new(&[
        "HOST", "STATE", "SESSIONS", "AGENTS", "VERSION", "LABELS", "SHARES", "KNOWS",
    ]);
    for (host, answers) in hosts {
        let state = match (answers, host.draining) {
            (false, _) => "away",
            (true, true) => "draining",
            (true, false) => "ready",
        };
        let labels: Vec<_> =
            host.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let shared: Vec<_> = host.shared.iter().map(|it| it.display().to_string()).collect();
        table.row(vec![
            Cell::styled(host.host.name.to_string(), NAME),
            Cell::new(state.to_owned()),
            Cell::new(host.sessions.to_string()),
            Cell::new(host.live.to_string()),
            Cell::new(host.version.clone()),
            Cell::styled(labels.join(","), DIM),
            Cell::styled(shared.join(","), DIM),
            Cell::new(count(host.agents.len(), "agent")),
        ]);
    }
    table.print(&desk.out)
}

impl Sessions {
    fn run(self, desk: &Desk) -> Result<(), Failure> {
        let Some(mut conn) = desk.dial.talk_if_running("fleet sessions")? else {
            return Err(Failure::NoDaemon {
                hint: "start a gateway: `jackfield serve --fleet NATS_URL --role gateway`",
            });
        };
        let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in sessions(&mut conn)? {
            let host = row.raw.get("host").and_then(|it| it.as_str()).unwrap_or("nobody");
            hosts.entry(host.to_owned()).or_default().push(row.session_id);
        }
        match self.format {
            Format::Json => document(&desk.out, &json!({ "hosts": hosts })),
            Format::Quiet => hosts.keys().try_for_each(|it| desk.out.line(it)),
            Format::Text => {
                let mut table = Table::new(&["HOST", "SESSIONS"]);
                for (host, sessions) in &hosts {
                    table.row(vec![
                        Cell::styled(host.clone(), NAME),
                        Cell::new(sessions.len().to_string()),
                    ]);
                }
                table.print(&desk.out)
            }
        }
    }
}
