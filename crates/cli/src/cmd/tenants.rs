//! `jackfield tenants`: creates tokens for a tenants file, and checks the file.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{NAME, OutputFormat, TableCell, TextTable, print_json_document},
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_daemon::{TENANT_NAME_RULE, Tenant, Tenants as File, is_tenant_name, token_hash};
use jackfield_transport::BearerToken as Secret;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Manage tenants: create a token, check the file
///
/// `jackfield serve --tenants FILE` accepts clients with the token of a tenant. They can access only
/// the sessions of that tenant.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants token acme
  $ jackfield tenants check tenants.toml
  $ jackfield serve --tenants tenants.toml --listen https://0.0.0.0:7456")]
pub(crate) struct TenantsCommand {
    #[command(subcommand)]
    command: TenantsSubcommand,
}

#[derive(Debug, Subcommand)]
enum TenantsSubcommand {
    Token(CreateTokenCommand),
    Check(CheckTenantsCommand),
}

/// Create a token for a tenant, and the line for the tenants file
///
/// The token is printed once and stored nowhere: the file contains only its hash. A tenant can have
/// several tokens, each with its own line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants token acme
  $ jackfield tenants token acme --name ci --format json")]
struct CreateTokenCommand {
    /// The tenant: 1 to 32 characters of `a` to `z`, digits and `-`
    #[arg(value_parser = parse_tenant_name)]
    tenant: String,

    /// A name for the token in the file
    #[arg(long = "name", env = env::TOKEN_NAME, hide_env_values = true, value_name = "NAME")]
    token_name: Option<String>,

    /// How to print it; `quiet` prints only the token
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// List the tenants of a file as they are parsed, or the error in it
///
/// It does not use the daemon. The exit code is 2 if the file has an error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield tenants check tenants.toml
  $ jackfield tenants check tenants.toml --format json | jq '.tenants[].tenant'")]
struct CheckTenantsCommand {
    /// The tenants file
    file: PathBuf,

    /// How to print the tenants; `quiet` prints their names
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl TenantsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            TenantsSubcommand::Token(it) => it.run(context),
            TenantsSubcommand::Check(it) => it.run(context),
        }
    }
}

impl CreateTokenCommand {
    fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let token = Secret::random().map_err(CommandError::Token)?;
        let (token, hash) = (token.reveal(), token_hash(token.reveal()));
        let line = match &self.token_name {
            Some(name) => format!("{{ name = {}, sha256 = \"{hash}\" }}", json!(name)),
            None => format!("\"sha256:{hash}\""),
        };
        match self.format {
            OutputFormat::Quiet => context.output.print_line(token),
            OutputFormat::Json => {
                let tenant = self.tenant;
                print_json_document(
                    &context.output,
                    &json!({ "tenant": tenant, "token": token, "line": line }),
                )
            }
            OutputFormat::Text => {
                context.output.print_line(token)?;
                context.output.print_note(&format!(
                    "the token is not stored; add its hash to the tenants file:\n\n[{}]\ntokens = [{line}]",
                    self.tenant
                ));
                Ok(())
            }
        }
    }
}

impl CheckTenantsCommand {
    fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let file = File::open(&self.file).map_err(|error| CommandError::Local {
            what: "invalid tenants file".to_owned(),
            source: Box::new(error),
            exit: CliExitCode::Usage,
            hint: "`jackfield tenants token NAME` prints an example".to_owned(),
        })?;
        let all = file.all();
        match self.format {
            OutputFormat::Quiet => {
                all.iter().try_for_each(|it| context.output.print_line(&it.name))
            }
            OutputFormat::Json => {
                let rows: Vec<Value> = all.iter().map(|it| json!(**it)).collect();
                print_json_document(&context.output, &json!({ "tenants": rows }))
            }
            OutputFormat::Text => {
                let headings = ["TENANT", "SESSIONS", "AGENTS", "EVENTS/S", "COMMANDS", "ROOTS"];
                let mut table = TextTable::new(&headings);
                for tenant in &all {
                    table.add_row(tenant_cells(tenant));
                }
                table.print(&context.output)
            }
        }
    }
}

fn tenant_cells(tenant: &Tenant) -> Vec<TableCell> {
    let optional = |it: Option<String>| TableCell::new(it.unwrap_or_else(|| "-".to_owned()));
    let roots: Vec<_> = tenant.roots.iter().map(|it| it.display().to_string()).collect();
    vec![
        TableCell::styled(tenant.name.to_string(), NAME),
        optional(tenant.sessions.map(|it| it.to_string())),
        optional(tenant.agents.map(|it| it.to_string())),
        optional(tenant.events_per_second.map(|it| it.to_string())),
        TableCell::new(if tenant.commands { "any" } else { "named agents" }),
        optional((!roots.is_empty()).then(|| roots.join(" "))),
    ]
}

fn parse_tenant_name(name: &str) -> Result<String, String> {
    if is_tenant_name(name) {
        return Ok(name.to_owned());
    }
    Err(TENANT_NAME_RULE.to_owned())
}
