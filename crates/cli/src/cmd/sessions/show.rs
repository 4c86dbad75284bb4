//! `jackfield sessions show`: shows the details and the usage of one session.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, SessionRow, find_session, list_sessions, read_log},
    out::{DIM, OutputFormat, TableCell, TextTable, paint, print_json_document},
    plain_text::to_one_line,
    report::CommandError,
};
use clap::Args;
use jackfield_events::{EventBody, EventKind, OperationRefused, ReceivedEvent, Time, UserAnswered};
use jackfield_protocol::quote_argv;
use jackfield_views::{SessionUsage, describe_client, usage::TABLE_HEADINGS};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc};

/// How many of the last answers and refusals are shown.
const ANSWERS_MAX: usize = 20;

/// Show the details of one session, and the tokens and the cost of its turns
///
/// Agents may report tokens, cost, both or neither. Values that an agent did not report are shown as a
/// dash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions show s-7f3
  $ jackfield sessions show s-7f3 --format json | jq -r .session.cwd
  $ jackfield sessions show s-7f3 --format json | jq .usage.sum.tokens.total")]
pub(super) struct ShowSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ShowSessionCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let row = find_session(&list_sessions(conn)?, &self.session)?;
        if self.format == OutputFormat::Quiet {
            return context.output.print_line(&row.session_id);
        }
        let (mut usage, mut answers) = (SessionUsage::default(), VecDeque::new());
        read_log(conn, &row.session_id, &mut |event| {
            // SessionUsage events are flat, so an event that is nested too deeply to be parsed is not one.
            let event = serde_json::from_str(event).unwrap_or_default();
            if let Ok(event) = ReceivedEvent::from_value(event) {
                usage.fold_event(&event);
                add_answer(&mut answers, &event);
            }
            Ok(())
        })?;
        if self.format == OutputFormat::Json {
            let mut usage_json = serde_json::to_value(&usage).unwrap_or_default();
            usage_json["sum"] = serde_json::to_value(usage.total()).unwrap_or_default();
            return print_json_document(
                &context.output,
                &json!({ "session": row.raw, "usage": usage_json, "answers": answers }),
            );
        }
        print_row(context, &row)?;
        answers.iter().try_for_each(|it| print_answer(context, it))?;
        if usage.turns.is_empty() { Ok(()) } else { print_usage(context, &usage) }
    }
}

fn print_row(context: &CommandContext, row: &SessionRow) -> Result<(), CommandError> {
    let number = |it: u64| if it == 0 { String::new() } else { it.to_string() };
    let fields = [
        ("session", row.session_id.clone()),
        ("name", row.name.clone().unwrap_or_default()),
        ("title", to_one_line(row.title.as_deref().unwrap_or_default(), usize::MAX)),
        ("state", row.state.clone()),
        ("asks", number(row.asks)),
        ("doing", row.doing.clone().unwrap_or_default()),
        ("queued", number(row.queued)),
        ("policy", row.unheard.clone().unwrap_or_default()),
        ("agent", row.agent.clone()),
        ("fallback", row.describe_fallback().unwrap_or_default()),
        ("sandbox", row.sandbox.clone().unwrap_or_default()),
        ("command", quote_argv(&row.argv)),
        ("pid", row.pid.map(|it| it.to_string()).unwrap_or_default()),
        ("agent id", row.agent_session.clone()),
        ("directory", row.cwd.clone()),
        ("opened", row.opened_at.clone()),
        ("last", row.updated_at.clone()),
        ("turns", row.turns.to_string()),
        ("events", row.events.to_string()),
        ("clients", row.clients.to_string()),
    ];
    for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
        context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    Ok(())
}

/// A client that answered a request to the user, or whose operation was refused.
#[derive(Debug, Serialize)]
struct ShownAnswer {
    is: EventKind,
    at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Arc<str>>,
    by: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Value>,
}

fn add_answer(answers: &mut VecDeque<ShownAnswer>, event: &ReceivedEvent) {
    let (is, at) = (event.body.kind(), event.at);
    let answer = match &event.body {
        EventBody::Answered(UserAnswered { ask, by, peer, .. }) => {
            let (by, peer) = (by.clone(), peer.clone());
            ShownAnswer { is, at, ask: Some(*ask), operation: None, by, peer }
        }
        EventBody::Refused(OperationRefused { operation, by, peer, .. }) => {
            let (operation, by, peer) = (Some(operation.clone()), by.clone(), peer.clone());
            ShownAnswer { is, at, ask: None, operation, by, peer }
        }
        _ => return,
    };
    if ANSWERS_MAX <= answers.len() {
        answers.pop_front();
    }
    answers.push_back(answer);
}

fn print_answer(context: &CommandContext, answer: &ShownAnswer) -> Result<(), CommandError> {
    let what = match &answer.operation {
        Some(operation) => format!("`{}`", to_one_line(operation, 80)),
        None => format!("ask {}", answer.ask.unwrap_or_default()),
    };
    let by = to_one_line(&describe_client(&answer.by, answer.peer.as_ref()), usize::MAX);
    let name = answer.is.to_string();
    context.output.print_line(&format!("{} {what} by {by}", paint(DIM, format!("{name:<10}"))))
}

fn print_usage(context: &CommandContext, usage: &SessionUsage) -> Result<(), CommandError> {
    let cells =
        |row: [String; 8]| row.iter().map(|it| TableCell::new(to_one_line(it, 40))).collect();
    let mut table = TextTable::new(&TABLE_HEADINGS);
    for turn in &usage.turns {
        table.add_row(cells(turn.table_cells()));
    }
    table.add_row(cells(usage.total().table_cells()));
    context.output.print_line("")?;
    table.print(&context.output)?;
    let Some(window) = usage.context else { return Ok(()) };
    context.output.print_line(&format!("{} {window}", paint(DIM, "context   ")))
}
