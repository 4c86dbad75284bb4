//! The flags of a fleet: for a daemon that joins it, and for commands that inspect it.

use crate::{
    amount::{ByteSize, TimeSpan},
    env,
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_daemon::{FleetConfig, LogMaintenanceConfig, MemberRole};
use jackfield_fleet::{FleetConnection, HostDirectory};
use jackfield_journal::{CellConfig, RetentionLimits};
use jackfield_nats_access::{ClientRole, NatsServers, ServersError};
use std::{path::PathBuf, str::FromStr};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Join the fleet on these NATS servers, which then store the journal
    #[arg(long, env = env::FLEET, hide_env_values = true, value_name = "NATS_URL", value_delimiter = ',')]
    fleet: Vec<String>,

    /// A directory with certificates for these servers, written by `jackfield fleet certs`
    #[arg(long, env = env::FLEET_CERTS, hide_env_values = true, value_name = "DIR", requires = "fleet")]
    fleet_certs: Option<PathBuf>,

    /// Run agents, route clients to hosts, or both
    #[arg(long, env = env::ROLE, hide_env_values = true, value_enum, default_value = "both", requires = "fleet")]
    role: RoleArg,

    /// The name of this host in the fleet [default: the machine's host name]
    #[arg(long, env = env::HOST_NAME, hide_env_values = true, value_name = "NAME", requires = "fleet", value_parser = host_name)]
    host_name: Option<String>,

    /// A label by which sessions can select this host
    #[arg(long, env = env::LABEL, hide_env_values = true, value_name = "KEY=VALUE", value_delimiter = ',', requires = "fleet")]
    label: Vec<HostLabel>,

    /// A directory that all hosts with this flag share; sessions in other directories cannot move between hosts
    #[arg(long, env = env::SHARED, hide_env_values = true, value_name = "DIR", value_delimiter = ',', requires = "fleet", value_parser = absolute_path)]
    shared: Vec<PathBuf>,

    /// The name prefix of this fleet's streams on the NATS servers
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", requires = "fleet", value_parser = cell_name)]
    cell: String,

    /// The number of streams for session logs; it must be the same for all members and cannot change later
    #[arg(long, env = env::SHARDS, hide_env_values = true, value_name = "N", default_value_t = 64, requires = "fleet", value_parser = clap::value_parser!(u16).range(1..=512))]
    shards: u16,

    /// How many servers store each event before it is delivered; use 1 only for tests
    #[arg(long, env = env::REPLICAS, hide_env_values = true, value_name = "N", default_value_t = 3, requires = "fleet", value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,

    /// Where old events are archived: `file:///DIR` or `s3://BUCKET/PREFIX`; the same for all hosts
    #[arg(long, env = env::ARCHIVE, hide_env_values = true, value_name = "URL", requires = "fleet")]
    archive: Option<String>,

    /// Archive events that are older than this
    #[arg(long, env = env::ARCHIVE_AFTER, hide_env_values = true, value_name = "TIME", default_value = "2h", requires = "fleet")]
    archive_after: TimeSpan,

    /// Delete sessions that have not been used for this long
    #[arg(long, env = env::RETAIN, hide_env_values = true, value_name = "TIME", requires = "fleet")]
    retain: Option<TimeSpan>,

    /// Delete the oldest sessions when logs and archive exceed this size, as in `500GB`
    #[arg(long, env = env::RETAIN_SIZE, hide_env_values = true, value_name = "BYTES", requires = "fleet")]
    retain_size: Option<ByteSize>,

    /// How often to look for events to archive; sessions to delete are looked for every twelfth time
    #[arg(long, env = env::SWEEP_EVERY, hide_env_values = true, value_name = "TIME", default_value = "5m", requires = "fleet")]
    sweep_every: TimeSpan,
}

/// The servers of a fleet, for commands that do not join it.
#[derive(Debug, Args)]
pub(crate) struct FleetAddressArgs {
    /// The NATS servers of the fleet; required, as a flag or as a variable
    #[arg(long, env = env::FLEET, hide_env_values = true, value_name = "NATS_URL", value_delimiter = ',')]
    fleet: Vec<String>,

    /// A directory with certificates for these servers, written by `jackfield fleet certs`
    #[arg(long, env = env::FLEET_CERTS, hide_env_values = true, value_name = "DIR")]
    fleet_certs: Option<PathBuf>,

    /// The name prefix of the fleet's streams
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", value_parser = cell_name)]
    cell: String,
}

impl FleetAddressArgs {
    /// Connects, reads the list of hosts, and runs `work`.
    pub(crate) fn run_connected<T>(
        &self,
        work: impl AsyncFnOnce(&FleetConnection, &HostDirectory) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        if self.fleet.is_empty() {
            let hint = format!(
                "pass --fleet NATS_URL, and --fleet-certs DIR for servers on the network; or set {} and {} to the \
                 values that the members of the fleet use",
                env::FLEET,
                env::FLEET_CERTS
            );
            return Err(CommandError::usage("the NATS servers of the fleet are not set", hint));
        }
        let (urls, certificates) = (self.fleet.clone(), self.fleet_certs.clone());
        let servers = NatsServers::new(urls, certificates, ClientRole::Operator);
        let servers = servers.map_err(servers_error)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|it| CommandError::local("cannot start the async runtime", it))?;
        runtime.block_on(async {
            let connection = FleetConnection::connect(&servers, &self.cell).await;
            let connection =
                connection.map_err(|it| CommandError::local("cannot connect to the fleet", it))?;
            let directory = HostDirectory::open(connection.clone()).await;
            work(&connection, &directory).await
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleArg {
    Host,
    Gateway,
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostLabel(String, String);

impl FromStr for HostLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<HostLabel, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(HostLabel(key.into(), value.into())),
            _ => Err("write a label as KEY=VALUE".to_owned()),
        }
    }
}

impl FleetArgs {
    /// `None` without `--fleet`.
    pub(crate) fn into_fleet(self) -> Result<Option<FleetConfig>, CommandError> {
        if self.fleet.is_empty() {
            return Ok(None);
        }
        let servers = NatsServers::new(self.fleet, self.fleet_certs, ClientRole::Member);
        let servers = servers.map_err(servers_error)?;
        let role = match self.role {
            RoleArg::Host => MemberRole::Host,
            RoleArg::Gateway => MemberRole::Gateway,
            RoleArg::Both => MemberRole::Both,
        };
        let machine_name = || {
            let name = rustix::system::uname();
            to_nats_token(&name.nodename().to_string_lossy())
        };
        Ok(Some(FleetConfig {
            servers,
            cell: CellConfig {
                name: self.cell,
                shards: self.shards,
                replicas: self.replicas.into(),
            },
            role,
            name: self.host_name.unwrap_or_else(machine_name),
            maintenance: LogMaintenanceConfig {
                archive: self.archive,
                after: self.archive_after.to_duration(),
                retention: RetentionLimits {
                    age: self.retain.map(TimeSpan::to_duration),
                    bytes: self.retain_size.map(|ByteSize(bytes)| bytes),
                },
                every: self.sweep_every.to_duration(),
            },
            shared: self.shared,
            labels: self.label.into_iter().map(|HostLabel(key, value)| (key, value)).collect(),
        }))
    }
}

/// The servers cannot be used as they are given.
fn servers_error(error: ServersError) -> CommandError {
    CommandError::local("cannot use the NATS servers", error)
}

/// Replaces every character that may not occur in a token of a NATS subject.
fn to_nats_token(name: &str) -> String {
    let replace =
        |it: char| if it.is_ascii_alphanumeric() || it == '-' || it == '_' { it } else { '-' };
    name.chars().map(replace).collect()
}

fn host_name(name: &str) -> Result<String, String> {
    if name.is_empty() || to_nats_token(name) != name || 63 < name.len() {
        return Err("a host name has 1 to 63 letters, digits, `-` and `_`".to_owned());
    }
    Ok(name.to_owned())
}

fn absolute_path(dir: &str) -> Result<PathBuf, String> {
    let dir = PathBuf::from(dir);
    if dir.is_absolute() {
        Ok(dir)
    } else {
        Err("write the absolute path of the directory".to_owned())
    }
}

pub(crate) fn cell_name(name: &str) -> Result<String, String> {
    host_name(name).map_err(|_| "a cell name has 1 to 63 letters, digits, `-` and `_`".to_owned())
}
