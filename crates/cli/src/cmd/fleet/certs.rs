//! `jackfield fleet certs`: creates the certificates of a fleet.

use crate::{app::Desk, env, fleet::cell_name, report::Failure};
use clap::Args;
use jackfield_fleet::write_certificates;
use std::path::PathBuf;

/// Create the certificates by which NATS servers, hosts and gateways know each other
///
/// Writes one directory for each server (DIR/servers/NAME) and for each role (DIR/host, DIR/gateway,
/// DIR/operator), and the authority that signs them (DIR/authority), whose key stays with you. What exists is
/// kept, so that a server can be added later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet certs ./certs --server n1 --server n2 --server n3
  $ scp ./certs/servers/n1/* n1:/etc/nats/
  $ jackfield serve --fleet tls://n1:4222,tls://n2:4222,tls://n3:4222 --fleet-certs ./certs/host")]
pub(super) struct CreateCerts {
    /// Where to write them
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The host name or address by which clients and other servers reach a NATS server; once for each
    #[arg(long, env = env::SERVER, hide_env_values = true, value_name = "NAME", value_delimiter = ',', required = true, value_parser = server_name)]
    server: Vec<String>,

    /// The cell that the roles may use
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", value_parser = cell_name)]
    cell: String,
}

impl CreateCerts {
    pub(super) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let written = write_certificates(&self.directory, &self.server, &self.cell)
            .map_err(|it| Failure::local("the certificates were not written", it))?;
        for directory in &written {
            desk.out.line(&directory.display().to_string())?;
        }
        desk.out.note(if written.is_empty() {
            "everything exists already; nothing was written"
        } else {
            "copy servers/NAME to /etc/nats on each server, and host, gateway or operator to the machines of \
             that role; keep authority here"
        });
        Ok(())
    }
}

fn server_name(name: &str) -> Result<String, String> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':');
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(plain) {
        return Err("write a host name or an address, without scheme and port".to_owned());
    }
    Ok(name.to_owned())
}
