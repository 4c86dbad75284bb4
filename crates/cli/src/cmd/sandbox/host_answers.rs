//! `jackfield sandbox hosts` and `forget`: the answers about hosts that apply until they are removed.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{DIM, NAME, OutputFormat, TableCell, TextTable, format_age, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::{HostAnswers, StoredHostAnswer};
use jackfield_network_proxy::{HostPort, TargetHost};
use serde_json::json;
use std::io;

/// List the hosts that you have always allowed or refused
///
/// You are asked about a host that the profile of a sandbox does not name. The answers `always` apply to all agents
/// with that profile. Rules in policy.toml win over them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox hosts
  $ jackfield sandbox hosts --format json | jq -r '.hosts[] | select(.allowed) | .host'
  $ jackfield sandbox forget pypi.org")]
pub(super) struct ListHostsCommand {
    /// How to print the list; `quiet` prints hosts
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Remove answers about hosts, so that you are asked again
///
/// This also applies to running agents, from their next connection on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox forget pypi.org
  $ jackfield sandbox forget pypi.org:8443
  $ jackfield sandbox hosts --format quiet | xargs jackfield sandbox forget")]
pub(super) struct ForgetHostsCommand {
    /// The hosts, of all profiles; without a port, the answers about all its ports
    #[arg(required = true)]
    hosts: Vec<String>,
}

impl ListHostsCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let answers = stored_answers(context).list().map_err(storage_error)?;
        match self.format {
            OutputFormat::Quiet => {
                let mut hosts: Vec<String> = answers.iter().map(destination).collect();
                hosts.sort();
                hosts.dedup();
                hosts.iter().try_for_each(|it| context.output.print_line(it))
            }
            OutputFormat::Json => {
                print_json_document(&context.output, &json!({ "hosts": answers }))
            }
            OutputFormat::Text if answers.is_empty() => {
                context.output.print_note("you have not answered `always` about any host");
                Ok(())
            }
            OutputFormat::Text => {
                let mut table =
                    TextTable::new(&["HOST", "ANSWER", "PROFILE", "ANSWERED", "SESSION"]);
                for answer in &answers {
                    table.add_row(vec![
                        TableCell::styled(destination(answer), NAME),
                        TableCell::new(if answer.allowed { "allow" } else { "refuse" }),
                        TableCell::new(answer.profile.clone()),
                        TableCell::styled(format_age(answer.at.0), DIM),
                        TableCell::styled(answer.session.clone(), DIM),
                    ]);
                }
                table.print(&context.output)
            }
        }
    }
}

impl ForgetHostsCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("sandbox forget")?;
        let answers = stored_answers(context);
        let stored = answers.list().map_err(storage_error)?;
        let selections: Vec<HostSelection> =
            self.hosts.iter().map(|it| HostSelection::parse(it)).collect::<Result<_, _>>()?;
        // All hosts are checked before an answer is removed.
        for (text, selection) in self.hosts.iter().zip(&selections) {
            if !stored.iter().any(|it| selection.matches(it)) {
                let message = format!("there is no answer about `{text}`");
                let hint = "`jackfield sandbox hosts` lists the answers";
                return Err(CommandError::usage(message, hint));
            }
        }
        let is_selected =
            |answer: &StoredHostAnswer| selections.iter().any(|it| it.matches(answer));
        for removed in answers.remove(is_selected).map_err(storage_error)? {
            context.output.print_note(&format!(
                "you are asked again about {} in profile {}",
                destination(&removed),
                removed.profile
            ));
        }
        Ok(())
    }
}

/// A host on the command line.
struct HostSelection {
    host: TargetHost,
    /// All ports without one.
    port: Option<u16>,
}

impl HostSelection {
    fn parse(text: &str) -> Result<HostSelection, CommandError> {
        let with_port = HostPort::parse(text, None).map(|it| (it.host, Some(it.port)));
        let parsed = with_port.or_else(|_| TargetHost::parse(text).map(|it| (it, None)));
        let (host, port) = parsed.map_err(|error| {
            let message = format!("`{text}` is not a host: {}", jackfield_protocol::chain(&error));
            CommandError::usage(message, "write a host such as `pypi.org` or `pypi.org:8443`")
        })?;
        Ok(HostSelection { host, port })
    }

    fn matches(&self, answer: &StoredHostAnswer) -> bool {
        self.host.to_string() == answer.host && self.port.is_none_or(|it| it == answer.port)
    }
}

pub(super) fn stored_answers(context: &CommandContext) -> HostAnswers {
    HostAnswers::new(context.daemon.paths().host_answers())
}

fn destination(answer: &StoredHostAnswer) -> String {
    format!("{}:{}", answer.host, answer.port)
}

pub(super) fn storage_error(error: io::Error) -> CommandError {
    CommandError::Local {
        what: "cannot use the stored answers about hosts".to_owned(),
        source: Box::new(error),
        exit: CliExitCode::Failed,
        hint: String::new(),
    }
}
