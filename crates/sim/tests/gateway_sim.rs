//! The simulated world around the gateway, over many seeds.

use crate::seeds::run_seeds;
use jackfield_sim::{gateway_sim, hub_sim::RunTally};

/// Each of these must occur often; otherwise the invariants are not tested.
const TROUBLE: &[&str] = &[
    "answered host_lost",
    "answers",
    "asks answered",
    "asks withdrawn",
    "frames received",
    "sessions attached on another host",
    "hosts lost",
    "host connections bound",
    "host connections lost",
    "host connections opened",
    "pauses",
    "prompts repeated",
    "refusals",
    "requests",
    "sessions adopted",
    "sessions released",
    "foreign requests refused",
    "turns ended",
    "turns interrupted",
];

fn run(seed: u64) -> RunTally {
    gateway_sim::run(seed, gateway_sim::STEPS)
        .unwrap_or_else(|it| panic!("{}\nseed {seed}: {}", it.trace.join("\n"), it.detail))
}

#[test]
fn gateway_invariants_hold_over_many_seeds_and_every_kind_of_trouble_occurs() {
    let tally = run_seeds("gateway");
    for what in TROUBLE {
        assert!(200 < tally.count_of(what), "`{what}` hardly ever happens: {tally:?}");
    }
    // Most requests are answered by a host.
    assert!(tally.count_of("requests") / 3 < tally.count_of("answers"), "{tally:?}");
}

#[test]
fn same_seed_gives_the_same_traffic() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
