//! `jackfield fleet audit`: prints the audit log of the gateways.

use crate::{
    amount::TimeSpan,
    context::CommandContext,
    env,
    fleet::FleetAddressArgs,
    out::{NAME, OutputFormat, paint},
    report::CommandError,
};
use clap::Args;
use jackfield_fleet::{AuditEnd, AuditEvent};
use jackfield_protocol::rfc3339;
use std::{fmt::Write as _, time::SystemTime};

/// Print the audit log: which clients opened, prompted, answered or deleted what
///
/// One line for each request that a gateway answered, and for each permission that was granted or
/// denied. Messages are in the log of the session, not here. Lines stay when their session is deleted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet audit --since 1h --fleet tls://n1:4222
  $ jackfield fleet audit --session s-7f3abcdefghi --format json | jq .what
  $ jackfield fleet audit --follow")]
pub(super) struct FleetAuditCommand {
    #[command(flatten)]
    fleet: FleetAddressArgs,

    /// Only entries of this period: a number and `s`, `m`, `h`, `d` or `w`
    #[arg(long, env = env::SINCE, hide_env_values = true, value_name = "TIME")]
    since: Option<TimeSpan>,

    /// Only entries of this tenant
    #[arg(long, env = env::TENANT, hide_env_values = true, value_name = "NAME")]
    tenant: Option<String>,

    /// Only entries about this session
    #[arg(long = "session", env = env::AUDIT_SESSION, hide_env_values = true, value_name = "ID")]
    audit_session: Option<String>,

    /// Also print new entries, until interrupted
    #[arg(short, long, env = env::FOLLOW, hide_env_values = true, value_parser = env::flag_parser())]
    follow: bool,

    /// How to print the entries: text, or one JSON document per line; `quiet` prints sessions
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl FleetAuditCommand {
    pub(super) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let since = self.since.map(|it| SystemTime::now() - it.to_duration());
        let mut printed = Ok(());
        let print = |event: AuditEvent| {
            let is_wanted = |wanted: &Option<String>, actual: &Option<String>| {
                wanted.is_none() || wanted == actual
            };
            if is_wanted(&self.audit_session, &event.session)
                && is_wanted(&self.tenant, &event.tenant)
            {
                printed = self.print_event(context, &event);
            }
            printed.is_ok()
        };
        self.fleet.run_connected(async |connection, _| {
            let end = if self.follow { AuditEnd::Follow } else { AuditEnd::Stop };
            let read = connection.read_audit_log(since, end, print).await;
            read.map_err(|it| CommandError::local("cannot read the audit log", it))
        })?;
        printed
    }

    fn print_event(
        &self,
        context: &CommandContext,
        event: &AuditEvent,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => context
                .output
                .print_line(&serde_json::to_string(event).expect("an audit event serializes")),
            OutputFormat::Quiet => {
                event.session.iter().try_for_each(|it| context.output.print_line(it))
            }
            OutputFormat::Text => context.output.print_line(&format_event(event)),
        }
    }
}

/// `2026-11-15T08:30:00.123Z in: zed session/prompt s-7f3abcdefghi`, and the result.
fn format_event(event: &AuditEvent) -> String {
    let client = event.client.as_deref().unwrap_or("a client");
    let tenant = event.tenant.as_deref().map(|it| format!(" of {it}")).unwrap_or_default();
    let mut line =
        format!("{} {}: {client}{tenant} {}", rfc3339(event.at), event.gateway, event.what);
    let mut add = |text: std::fmt::Arguments<'_>| {
        line.write_fmt(text).expect("writing to a string cannot fail");
    };
    if let Some(session) = &event.session {
        add(format_args!(" {}", paint(NAME, session)));
    }
    if let Some(answer) = &event.answer {
        add(format_args!(", answered `{answer}`"));
    }
    if let Some(refused) = &event.refused {
        add(format_args!(", refused: {refused}"));
    }
    if let Some(lost) = event.lost {
        add(format_args!(": {lost} lines could not be stored"));
    }
    line
}
