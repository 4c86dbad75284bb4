//! With a tool running: a cancel, a close and a killed daemon leave no process behind.

use super::{
    stage::{GONE_MAX, Reply, Stage, TURN_MAX},
    table::{Cell, cell},
    turn::Turn,
};
use jackfield_e2e::procs;
use serde_json::json;
use std::{
    fs,
    time::{Duration, Instant},
};

/// Who is silent for so long has taken note of the tool it started; before, codex may miss it.
const SETTLED: Duration = Duration::from_millis(300);

pub(super) fn gone(stage: &mut Stage) -> Vec<Cell> {
    let (turn, tools) = run_tool(stage);
    stage.cancel();
    stage.finish(turn, Reply::Allow);
    // The agent itself stays: the next prompt is for it.
    let is_alive = |it: &u32| procs::is_alive(*it);
    let cancelled = stage.comes_true(GONE_MAX, |_| !tools.iter().any(is_alive));
    let next = stage.turn("Say hello", Reply::Allow);
    let stuck = !next.text.contains("Hello from the fake model.");
    if !cancelled || stuck {
        close(stage);
        stage.open_another();
    }

    run_tool(stage);
    close(stage);
    let closed = stage.comes_true(GONE_MAX, |it| it.others().is_empty());

    stage.open_another();
    run_tool(stage);
    let crashed = stage.kill_daemon();

    let says = |it: bool| if it { "yes" } else { "no" };
    let stuck = if stuck { ", then stuck" } else { "" };
    vec![
        cell("cancel leaves nothing", &[says(cancelled), stuck].concat())
            .because(stage.story(&next)),
        cell("close leaves nothing", says(closed)),
        cell("crash leaves nothing", says(crashed)),
    ]
}

fn close(stage: &mut Stage) {
    stage.client.result("session/close", &json!({ "sessionId": stage.session }));
}

/// Begins a turn whose tool runs for half a minute; its processes.
fn run_tool(stage: &mut Stage) -> (Turn, Vec<u32>) {
    let before = tools(stage);
    let mut turn = stage.begin("SLEEP a while");
    let begin = Instant::now();
    loop {
        let new: Vec<u32> = tools(stage).into_iter().filter(|it| !before.contains(it)).collect();
        // The shell comes first, then what it runs.
        if new.iter().any(|it| command(*it).starts_with("tail ")) {
            while stage.step(&mut turn, Reply::Allow, SETTLED) {}
            return (turn, new);
        }
        stage.step(&mut turn, Reply::Allow, Duration::from_millis(20));
        assert!(turn.answer.is_none(), "no tool ran: {}", stage.story(&turn));
        assert!(begin.elapsed() < TURN_MAX, "no tool runs: {}", stage.story(&turn));
    }
}

/// The tool is `timeout 30 tail -f /dev/null`, in a shell or more of the agent's.
fn tools(stage: &Stage) -> Vec<u32> {
    let is_tool = |it: &u32| command(*it).contains("tail -f /dev/null");
    stage.others().into_iter().filter(is_tool).collect()
}

fn command(pid: u32) -> String {
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.replace('\0', " ")
}
