//! Talking: a text, a tool, a memory, and a memory that outlives the daemon.

use super::{
    rig::Way,
    stage::{Reply, Stage},
    table::{Cell, cell},
};
use jackfield_e2e::wait_for;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HELLO: &str = "Hello from the fake model.";

/// The text arrives once, and the turn ends.
pub(super) fn text(stage: &mut Stage) -> Vec<Cell> {
    let turn = stage.turn("Say hello", Reply::Allow);
    assert_eq!(turn.stop(), "end_turn", "{}", stage.story(&turn));
    let times = turn.text.matches(HELLO).count();
    assert_eq!(times, 1, "said {times} times: {}", stage.story(&turn));
    vec![cell("version", &version(stage)), cell("text", "yes")]
}

fn version(stage: &Stage) -> String {
    let has_digit = |it: &&str| it.contains(|it: char| it.is_ascii_digit());
    match stage.rig.way {
        Way::Acp(_) => stage.hello["agentInfo"]["version"].as_str().unwrap_or("?").to_owned(),
        Way::Adapter(_) => {
            let output = stage.cli.command(&["--version"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.split_whitespace().find(has_digit).unwrap_or("?").to_owned()
        }
    }
}

/// A tool call is shown until it is completed, with its output, and the answer follows.
pub(super) fn tool(stage: &mut Stage) -> Vec<Cell> {
    let turn = stage.turn("TOOL please", Reply::Allow);
    let story = stage.story(&turn);
    assert_eq!(turn.stop(), "end_turn", "{story}");
    let told = turn.text.contains("The tool answered: ") && turn.text.contains("hello-from-tool");
    assert!(told, "the model was not told what the tool answered: {story}");
    let shown = turn.tools.values().find(|it| it.said.contains("hello-from-tool"));
    let says = match shown {
        Some(tool) if tool.status == "completed" => "yes",
        Some(_) => "never completed",
        None if turn.tools.is_empty() => "not shown",
        None => "without output",
    };
    vec![cell("tools", says).because(story)]
}

/// The second turn knows of the first.
pub(super) fn memory(stage: &mut Stage) -> Vec<Cell> {
    let turn = stage.turn("Say hello", Reply::Allow);
    assert_eq!(turn.stop(), "end_turn", "{}", stage.story(&turn));
    let (says, story) = remembers(stage);
    vec![cell("second turn", says).because(story)]
}

/// The session goes on in a new daemon after the old one was killed.
pub(super) fn resume(stage: &mut Stage) -> Vec<Cell> {
    let turn = stage.turn("Say hello", Reply::Allow);
    assert_eq!(turn.stop(), "end_turn", "{}", stage.story(&turn));
    stage.kill_daemon();
    if stage.rig.resumes_late {
        let begun = minute();
        wait_for("the next minute", Duration::from_secs(61), || (begun != minute()).then_some(()));
    }
    stage.restart();
    let (says, story) = remembers(stage);
    let late = says == "yes" && stage.rig.resumes_late;
    vec![cell("after a crash", if late { "after a minute" } else { says }).because(story)]
}

fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60
}

/// Whether it knows more messages than this one, and what it said.
fn remembers(stage: &mut Stage) -> (&'static str, String) {
    let turn = stage.turn("COUNT what you see", Reply::Allow);
    let story = stage.story(&turn);
    let why = turn.answer.as_ref().and_then(|it| it.pointer("/error/data/jackfield/code"));
    if why.is_some_and(|it| it == "cannot_resume") {
        return ("no", story);
    }
    assert_eq!(turn.stop(), "end_turn", "{story}");
    let count = turn.count().unwrap_or_else(|| panic!("no number: {story}"));
    (if 2 <= count { "yes" } else { "no" }, story)
}
