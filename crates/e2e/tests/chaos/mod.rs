//! Many sessions whose agents misbehave in different ways, while agents, clients and the daemon are killed at random:
//! at the end no process is left, and all clients and the journal agree.
//!
//! Every change runs forty sessions for fifteen seconds; `cargo xtask chaos` runs more of them for longer.
//!
//! Read in this order: `world` (what is shared), `actor` (who uses the sessions), `conn` (what holds
//! on each connection), `killer`, `check` and `story` (what must hold in the end).
//!
//! One seed decides every flag, act and victim. When each happens is up to the machine, so a seed
//! that failed need not fail again at once; `docs/testing.md` says how to run one for longer.

mod actor;
mod check;
mod conn;
mod ear;
mod killer;
mod story;
mod temper;
mod world;

use actor::Actor;
use jackfield_e2e::{Daemon, wait_for};
use jackfield_test_support::rng::Rng;
use std::{
    thread,
    time::{Duration, Instant},
};
use world::{Plan, World};

/// What must have happened for a run to mean anything, as the actors count it and as the logs do.
const ACTS: &[&str] = &[
    "agents killed",
    "asks answered",
    "cancels",
    "clients came",
    "clients killed",
    "clients killed in mid-ask",
    "daemons killed",
    "prompts",
    "prompts answered by the agent",
    "prompts withdrawn",
];
const KINDS: &[&str] = &[
    "answered by someone",
    "bound",
    "cancelled",
    "failed",
    "gone",
    "interrupted",
    "stopped",
    "void",
];

#[test]
#[expect(clippy::print_stderr, reason = "what happened, for whoever runs it by hand")]
fn whoever_is_killed_and_whenever_nothing_leaks_and_everything_has_one_outcome() {
    let world = World::new(Plan::from_env());
    let daemon = trouble(&world);
    at_rest(&world);
    killer::check_memory(&world, &daemon);
    daemon.stop();
    let kinds = check::check(&world);
    let tally = world.tally();
    eprintln!("{:?}: {} events heard\n{tally:#?}\n{kinds:#?}", world.plan, world.ear.len());
    for what in ACTS.iter().filter(|it| !tally.contains_key(**it)) {
        world.fault(format!("it never happened: {what}"));
    }
    for what in KINDS.iter().filter(|it| !kinds.contains_key(**it)) {
        world.fault(format!("no log has it: {what}"));
    }
    let faults = world.faults();
    let again = world.plan.again();
    assert!(faults.is_empty(), "run it again: {again}\n{}", faults.join("\n"));
}

/// Everybody lives until trouble is over and their sessions are at rest.
fn trouble(world: &World) -> Daemon {
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let ends = Ends(world);
            let daemon = killer::kill(world, Rng::new(world.plan.seed));
            drop(ends);
            daemon
        });
        for number in 0..world.plan.sessions {
            scope.spawn(move || Actor::new(world, number).live());
        }
        killer.join().unwrap_or_else(|_| {
            check::check_daemons(world);
            let (again, said) = (world.plan.again(), world.home.said());
            let faults = world.faults().join("\n");
            panic!("no daemon; run it again: {again}\n{faults}\nthey said:\n{said}")
        })
    })
}

/// Whoever leaves ends the trouble, also by a panic.
struct Ends<'a>(&'a World);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.calm_down();
    }
}

/// Everyone has left: no session has anything open.
fn at_rest(world: &World) {
    let bound = Duration::from_mins(1);
    let mut client = world.home.dial();
    client.hello();
    let (begin, mut left) = (Instant::now(), Vec::new());
    wait_for("every session to be at rest, or for long enough", bound * 2, || {
        left = killer::rows(&mut client);
        left.retain(is_busy);
        (left.is_empty() || bound < begin.elapsed()).then_some(())
    });
    let faults = world.faults().join("\n");
    assert!(left.is_empty(), "not at rest after {bound:?}: {left:#?}\n{faults}");
}

fn is_busy(row: &serde_json::Value) -> bool {
    let works = matches!(row["state"].as_str(), Some("working" | "asks"));
    works || row["asks"] != 0 || row["queued"] != 0
}
