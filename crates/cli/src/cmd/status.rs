//! `jackfield` without a command: shows what is running and the next useful command.

use super::ps;
use crate::{
    context::CommandContext,
    hub::{SessionRow, list_sessions, unique_prefix_length},
    out::{NAME, paint},
    report::CommandError,
};

pub(crate) fn run(context: &CommandContext) -> Result<(), CommandError> {
    let Some(mut conn) = context.daemon.connect_if_running("status")? else {
        context
            .output
            .print_line("no daemon is running; the next command that needs it starts it")?;
        return print_next(context, "jackfield run \"What does this project do?\" -- goose acp");
    };
    let all = list_sessions(&mut conn)?;
    let live: Vec<&SessionRow> = all.iter().filter(|it| it.is_live()).collect();
    let summary = match (live.len(), all.len()) {
        (_, 0) => "the daemon is running; there are no sessions yet".to_owned(),
        (0, all) => format!("the daemon is running; no session is active, {all} in total"),
        (live, all) => format!("{live} of {all} sessions are active"),
    };
    context.output.print_line(&summary)?;
    if !live.is_empty() {
        ps::print_table(context, &all, &live)?;
    }
    let id_length =
        if context.output.is_terminal() { unique_prefix_length(&all) } else { usize::MAX };
    let short = |row: &SessionRow| row.session_id.chars().take(id_length).collect::<String>();
    let asking = live.iter().find(|it| it.state == "asks");
    match (asking, live.first(), all.first()) {
        (Some(row), _, _) | (None, Some(row), _) => {
            print_next(context, &format!("jackfield attach {}", short(row)))
        }
        (None, None, Some(row)) => {
            print_next(context, &format!("jackfield run -s {} \"…\"", short(row)))
        }
        (None, None, None) => {
            print_next(context, "jackfield run \"What does this project do?\" -- goose acp")
        }
    }
}

fn print_next(context: &CommandContext, command: &str) -> Result<(), CommandError> {
    context.output.print_line(&format!("next: {}", paint(NAME, command)))
}
