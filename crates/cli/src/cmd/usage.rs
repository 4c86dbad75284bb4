//! `jackfield usage`: tokens and cost of all sessions.

use super::sessions::SessionFilterArgs;
use crate::{
    amount::TimeSpan,
    context::CommandContext,
    env,
    hub::{SessionRow, list_sessions, read_log},
    out::{NAME, OutputFormat, TableCell, TextTable, now_ms, print_json_document},
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_events::ReceivedEvent;
use jackfield_views::{SessionUsage, UsageCost, UsageGroup, UsageGrouping, UsageReport};
use serde_json::{Value, json};

/// Show tokens and cost of all sessions, by agent, model or day
///
/// Agents report them, or do not: what is not reported is unknown, and not counted as zero. Days are
/// in UTC.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield usage
  $ jackfield usage --by model --since 30d
  $ jackfield usage --by day --cwd .
  $ jackfield usage --format json | jq .sum.costs")]
pub(crate) struct UsageCommand {
    /// What to sum by
    #[arg(long, env = env::BY, hide_env_values = true, value_enum, default_value_t)]
    by: GroupingChoice,

    /// Only turns of this period: a number and `s`, `m`, `h`, `d` or `w`
    #[arg(long, env = env::SINCE, hide_env_values = true, value_name = "TIME")]
    since: Option<TimeSpan>,

    #[command(flatten)]
    filter: SessionFilterArgs,

    /// How to print the usage; `quiet` prints the total number of tokens
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum GroupingChoice {
    #[default]
    Agent,
    Model,
    Day,
}

impl UsageCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let since = self.since.map_or(0, |it| now_ms().saturating_sub(it.0));
        let (grouping, name, heading) = match self.by {
            GroupingChoice::Agent => (UsageGrouping::Agent, "agent", "AGENT"),
            GroupingChoice::Model => (UsageGrouping::Model, "model", "MODEL"),
            GroupingChoice::Day => (UsageGrouping::Day, "day", "DAY"),
        };
        let mut report = UsageReport::new(grouping, since);
        let rows = list_sessions(&mut context.daemon.connect("usage")?)?;
        let has_turns = |it: &&SessionRow| 0 < it.turns && since <= it.updated_at_ms();
        for row in self.filter.select_rows(&rows)?.into_iter().filter(has_turns) {
            report.add_session(&row.agent, &row.cwd, &read_usage(context, row)?);
        }
        match self.format {
            OutputFormat::Json => print_json_document(&context.output, &to_json(name, &report)),
            OutputFormat::Quiet => {
                let total = report.sum().tokens.total.map(|it| it.to_string());
                context.output.print_line(total.as_deref().unwrap_or("unknown"))
            }
            OutputFormat::Text if report.groups().is_empty() => {
                context.output.print_note("no turns in this selection");
                Ok(())
            }
            OutputFormat::Text => print_table(context, heading, &report),
        }
    }
}

/// Folds the log of a session. Each log has its own connection, because attaching subscribes it to the session.
fn read_usage(context: &CommandContext, row: &SessionRow) -> Result<SessionUsage, CommandError> {
    let mut usage = SessionUsage::default();
    let mut conn = context.daemon.connect("usage")?;
    read_log(&mut conn, &row.session_id, &mut |event| {
        let event = serde_json::from_str(event).unwrap_or_default();
        if let Ok(event) = ReceivedEvent::from_value(event) {
            usage.fold_event(&event);
        }
        Ok(())
    })?;
    Ok(usage)
}

fn print_table(
    context: &CommandContext,
    heading: &'static str,
    report: &UsageReport,
) -> Result<(), CommandError> {
    let mut table = TextTable::new(&[
        heading, "SESSIONS", "TURNS", "INPUT", "CACHED", "OUTPUT", "TOTAL", "COST",
    ]);
    for (name, group) in report.groups() {
        table.add_row(group_cells(name, group));
    }
    if 1 < report.groups().len() {
        table.add_row(group_cells("sum", report.sum()));
    }
    table.print(&context.output)?;
    let (known, turns) = (report.sum().known, report.sum().turns);
    if known < turns {
        context.output.print_note(&format!("{known} of {turns} turns reported their tokens"));
    }
    Ok(())
}

fn group_cells(name: &str, group: &UsageGroup) -> Vec<TableCell> {
    let number = |it: Option<u64>| it.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let costs: Vec<String> = group.costs.iter().map(UsageCost::to_string).collect();
    let tokens = &group.tokens;
    vec![
        TableCell::styled(name, NAME),
        TableCell::new(group.sessions.to_string()),
        TableCell::new(group.turns.to_string()),
        TableCell::new(number(tokens.input)),
        TableCell::new(number(tokens.cached_read)),
        TableCell::new(number(tokens.output)),
        TableCell::new(number(tokens.total)),
        TableCell::new(if costs.is_empty() { "-".to_owned() } else { costs.join(" + ") }),
    ]
}

fn to_json(grouping: &str, report: &UsageReport) -> Value {
    let row = |(name, group): (&String, &UsageGroup)| {
        let mut row = serde_json::to_value(group).unwrap_or_default();
        row[grouping] = json!(name);
        row
    };
    json!({
        "by": grouping,
        "groups": report.groups().iter().map(row).collect::<Vec<_>>(),
        "sum": report.sum(),
    })
}
