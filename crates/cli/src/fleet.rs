//! The flags by which a daemon becomes one of many.

use crate::{
    amount::{Age, Size},
    env,
    report::Failure,
};
use clap::{Args, ValueEnum};
use jackfield_daemon::{Care, Fleet, Role};
use jackfield_fleet::{FleetConnection, HostDirectory};
use jackfield_journal::{CellConfig, RetentionLimits};
use jackfield_nats_access::{ClientRole, NatsServers, ServersError};
use std::{path::PathBuf, str::FromStr};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Be part of the fleet on these NATS servers; the journal is theirs then
    #[arg(long, env = env::FLEET, hide_env_values = true, value_name = "NATS_URL", value_delimiter = ',')]
    fleet: Vec<String>,

    /// The certificates for these servers: a directory that `jackfield fleet certs` wrote
    #[arg(long, env = env::FLEET_CERTS, hide_env_values = true, value_name = "DIR", requires = "fleet")]
    fleet_certs: Option<PathBuf>,

    /// Run agents, take clients to those who do, or both
    #[arg(long, env = env::ROLE, hide_env_values = true, value_enum, default_value = "both", requires = "fleet")]
    role: RoleArg,

    /// The name of this host in the fleet [default: the name of the machine]
    #[arg(long, env = env::HOST_NAME, hide_env_values = true, value_name = "NAME", requires = "fleet", value_parser = host_name)]
    host_name: Option<String>,

    /// A label by which sessions can ask for this host
    #[arg(long, env = env::LABEL, hide_env_values = true, value_name = "KEY=VALUE", value_delimiter = ',', requires = "fleet")]
    label: Vec<Label>,

    /// A directory that is the same on all hosts that name it; sessions elsewhere stay on their host
    #[arg(long, env = env::SHARED, hide_env_values = true, value_name = "DIR", value_delimiter = ',', requires = "fleet", value_parser = absolute)]
    shared: Vec<PathBuf>,

    /// The part of the NATS servers' streams that is ours
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", requires = "fleet", value_parser = cell_name)]
    cell: String,

    /// Streams that the logs are spread over; the same for ever, for all who use the cell
    #[arg(long, env = env::SHARDS, hide_env_values = true, value_name = "N", default_value_t = 64, requires = "fleet", value_parser = clap::value_parser!(u16).range(1..=512))]
    shards: u16,

    /// Servers that have each event before it is heard; 1 is for trying out
    #[arg(long, env = env::REPLICAS, hide_env_values = true, value_name = "N", default_value_t = 3, requires = "fleet", value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,

    /// Where cold events go: `file:///DIR` or `s3://BUCKET/PREFIX`; the same for all hosts
    #[arg(long, env = env::ARCHIVE, hide_env_values = true, value_name = "URL", requires = "fleet")]
    archive: Option<String>,

    /// Events as old as this are cold
    #[arg(long, env = env::ARCHIVE_AFTER, hide_env_values = true, value_name = "TIME", default_value = "2h", requires = "fleet")]
    archive_after: Age,

    /// Delete sessions that nobody has used for so long
    #[arg(long, env = env::RETAIN, hide_env_values = true, value_name = "TIME", requires = "fleet")]
    retain: Option<Age>,

    /// Delete the oldest sessions while logs and archive have more than this, as in `500GB`
    #[arg(long, env = env::RETAIN_SIZE, hide_env_values = true, value_name = "BYTES", requires = "fleet")]
    retain_size: Option<Size>,

    /// How often to look for what is cold; what is not kept is looked for every twelfth time
    #[arg(long, env = env::SWEEP_EVERY, hide_env_values = true, value_name = "TIME", default_value = "5m", requires = "fleet")]
    sweep_every: Age,
}

/// Where a fleet is, for who only looks at it.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The NATS servers of the fleet; needed here or in the variable
    #[arg(long, env = env::FLEET, hide_env_values = true, value_name = "NATS_URL", value_delimiter = ',')]
    fleet: Vec<String>,

    /// The certificates for these servers: a directory that `jackfield fleet certs` wrote
    #[arg(long, env = env::FLEET_CERTS, hide_env_values = true, value_name = "DIR")]
    fleet_certs: Option<PathBuf>,

    /// The part of their streams that is the fleet's
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", value_parser = cell_name)]
    cell: String,
}

impl At {
    /// Connects, looks who is there, and does something.
    pub(crate) fn with<T>(
        &self,
        work: impl AsyncFnOnce(&FleetConnection, &HostDirectory) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.fleet.is_empty() {
            let hint = format!(
                "pass --fleet NATS_URL, and --fleet-certs DIR for servers on the network; or set {} and {}, as the \
                 members of the fleet have them",
                env::FLEET,
                env::FLEET_CERTS
            );
            return Err(Failure::usage("the NATS servers of the fleet are not named", hint));
        }
        let (urls, certificates) = (self.fleet.clone(), self.fleet_certs.clone());
        let servers = NatsServers::new(urls, certificates, ClientRole::Operator);
        let servers = servers.map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|it| Failure::local("cannot prepare a connection", it))?;
        runtime.block_on(async {
            let link = FleetConnection::connect(&servers, &self.cell).await;
            let link = link.map_err(|it| Failure::local("the fleet cannot be reached", it))?;
            let directory = HostDirectory::open(link.clone()).await;
            work(&link, &directory).await
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
struct Label(String, String);

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Label, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Label(key.into(), value.into())),
            _ => Err("write a label as KEY=VALUE".to_owned()),
        }
    }
}

impl FleetArgs {
    /// None without `--fleet`.
    pub(crate) fn fleet(self) -> Result<Option<Fleet>, Failure> {
        if self.fleet.is_empty() {
            return Ok(None);
        }
        let servers = NatsServers::new(self.fleet, self.fleet_certs, ClientRole::Member);
        let servers = servers.map_err(refused)?;
        let role = match self.role {
            RoleArg::Host => Role::Host,
            RoleArg::Gateway => Role::Gateway,
            RoleArg::Both => Role::Both,
        };
        let machine = || {
            let name = rustix::system::uname();
            plain(&name.nodename().to_string_lossy())
        };
        Ok(Some(Fleet {
            servers,
            cell: CellConfig {
                name: self.cell,
                shards: self.shards,
                replicas: self.replicas.into(),
            },
            role,
            name: self.host_name.unwrap_or_else(machine),
            care: Care {
                archive: self.archive,
                after: self.archive_after.duration(),
                retention: RetentionLimits {
                    age: self.retain.map(Age::duration),
                    bytes: self.retain_size.map(|Size(bytes)| bytes),
                },
                every: self.sweep_every.duration(),
            },
            shared: self.shared,
            labels: self.label.into_iter().map(|Label(key, value)| (key, value)).collect(),
        }))
    }
}

/// Servers that may not be used as they are given.
fn refused(error: ServersError) -> Failure {
    Failure::local("the NATS servers cannot be used", error)
}

/// A name that NATS takes as one word.
fn plain(name: &str) -> String {
    let plain =
        |it: char| if it.is_ascii_alphanumeric() || it == '-' || it == '_' { it } else { '-' };
    name.chars().map(plain).collect()
}

fn host_name(name: &str) -> Result<String, String> {
    if name.is_empty() || plain(name) != name || 63 < name.len() {
        return Err("a host's name has 1 to 63 letters, digits, `-` and `_`".to_owned());
    }
    Ok(name.to_owned())
}

fn absolute(dir: &str) -> Result<PathBuf, String> {
    let dir = PathBuf::from(dir);
    if dir.is_absolute() {
        Ok(dir)
    } else {
        Err("write the whole path of the directory".to_owned())
    }
}

pub(crate) fn cell_name(name: &str) -> Result<String, String> {
    host_name(name).map_err(|_| "a cell's name has 1 to 63 letters, digits, `-` and `_`".to_owned())
}
