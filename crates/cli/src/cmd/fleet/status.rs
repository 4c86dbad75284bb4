//! `jackfield fleet status`: whether the servers are well, and how much there is to do.

use super::{Look, called};
use crate::{
    app::Desk,
    out::{Format, count, document},
    report::Failure,
};
use jackfield_fleet::{ClusterHealth, HostEntry};
use serde_json::json;
use std::fmt::Write as _;

impl Look {
    pub(super) fn status(self, desk: &Desk) -> Result<(), Failure> {
        let format = self.format;
        let (server, health, hosts) = self.at.with(async |link, directory| {
            let health = link.read_health().await;
            let health = health.map_err(|it| Failure::local("the servers cannot be asked", it))?;
            Ok((link.server_info(), health, called(link, directory).await))
        })?;
        let (hosts, away): (Vec<_>, Vec<_>) = hosts.into_iter().partition(|(_, answers)| *answers);
        let hosts: Vec<HostEntry> = hosts.into_iter().map(|(it, _)| it).collect();
        let sum = |each: fn(&HostEntry) -> u32| hosts.iter().map(each).sum::<u32>();
        let draining = hosts.iter().filter(|it| it.draining).count();
        let (sessions, live) = (sum(|it| it.sessions), sum(|it| it.live));
        match format {
            Format::Json => {
                let status = json!({
                    "server": { "name": server.name, "version": server.version },
                    "healthy": health.is_healthy(), "cell": health,
                    "hosts": hosts.len(), "draining": draining, "away": away.len(),
                    "sessions": sessions, "agents": live,
                });
                document(&desk.out, &status)
            }
            Format::Quiet => desk.out.line(&hosts.len().to_string()),
            Format::Text => {
                desk.out.line(&format!("NATS {} answers as `{}`", server.version, server.name))?;
                for line in servers(&health) {
                    desk.out.line(&line)?;
                }
                let hosts = count(hosts.len(), "host");
                let leaving =
                    if draining == 0 { String::new() } else { format!(", {draining} draining") };
                let away = match away.len() {
                    0 => String::new(),
                    number => format!(", {number} away"),
                };
                desk.out.line(&format!(
                    "{hosts}{leaving}{away}; {} open, {} running",
                    count(sessions as usize, "session"),
                    count(live as usize, "agent"),
                ))
            }
        }
    }
}

/// How the servers are, a line each.
fn servers(health: &ClusterHealth) -> Vec<String> {
    let streams = count(health.streams, "stream");
    let size = health.bytes.div_ceil(1 << 20);
    let messages = count(usize::try_from(health.messages).unwrap_or(usize::MAX), "message");
    let mut lines = vec![format!("{streams} with {messages}, {size} MiB")];
    for (name, it) in &health.servers {
        let mut line = format!("  {name} leads {}", it.leads);
        let troubles = [(it.offline, "is away for"), (it.behind, "is behind in")];
        for (number, trouble) in troubles.into_iter().filter(|(number, _)| 0 < *number) {
            write!(line, ", {trouble} {number}").expect("a string takes everything");
        }
        lines.push(line);
    }
    if !health.leaderless.is_empty() {
        let nobody = health.leaderless.join(", ");
        lines.push(format!("  nobody leads {nobody}: their sessions pause until somebody does"));
    }
    lines
}
