//! `jackfield fleet status`: shows the health of the servers and the load of the fleet.

use super::{FleetQueryArgs, ping_hosts};
use crate::{
    context::CommandContext,
    out::{OutputFormat, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use jackfield_fleet::{ClusterHealth, HostEntry};
use serde_json::json;
use std::fmt::Write as _;

impl FleetQueryArgs {
    pub(super) fn print_status(self, context: &CommandContext) -> Result<(), CommandError> {
        let format = self.format;
        let (server, health, hosts) = self.fleet.run_connected(async |connection, directory| {
            let health = connection.read_health().await;
            let health = health
                .map_err(|it| CommandError::local("cannot read the health of the servers", it))?;
            Ok((connection.server_info(), health, ping_hosts(connection, directory).await))
        })?;
        let (hosts, unreachable): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|(_, answers)| *answers);
        let hosts: Vec<HostEntry> = hosts.into_iter().map(|(it, _)| it).collect();
        let sum = |each: fn(&HostEntry) -> u32| hosts.iter().map(each).sum::<u32>();
        let draining = hosts.iter().filter(|it| it.draining).count();
        let (sessions, live) = (sum(|it| it.sessions), sum(|it| it.live));
        match format {
            OutputFormat::Json => {
                let status = json!({
                    "server": { "name": server.name, "version": server.version },
                    "healthy": health.is_healthy(), "cell": health,
                    "hosts": hosts.len(), "draining": draining, "away": unreachable.len(),
                    "sessions": sessions, "agents": live,
                });
                print_json_document(&context.output, &status)
            }
            OutputFormat::Quiet => context.output.print_line(&hosts.len().to_string()),
            OutputFormat::Text => {
                context
                    .output
                    .print_line(&format!("NATS {}, server `{}`", server.version, server.name))?;
                for line in describe_servers(&health) {
                    context.output.print_line(&line)?;
                }
                let hosts = format_count(hosts.len(), "host");
                let draining =
                    if draining == 0 { String::new() } else { format!(", {draining} draining") };
                let unreachable = match unreachable.len() {
                    0 => String::new(),
                    number => format!(", {number} unreachable"),
                };
                context.output.print_line(&format!(
                    "{hosts}{draining}{unreachable}; {} open, {} running",
                    format_count(sessions as usize, "session"),
                    format_count(live as usize, "agent"),
                ))
            }
        }
    }
}

/// One line about the streams, and one for each server.
fn describe_servers(health: &ClusterHealth) -> Vec<String> {
    let streams = format_count(health.streams, "stream");
    let size = health.bytes.div_ceil(1 << 20);
    let messages = format_count(usize::try_from(health.messages).unwrap_or(usize::MAX), "message");
    let mut lines = vec![format!("{streams} with {messages}, {size} MiB")];
    for (name, it) in &health.servers {
        let mut line = format!("  {name} leads {}", it.leads);
        let problems = [(it.offline, "offline for"), (it.behind, "behind in")];
        for (number, problem) in problems.into_iter().filter(|(number, _)| 0 < *number) {
            write!(line, ", {problem} {number}").expect("writing to a string cannot fail");
        }
        lines.push(line);
    }
    if !health.leaderless.is_empty() {
        let streams = health.leaderless.join(", ");
        lines.push(format!("  no leader for {streams}: their sessions pause until one is elected"));
    }
    lines
}
