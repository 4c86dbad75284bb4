//! `jackfield` alone: what is running, and the next useful command.

use super::ps;
use crate::{
    app::Desk,
    hub::{Row, sessions, unique_chars},
    out::{NAME, paint},
    report::Failure,
};

pub(crate) fn run(desk: &Desk) -> Result<(), Failure> {
    let Some(mut conn) = desk.dial.talk_if_running("status")? else {
        desk.out.line("no daemon is running; the first command that needs one starts it")?;
        return next(desk, "jackfield run \"What does this project do?\" -- goose acp");
    };
    let all = sessions(&mut conn)?;
    let live: Vec<&Row> = all.iter().filter(|it| it.is_live()).collect();
    let summary = match (live.len(), all.len()) {
        (_, 0) => "a daemon is running; there are no sessions yet".to_owned(),
        (0, all) => format!("a daemon is running; no session is awake, {all} in all"),
        (live, all) => format!("{live} of {all} sessions are awake"),
    };
    desk.out.line(&summary)?;
    if !live.is_empty() {
        ps::table(desk, &all, &live)?;
    }
    let chars = if desk.out.has_reader() { unique_chars(&all) } else { usize::MAX };
    let short = |row: &Row| row.session_id.chars().take(chars).collect::<String>();
    let asking = live.iter().find(|it| it.state == "asks");
    match (asking, live.first(), all.first()) {
        (Some(row), _, _) | (None, Some(row), _) => {
            next(desk, &format!("jackfield attach {}", short(row)))
        }
        (None, None, Some(row)) => next(desk, &format!("jackfield run -s {} \"…\"", short(row))),
        (None, None, None) => {
            next(desk, "jackfield run \"What does this project do?\" -- goose acp")
        }
    }
}

fn next(desk: &Desk, command: &str) -> Result<(), Failure> {
    desk.out.line(&format!("next: {}", paint(NAME, command)))
}
