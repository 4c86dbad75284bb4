//! The simulated world around the bus, over many seeds.

use crate::seeds::run_seeds;
use jackfield_sim::{bus_sim, hub_sim::RunTally};

/// Each of these must occur often; otherwise the invariants are not tested.
const TROUBLE: &[&str] = &[
    "answers",
    "asks",
    "clients closed",
    "errors of workers",
    "notifications delivered",
    "pauses",
    "refusals",
    "reloads",
    "requests",
    "workers started",
];

fn run(seed: u64) -> RunTally {
    bus_sim::run(seed, bus_sim::STEPS)
        .unwrap_or_else(|it| panic!("{}\nseed {seed}: {}", it.trace.join("\n"), it.detail))
}

#[test]
fn bus_invariants_hold_over_many_seeds_and_every_kind_of_trouble_occurs() {
    let tally = run_seeds("bus");
    for what in TROUBLE {
        assert!(400 < tally.count_of(what), "`{what}` hardly ever happens: {tally:?}");
    }
    // Most requests are answered by a worker.
    assert!(tally.count_of("requests") / 3 < tally.count_of("answers"), "{tally:?}");
}

#[test]
fn same_seed_gives_the_same_traffic() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
