//! `jackfield` without a command: shows what is running and the next useful command.

use super::ps;
use crate::{
    context::CommandContext,
    hub::{OWN_AGENT, SessionRow, list_sessions, survey_agents, unique_prefix_length},
    out::{BRIGHT, NAME, paint},
    report::CommandError,
};
use jackfield_tui::{AgentOverview, OverviewLine};

pub(crate) fn run(context: &CommandContext) -> Result<(), CommandError> {
    let Some(mut conn) = context.daemon.connect_if_running("status")? else {
        context
            .output
            .print_line("no daemon is running; the next command that needs it starts it")?;
        return if context.daemon.paths().journal().exists() {
            print_next(context, "jackfield sessions list")
        } else {
            print_first_steps(context)
        };
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
        (None, None, None) => print_first_steps(context),
    }
}

/// What the terminal interface shows to a user without sessions.
fn print_first_steps(context: &CommandContext) -> Result<(), CommandError> {
    let overview = survey_agents(context.daemon.paths());
    context.output.print_line("")?;
    for line in overview.lines() {
        context.output.print_line(&match line {
            OverviewLine::Heading(text) => paint(BRIGHT, text),
            OverviewLine::Entry(text) => format!("  {text}"),
            OverviewLine::Blank => String::new(),
        })?;
    }
    context.output.print_line("")?;
    print_next(context, &first_command(&overview))
}

/// Starts an installed agent, or installs one.
fn first_command(overview: &AgentOverview) -> String {
    if let Some(suggested) = overview.suggested.first() {
        return suggested.remark.clone();
    }
    let agent = overview.installed.first().map_or(OWN_AGENT, |it| &it.name);
    format!("jackfield run --agent {agent} \"What does this project do?\"")
}

fn print_next(context: &CommandContext, command: &str) -> Result<(), CommandError> {
    context.output.print_line(&format!("next: {}", paint(NAME, command)))
}
