//! `jackfield fleet audit`: what clients have done, as the gateways have let them.

use crate::{
    amount::Age,
    app::Desk,
    env,
    fleet::At,
    out::{Format, NAME, paint},
    report::Failure,
};
use clap::Args;
use jackfield_fleet::{AuditEnd, AuditEvent};
use jackfield_protocol::rfc3339;
use std::{fmt::Write as _, time::SystemTime};

/// Read what clients have done: opened, said, answered, deleted
///
/// A line for each request that a gateway has answered, and for each permission that was given or
/// refused. What was said is not here: it is in the log of the session. Lines outlive their session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield fleet audit --since 1h --fleet tls://n1:4222
  $ jackfield fleet audit --session s-7f3abcdefghi --format json | jq .what
  $ jackfield fleet audit --follow")]
pub(super) struct Audit {
    #[command(flatten)]
    at: At,

    /// Only what was done in the last so long: a number and `s`, `m`, `h`, `d` or `w`
    #[arg(long, env = env::SINCE, hide_env_values = true, value_name = "TIME")]
    since: Option<Age>,

    /// Only what was done in the name of this tenant
    #[arg(long, env = env::TENANT, hide_env_values = true, value_name = "NAME")]
    tenant: Option<String>,

    /// Only what was done to this session
    #[arg(long, env = env::SESSION, hide_env_values = true, value_name = "ID")]
    session: Option<String>,

    /// Go on with what comes, until it is interrupted
    #[arg(short, long, env = env::FOLLOW, hide_env_values = true, value_parser = env::flag())]
    follow: bool,

    /// How to print it: text, or a JSON document a line; `quiet` prints sessions
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Audit {
    pub(super) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let since = self.since.map(|it| SystemTime::now() - it.duration());
        let mut printed = Ok(());
        let print = |word: AuditEvent| {
            let is_wanted =
                |wish: &Option<String>, has: &Option<String>| wish.is_none() || wish == has;
            if is_wanted(&self.session, &word.session) && is_wanted(&self.tenant, &word.tenant) {
                printed = self.print(desk, &word);
            }
            printed.is_ok()
        };
        self.at.with(async |link, _| {
            let end = if self.follow { AuditEnd::Follow } else { AuditEnd::Stop };
            let read = link.read_audit_log(since, end, print).await;
            read.map_err(|it| Failure::local("the audit trail cannot be read", it))
        })?;
        printed
    }

    fn print(&self, desk: &Desk, word: &AuditEvent) -> Result<(), Failure> {
        match self.format {
            Format::Json => {
                desk.out.line(&serde_json::to_string(word).expect("a word is plain data"))
            }
            Format::Quiet => word.session.iter().try_for_each(|it| desk.out.line(it)),
            Format::Text => desk.out.line(&line(word)),
        }
    }
}

/// `2026-11-15T08:30:00.123Z in: zed session/prompt s-7f3abcdefghi`, and what came of it.
fn line(word: &AuditEvent) -> String {
    let by = word.client.as_deref().unwrap_or("a client");
    let of = word.tenant.as_deref().map(|it| format!(" of {it}")).unwrap_or_default();
    let mut line = format!("{} {}: {by}{of} {}", rfc3339(word.at), word.gateway, word.what);
    let mut add = |text: std::fmt::Arguments<'_>| {
        line.write_fmt(text).expect("a string takes everything");
    };
    if let Some(session) = &word.session {
        add(format_args!(" {}", paint(NAME, session)));
    }
    if let Some(answer) = &word.answer {
        add(format_args!(", answered `{answer}`"));
    }
    if let Some(refused) = &word.refused {
        add(format_args!(", refused: {refused}"));
    }
    if let Some(lost) = word.lost {
        add(format_args!(": {lost} lines could not be kept"));
    }
    line
}
