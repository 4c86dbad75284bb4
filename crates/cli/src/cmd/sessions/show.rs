//! `jackfield sessions show`: what is known of one session, and what its turns have cost.

use crate::{
    app::Desk,
    env,
    hub::{Conn, Row, facts, find, sessions},
    out::{Cell, DIM, Format, Table, document, one_line, paint},
    report::Failure,
};
use clap::Args;
use jackfield_events::{EventBody, EventKind, OperationRefused, ReceivedEvent, Time, UserAnswered};
use jackfield_views::{Usage, by_whom, usage::HEADINGS};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc};

/// So many of the last answers and refusals are shown.
const ANSWERS_MAX: usize = 20;

/// Show what is known of one session, and what its turns have used and cost
///
/// Agents say how many tokens a turn took, what it cost, both or neither; what was not said is
/// shown as a dash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions show s-7f3
  $ jackfield sessions show s-7f3 --format json | jq -r .session.cwd
  $ jackfield sessions show s-7f3 --format json | jq .usage.sum.tokens.total")]
pub(super) struct Show {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Show {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        if self.format == Format::Quiet {
            return desk.out.line(&row.session_id);
        }
        let (mut usage, mut answers) = (Usage::default(), VecDeque::new());
        facts(conn, &row.session_id, &mut |event| {
            // Events about usage are flat; one that is nested too deep to be read is not about it.
            let event = serde_json::from_str(event).unwrap_or_default();
            if let Ok(event) = ReceivedEvent::from_value(event) {
                usage.fold(&event);
                keep_answer(&mut answers, &event);
            }
            Ok(())
        })?;
        if self.format == Format::Json {
            let mut told = serde_json::to_value(&usage).unwrap_or_default();
            told["sum"] = serde_json::to_value(usage.sum()).unwrap_or_default();
            return document(
                &desk.out,
                &json!({ "session": row.raw, "usage": told, "answers": answers }),
            );
        }
        tell_row(desk, &row)?;
        answers.iter().try_for_each(|it| tell_answer(desk, it))?;
        if usage.turns.is_empty() { Ok(()) } else { tell_usage(desk, &usage) }
    }
}

fn tell_row(desk: &Desk, row: &Row) -> Result<(), Failure> {
    let number = |it: u64| if it == 0 { String::new() } else { it.to_string() };
    let fields = [
        ("session", row.session_id.clone()),
        ("title", one_line(row.title.as_deref().unwrap_or_default(), usize::MAX)),
        ("state", row.state.clone()),
        ("asks", number(row.asks)),
        ("doing", row.doing.clone().unwrap_or_default()),
        ("queued", number(row.queued)),
        ("policy", row.unheard.clone().unwrap_or_default()),
        ("agent", row.agent.clone()),
        ("instead", row.instead().unwrap_or_default()),
        ("command", row.argv.join(" ")),
        ("pid", row.pid.map(|it| it.to_string()).unwrap_or_default()),
        ("its id", row.agent_session.clone()),
        ("directory", row.cwd.clone()),
        ("opened", row.opened_at.clone()),
        ("last", row.updated_at.clone()),
        ("turns", row.turns.to_string()),
        ("events", row.events.to_string()),
        ("clients", row.clients.to_string()),
    ];
    for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
        desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    Ok(())
}

/// Who answered a request to the user, or was refused.
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

fn keep_answer(answers: &mut VecDeque<ShownAnswer>, event: &ReceivedEvent) {
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

fn tell_answer(desk: &Desk, answer: &ShownAnswer) -> Result<(), Failure> {
    let what = match &answer.operation {
        Some(operation) => format!("`{}`", one_line(operation, 80)),
        None => format!("ask {}", answer.ask.unwrap_or_default()),
    };
    let by = one_line(&by_whom(&answer.by, answer.peer.as_ref()), usize::MAX);
    let name = answer.is.to_string();
    desk.out.line(&format!("{} {what} by {by}", paint(DIM, format!("{name:<10}"))))
}

fn tell_usage(desk: &Desk, usage: &Usage) -> Result<(), Failure> {
    let cells = |row: [String; 8]| row.iter().map(|it| Cell::new(one_line(it, 40))).collect();
    let mut table = Table::new(&HEADINGS);
    for turn in &usage.turns {
        table.row(cells(turn.cells()));
    }
    table.row(cells(usage.sum().cells()));
    desk.out.line("")?;
    table.print(&desk.out)?;
    let Some(context) = usage.context else { return Ok(()) };
    desk.out.line(&format!("{} {context}", paint(DIM, "context   ")))
}
