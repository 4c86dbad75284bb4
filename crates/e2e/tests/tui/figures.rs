//! Figures for docs/performance.md: the time to the first frame of a long session, and the cost of a fast stream.

use super::{home_with_agent, pane::TerminalPane, run};
use jackfield_e2e::wait_for;
use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

/// The length of the long session.
const EVENTS: u64 = 100_000;
/// The time from the start of the program to the frame with the end of that session.
const FIRST_FRAME_MAX: Duration = Duration::from_millis(300);
/// The share of one core that a stream of 1,000 updates a second may cost.
const STREAM_SHARE_MAX: f64 = 0.10;
/// How long the stream is measured.
const STREAM_SECONDS: u64 = 10;

#[test]
#[ignore = "nightly: measures"]
#[expect(clippy::print_stdout, reason = "the figures are for a document")]
fn end_of_a_long_session_is_shown_soon() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    // Messages and tool calls; the tool call has four events.
    let prompt = "burst 396\ntool\n".repeat(250) + "the end";
    let output = home.run(&["run", "--quiet", "--name", "long", &prompt], Duration::from_mins(5));
    assert!(output.status.success());
    let rows = run(&home, &["sessions", "list", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let events = rows["sessions"][0]["events"].as_u64().unwrap();
    assert!(EVENTS <= events, "{events}");
    let pane = TerminalPane::start(&home, 120, 40);
    let mut times = Vec::new();
    for _ in 0..5 {
        pane.run_shell("clear");
        pane.wait_for_shell();
        let start = Instant::now();
        pane.start_interface("tui long");
        wait_for("the end of the session", Duration::from_secs(30), || {
            pane.screen().contains("you said: the end").then_some(())
        });
        times.push(start.elapsed());
        pane.press(&["C-q"]);
        pane.wait_for_shell();
    }
    times.sort();
    println!("first frame of {events} events: {:?} to {:?}", times[0], times[4]);
    daemon.stop();
    assert!(times[2] <= FIRST_FRAME_MAX, "{times:?}");
}

#[test]
#[ignore = "nightly: measures"]
#[expect(clippy::print_stdout, reason = "the figures are for a document")]
fn stream_of_a_thousand_updates_a_second_costs_little() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    let pane = TerminalPane::start(&home, 120, 40);
    pane.start_interface("");
    pane.wait_for("n new");
    pane.press(&["n"]);
    pane.wait_for("What should the agent do?");
    let count = (STREAM_SECONDS + 5) * 1_000;
    pane.enter_text(&format!("slow {count} 1"));
    pane.press(&["Enter"]);
    pane.wait_for("slow 1");
    let pid = pane.value("pane_pid");
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let pid = children.split_whitespace().last().unwrap().to_owned();
    let (before, start) = (cpu_seconds(&pid), Instant::now());
    // Keys are typed meanwhile; none is lost.
    let mut typed = String::new();
    while start.elapsed() < Duration::from_secs(STREAM_SECONDS) {
        let word = format!("k{} ", typed.len());
        pane.enter_text(&word);
        let _infallible = write!(typed, "{word}");
        std::thread::sleep(Duration::from_millis(250));
    }
    let share = (cpu_seconds(&pid) - before) / start.elapsed().as_secs_f64();
    println!("a stream of 1,000 updates a second costs {:.1} % of one core", share * 100.0);
    let last = typed.split_whitespace().last().unwrap().to_owned();
    pane.wait_for(&last);
    let screen: String = pane.screen().split_whitespace().collect::<Vec<_>>().join(" ");
    for word in typed.split_whitespace() {
        assert!(screen.contains(word), "{word} is missing in\n{screen}");
    }
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
    assert!(share <= STREAM_SHARE_MAX, "{share}");
}

/// The processor time of a process.
fn cpu_seconds(pid: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u32 = [11, 12].map(|it| fields[it].parse::<u32>().unwrap()).iter().sum();
    f64::from(ticks) / 100.0
}
