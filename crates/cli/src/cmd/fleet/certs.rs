//! `jackfield fleet certs`: creates the certificates of a fleet.

use crate::{context::CommandContext, env, fleet::cell_name, report::CommandError};
use clap::Args;
use jackfield_fleet::write_certificates;
use std::path::PathBuf;

/// Create the TLS certificates of the NATS servers, hosts and gateways
///
/// Writes one directory for each server (DIR/servers/NAME) and for each role (DIR/host, DIR/gateway,
/// DIR/operator), and the certificate authority that signs them (DIR/authority), whose key stays with you.
/// Existing files are kept, so that a server can be added later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet certs ./certs --server n1 --server n2 --server n3
  $ scp ./certs/servers/n1/* n1:/etc/nats/
  $ jackfield serve --fleet tls://n1:4222,tls://n2:4222,tls://n3:4222 --fleet-certs ./certs/host")]
pub(super) struct CreateCertsCommand {
    /// The directory to write to
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The host name or address of a NATS server, as clients and other servers use it; repeat for each
    #[arg(long, env = env::SERVER, hide_env_values = true, value_name = "NAME", value_delimiter = ',', required = true, value_parser = server_name)]
    server: Vec<String>,

    /// The cell that the roles may access
    #[arg(long, env = env::CELL, hide_env_values = true, value_name = "NAME", default_value = "jackfield", value_parser = cell_name)]
    cell: String,
}

impl CreateCertsCommand {
    pub(super) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let written = write_certificates(&self.directory, &self.server, &self.cell)
            .map_err(|it| CommandError::local("cannot write the certificates", it))?;
        for directory in &written {
            context.output.print_line(&directory.display().to_string())?;
        }
        context.output.print_note(if written.is_empty() {
            "all certificates exist; nothing was written"
        } else {
            "copy servers/NAME to /etc/nats on each server, and host, gateway or operator to the machines of \
             that role; keep authority here"
        });
        Ok(())
    }
}

fn server_name(name: &str) -> Result<String, String> {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':');
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_allowed) {
        return Err("write a host name or an address without scheme and port".to_owned());
    }
    Ok(name.to_owned())
}
