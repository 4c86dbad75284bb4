//! A provider that refuses: what the client hears of it, and that the session goes on.

use super::{
    stage::{Reply, Stage, TURN_MAX},
    table::{Cell, cell},
    turn::Turn,
};
use serde_json::Value;
use std::time::Duration;

/// A status, its column, and words that name the cause.
type Trouble = (u16, &'static str, &'static [&'static str]);

const TROUBLES: &[Trouble] = &[
    (401, "401", &["401", "api key", "unauthorized", "auth"]),
    (429, "429", &["429", "rate limit", "too many requests", "quota"]),
    (500, "500", &["500", "server error", "high demand", "unavailable", "overloaded"]),
];

/// Who has said nothing by then is left to retry.
const REPORT_MAX: Duration = Duration::from_mins(1);

/// What it reports soon.
pub(super) fn quick(stage: &mut Stage) -> Vec<Cell> {
    let quick = stage.rig.quick_errors;
    let bound = if stage.rig.every_merge { TURN_MAX } else { REPORT_MAX };
    suffer(stage, bound, |status| quick.contains(&status))
}

/// What it reports after many attempts, if ever.
pub(super) fn slow(stage: &mut Stage) -> Vec<Cell> {
    let quick = stage.rig.quick_errors;
    suffer(stage, REPORT_MAX, |status| !quick.contains(&status))
}

fn suffer(stage: &mut Stage, bound: Duration, which: impl Fn(u16) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (status, column, words) in TROUBLES.iter().filter(|it| which(it.0)) {
        let mut turn = stage.begin(&format!("ERR{status} please"));
        let mut says = if stage.play(&mut turn, Reply::Allow, bound) {
            heard(&turn, words).to_owned()
        } else {
            stage.cancel();
            turn = stage.finish(turn, Reply::Allow);
            format!("retries, {} s and more", bound.as_secs())
        };
        let mut story = stage.story(&turn);
        let next = stage.turn("Say hello", Reply::Allow);
        if next.stop() != "end_turn" {
            story += &stage.story(&next);
            says += ", then stuck";
            stage.open_another();
        }
        cells.push(cell(column, &says).because(story));
    }
    cells
}

/// How the client hears of it.
fn heard(turn: &Turn, words: &[&str]) -> &'static str {
    let names_it = |text: &str| {
        let text = text.to_lowercase();
        words.iter().any(|it| text.contains(it))
    };
    let error = turn.answer.as_ref().and_then(|it| it.get("error"));
    match error {
        Some(error) if !names_it(&error.to_string()) => "vague error",
        Some(error) if error.pointer("/data/hint").is_some_and(Value::is_string) => {
            "error with hint"
        }
        Some(_) => "error",
        None if names_it(&turn.text) => "as text",
        None if turn.text.trim().is_empty() => "silent",
        None => "vague text",
    }
}
