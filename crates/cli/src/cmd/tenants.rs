//! `jackfield tenants`: tokens for a tenants file, and what such a file says.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    out::{Cell, Format, NAME, Table, document},
    report::Failure,
};
use clap::{Args, Subcommand};
use jackfield_daemon::{TENANT_NAME_RULE, Tenant, Tenants as File, is_tenant_name, token_hash};
use jackfield_transport::BearerToken as Secret;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Several who share a daemon or a fleet: make a token, check the file
///
/// `jackfield serve --tenants FILE` lets whoever shows a token of a tenant in, in that tenant's name. It
/// sees the sessions of that tenant and no others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants token acme
  $ jackfield tenants check tenants.toml
  $ jackfield serve --tenants tenants.toml --listen https://0.0.0.0:7456")]
pub(crate) struct Tenants {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Token(Token),
    Check(Check),
}

/// Make a token for a tenant, and the line for its file
///
/// The token is printed once and kept nowhere: the file has its hash, by which nobody comes in. Another
/// one for the same tenant is another line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants token acme
  $ jackfield tenants token acme --name ci --format json")]
struct Token {
    /// The tenant: 1 to 32 of `a` to `z`, digits and `-`
    #[arg(value_parser = tenant_name)]
    tenant: String,

    /// Who will have it, for those who read the file
    #[arg(long, env = env::NAME, hide_env_values = true, value_name = "NAME")]
    name: Option<String>,

    /// How to print it; `quiet` prints the token alone
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

/// List the tenants of a file as they are understood, or what is wrong with it
///
/// No daemon is asked. A file with a mistake ends with exit code 2.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants check tenants.toml
  $ jackfield tenants check tenants.toml --format json | jq '.tenants[].tenant'")]
struct Check {
    /// The file
    file: PathBuf,

    /// How to print the tenants; `quiet` prints their names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Tenants {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Token(it) => it.run(desk),
            Command::Check(it) => it.run(desk),
        }
    }
}

impl Token {
    fn run(self, desk: &Desk) -> Result<(), Failure> {
        let token = Secret::random().map_err(Failure::Token)?;
        let (token, hash) = (token.reveal(), token_hash(token.reveal()));
        let line = match &self.name {
            Some(name) => format!("{{ name = {}, sha256 = \"{hash}\" }}", json!(name)),
            None => format!("\"sha256:{hash}\""),
        };
        match self.format {
            Format::Quiet => desk.out.line(token),
            Format::Json => {
                let tenant = self.tenant;
                document(&desk.out, &json!({ "tenant": tenant, "token": token, "line": line }))
            }
            Format::Text => {
                desk.out.line(token)?;
                desk.out.note(&format!(
                    "it is kept nowhere; put its hash into the tenants file:\n\n[{}]\ntokens = [{line}]",
                    self.tenant
                ));
                Ok(())
            }
        }
    }
}

impl Check {
    fn run(self, desk: &Desk) -> Result<(), Failure> {
        let file = File::open(&self.file).map_err(|error| Failure::Local {
            what: "the tenants file cannot be used".to_owned(),
            source: Box::new(error),
            exit: Exit::Usage,
            hint: "`jackfield tenants token NAME` prints a tenant to begin with".to_owned(),
        })?;
        let all = file.all();
        match self.format {
            Format::Quiet => all.iter().try_for_each(|it| desk.out.line(&it.name)),
            Format::Json => {
                let rows: Vec<Value> = all.iter().map(|it| json!(**it)).collect();
                document(&desk.out, &json!({ "tenants": rows }))
            }
            Format::Text => {
                let titles = ["TENANT", "SESSIONS", "AGENTS", "EVENTS/S", "COMMANDS", "ROOTS"];
                let mut table = Table::new(&titles);
                for tenant in &all {
                    table.row(cells(tenant));
                }
                table.print(&desk.out)
            }
        }
    }
}

fn cells(tenant: &Tenant) -> Vec<Cell> {
    let bound = |it: Option<String>| Cell::new(it.unwrap_or_else(|| "-".to_owned()));
    let roots: Vec<_> = tenant.roots.iter().map(|it| it.display().to_string()).collect();
    vec![
        Cell::styled(tenant.name.to_string(), NAME),
        bound(tenant.sessions.map(|it| it.to_string())),
        bound(tenant.agents.map(|it| it.to_string())),
        bound(tenant.events_per_second.map(|it| it.to_string())),
        Cell::new(if tenant.commands { "any" } else { "named agents" }),
        bound((!roots.is_empty()).then(|| roots.join(" "))),
    ]
}

fn tenant_name(name: &str) -> Result<String, String> {
    if is_tenant_name(name) {
        return Ok(name.to_owned());
    }
    Err(TENANT_NAME_RULE.to_owned())
}
