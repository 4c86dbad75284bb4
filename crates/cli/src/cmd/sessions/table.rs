//! The table of sessions, and the cells that other lists share.

use crate::{
    context::CommandContext,
    hub::{SessionRow, unique_prefix_length},
    out::{BRIGHT, DIM, DONE, NAME, TableCell, TextTable, WARNING, format_age, parse_rfc3339},
    plain_text::to_one_line,
    report::CommandError,
};
use std::path::Path;

/// Prints `shown`; ids are shortened to prefixes that are unique in `all`.
pub(super) fn print_table(
    context: &CommandContext,
    all: &[SessionRow],
    shown: &[&SessionRow],
) -> Result<(), CommandError> {
    let id_length = unique_prefix_length(all);
    let mut headings = vec!["SESSION", "AGENT", "STATE", "TURNS", "LAST", "DIR", "TITLE"];
    let has_names = shown.iter().any(|it| it.name.is_some());
    if has_names {
        headings.insert(1, "NAME");
    }
    let mut table = TextTable::new(&headings);
    for row in shown {
        let mut cells = vec![
            id_cell(context, row, id_length),
            TableCell::styled(row.agent.clone(), NAME),
            state_cell(row),
            TableCell::new(row.turns.to_string()),
            time_cell(context, &row.updated_at),
            directory_cell(context, &row.cwd),
            TableCell::new(to_one_line(row.title.as_deref().unwrap_or_default(), usize::MAX)),
        ];
        if has_names {
            cells.insert(1, name_cell(row));
        }
        table.add_row(cells);
    }
    table.print(&context.output)
}

pub(in crate::cmd) fn name_cell(row: &SessionRow) -> TableCell {
    TableCell::styled(row.name.as_deref().unwrap_or("-"), BRIGHT)
}

/// The directory; on a terminal only its end, with `~` for the home directory.
pub(in crate::cmd) fn directory_cell(context: &CommandContext, cwd: &str) -> TableCell {
    if !context.output.is_terminal() {
        return TableCell::new(cwd);
    }
    let home = std::env::var("HOME").unwrap_or_default();
    TableCell::new(to_one_line(&shorten_directory(cwd, &home), usize::MAX))
}

fn shorten_directory(cwd: &str, home: &str) -> String {
    const CHARS_MAX: usize = 28;
    let below_home = Path::new(cwd).strip_prefix(home).ok().filter(|_| !home.is_empty());
    let path = match below_home {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => cwd.to_owned(),
    };
    let mut shown = path.as_str();
    while CHARS_MAX < shown.chars().count()
        && let Some((_, rest)) = shown.trim_start_matches('/').split_once('/')
    {
        shown = rest;
    }
    if shown.len() < path.len() { format!("…/{shown}") } else { path }
}

/// The id, on a terminal shortened to a unique prefix.
pub(in crate::cmd) fn id_cell(
    context: &CommandContext,
    row: &SessionRow,
    id_length: usize,
) -> TableCell {
    TableCell::styled(shorten_id(context, &row.session_id, id_length), BRIGHT)
}

pub(in crate::cmd) fn shorten_id(context: &CommandContext, id: &str, id_length: usize) -> String {
    if context.output.is_terminal() { id.chars().take(id_length).collect() } else { id.to_owned() }
}

pub(in crate::cmd) fn state_cell(row: &SessionRow) -> TableCell {
    let style = match row.state.as_str() {
        "asks" | "quiet" | "stalled" | "waiting" => WARNING,
        "working" | "starting" | "opening" => DONE,
        "asleep" | "closed" => DIM,
        _ => anstyle::Style::new(),
    };
    TableCell::styled(row.state.clone(), style)
}

/// The age on a terminal, the time itself elsewhere.
pub(in crate::cmd) fn time_cell(context: &CommandContext, time: &str) -> TableCell {
    TableCell::new(format_time(context, time))
}

pub(in crate::cmd) fn format_time(context: &CommandContext, time: &str) -> String {
    match parse_rfc3339(time).filter(|_| context.output.is_terminal()) {
        Some(then) => format_age(then),
        None => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shorten_directory;

    #[test]
    fn directory_is_shortened_from_the_left() {
        assert_eq!(shorten_directory("/home/me/src/jackfield", "/home/me"), "~/src/jackfield");
        assert_eq!(shorten_directory("/home/me", "/home/me"), "~");
        assert_eq!(shorten_directory("/home/meg", "/home/me"), "/home/meg");
        assert_eq!(
            shorten_directory("/srv/customers/example/website/frontend", ""),
            "…/example/website/frontend"
        );
        let one_long_name = "/a-directory-with-a-very-long-name";
        assert_eq!(shorten_directory(one_long_name, ""), one_long_name);
    }
}
