//! `jackfield fleet`: commands for operators of a fleet. `status.rs` shows its state, `audit.rs` prints the audit log,
//! `certs.rs` creates the certificates.

mod audit;
mod certs;
mod status;

use crate::{
    context::CommandContext,
    env,
    fleet::FleetAddressArgs,
    hub::list_sessions,
    out::{DIM, NAME, OutputFormat, TableCell, TextTable, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use audit::FleetAuditCommand;
use certs::CreateCertsCommand;
use clap::{Args, Subcommand};
use jackfield_fleet::{FleetConnection, HostDirectory, HostEntry};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Inspect a fleet: its servers, hosts, sessions and audit log
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet status --fleet tls://n1:4222
  $ jackfield fleet hosts --format json | jq '.hosts[] | select(.draining)'
  $ jackfield fleet sessions")]
pub(crate) struct FleetCommand {
    #[command(subcommand)]
    command: FleetSubcommand,
}

#[derive(Debug, Subcommand)]
enum FleetSubcommand {
    /// Show the health of the servers and the load
    #[command(after_help = "Examples:
  $ jackfield fleet status --fleet tls://n1:4222
  $ JACKFIELD_FLEET=tls://n1:4222 jackfield fleet status --format json")]
    Status(FleetQueryArgs),
    /// List the live hosts
    #[command(after_help = "Examples:
  $ jackfield fleet hosts --fleet tls://n1:4222
  $ jackfield fleet hosts --format json | jq '.hosts[] | select(.draining)'")]
    Hosts(FleetQueryArgs),
    /// Count the sessions of each host, according to the gateway on this machine
    #[command(after_help = "Examples:
  $ jackfield fleet sessions
  $ jackfield fleet sessions --format json | jq '.hosts | map_values(length)'")]
    Sessions(FleetSessionsCommand),
    Audit(FleetAuditCommand),
    Certs(CreateCertsCommand),
}

#[derive(Debug, Args)]
struct FleetQueryArgs {
    #[command(flatten)]
    fleet: FleetAddressArgs,

    /// How to print the result; `quiet` prints names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Debug, Args)]
struct FleetSessionsCommand {
    /// How to print the result; `quiet` prints names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl FleetCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            FleetSubcommand::Status(query) => query.print_status(context),
            FleetSubcommand::Hosts(query) => query.print_hosts(context),
            FleetSubcommand::Sessions(it) => it.run(context),
            FleetSubcommand::Audit(it) => it.run(context),
            FleetSubcommand::Certs(it) => it.run(context),
        }
    }
}

impl FleetQueryArgs {
    fn print_hosts(self, context: &CommandContext) -> Result<(), CommandError> {
        let format = self.format;
        let hosts = self.fleet.run_connected(async |connection, directory| {
            Ok(ping_hosts(connection, directory).await)
        })?;
        match format {
            OutputFormat::Json => {
                let to_json = |(entry, answers): &(HostEntry, bool)| {
                    let mut json = json!(entry);
                    json["answers"] = json!(answers);
                    json
                };
                let hosts: Vec<Value> = hosts.iter().map(to_json).collect();
                print_json_document(&context.output, &json!({ "hosts": hosts }))
            }
            OutputFormat::Quiet => {
                let mut answering = hosts.iter().filter(|(_, answers)| *answers);
                answering.try_for_each(|(it, _)| context.output.print_line(&it.host.name))
            }
            OutputFormat::Text => print_host_table(context, &hosts),
        }
    }
}

/// The listed hosts, and whether each answers: a dead host stays listed for a while.
async fn ping_hosts(
    connection: &FleetConnection,
    directory: &HostDirectory,
) -> Vec<(HostEntry, bool)> {
    let hosts = directory.hosts().borrow().clone();
    let answers = connection.ping_hosts(&hosts).await;
    hosts.iter().cloned().zip(answers).collect()
}

fn print_host_table(
    context: &CommandContext,
    hosts: &[(HostEntry, bool)],
) -> Result<(), CommandError> {
    if hosts.is_empty() {
        context
            .output
            .print_note("no live hosts; start one with `jackfield serve --fleet … --role host`");
        return Ok(());
    }
    let mut table = TextTable::new(&[
        "HOST",
        "STATE",
        "SESSIONS",
        "AGENTS",
        "VERSION",
        "LABELS",
        "SHARED",
        "INSTALLED",
    ]);
    for (host, answers) in hosts {
        let state = match (answers, host.draining) {
            (false, _) => "unreachable",
            (true, true) => "draining",
            (true, false) => "ready",
        };
        let labels: Vec<_> =
            host.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let shared: Vec<_> = host.shared.iter().map(|it| it.display().to_string()).collect();
        table.add_row(vec![
            TableCell::styled(host.host.name.to_string(), NAME),
            TableCell::new(state.to_owned()),
            TableCell::new(host.sessions.to_string()),
            TableCell::new(host.live.to_string()),
            TableCell::new(host.version.clone()),
            TableCell::styled(labels.join(","), DIM),
            TableCell::styled(shared.join(","), DIM),
            TableCell::new(format_count(host.agents.len(), "agent")),
        ]);
    }
    table.print(&context.output)
}

impl FleetSessionsCommand {
    fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let Some(mut conn) = context.daemon.connect_if_running("fleet sessions")? else {
            return Err(CommandError::NoDaemon {
                hint: "start a gateway: `jackfield serve --fleet NATS_URL --role gateway`",
            });
        };
        let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in list_sessions(&mut conn)? {
            let host = row.raw.get("host").and_then(|it| it.as_str()).unwrap_or("nobody");
            hosts.entry(host.to_owned()).or_default().push(row.session_id);
        }
        match self.format {
            OutputFormat::Json => print_json_document(&context.output, &json!({ "hosts": hosts })),
            OutputFormat::Quiet => hosts.keys().try_for_each(|it| context.output.print_line(it)),
            OutputFormat::Text => {
                let mut table = TextTable::new(&["HOST", "SESSIONS"]);
                for (host, sessions) in &hosts {
                    table.add_row(vec![
                        TableCell::styled(host.clone(), NAME),
                        TableCell::new(sessions.len().to_string()),
                    ]);
                }
                table.print(&context.output)
            }
        }
    }
}
