//! The cost of a start inside a sandbox, with the real daemon. `JACKFIELD_RELEASE_BINARY` names an optimized program.

use crate::sandbox::{SandboxScene, TestedLayer};
use jackfield_e2e::home::binary;
use std::{
    env,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

/// How much later a session of a sandboxed agent may open than one of a bare agent.
const COST_MAX: Duration = Duration::from_millis(30);
const ROUNDS: usize = 41;

/// A scene whose daemon is the program to be measured.
fn measured_scene(layer: TestedLayer) -> SandboxScene {
    let program = env::var_os("JACKFIELD_RELEASE_BINARY");
    let program = program.map_or_else(|| binary("jackfield"), PathBuf::from);
    let SandboxScene { home, daemon, work, server } = SandboxScene::new(layer);
    daemon.stop();
    let daemon = home.serve_by(Command::new(program), &[]);
    SandboxScene { home, daemon, work, server }
}

/// The time from the connection of a client to the answer of its agent to `session/new`: the start of the process,
/// `initialize` and the opening.
fn time_opening(scene: &SandboxScene, profile: &str) -> Duration {
    let agent = scene.home.fake_agent(&[]);
    let begin = Instant::now();
    scene.connect(&agent, profile).open(&scene.work);
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
#[ignore = "nightly: a measurement, which needs an optimized program and an idle machine"]
#[expect(clippy::print_stderr, reason = "figures for the documentation")]
fn session_of_a_sandboxed_agent_opens_at_most_30_ms_later_than_of_a_bare_one() {
    let (namespaces, rules) =
        (measured_scene(TestedLayer::Bubblewrap), measured_scene(TestedLayer::Landlock));
    let cases = [
        ("bare", &namespaces, "open"),
        ("bubblewrap", &namespaces, "workspace"),
        ("Landlock", &rules, "workspace"),
    ];
    let mut times = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        // They alternate, so that the load of the machine concerns all of them.
        for (times, (_, scene, profile)) in times.iter_mut().zip(&cases) {
            let time = time_opening(scene, profile);
            // The first start detects the layers, once for a daemon.
            if 0 < round {
                times.push(time);
            }
        }
    }
    let medians = times.map(median);
    for ((name, ..), time) in cases.iter().zip(medians) {
        let cost = time.saturating_sub(medians[0]);
        eprintln!("{name}: {time:?}, {cost:?} more than bare");
        let is_fast = cost <= COST_MAX || env::var_os("JACKFIELD_RELEASE_BINARY").is_none();
        assert!(is_fast, "{name}: {time:?} against {:?}", medians[0]);
    }
    namespaces.daemon.stop();
    rules.daemon.stop();
}
