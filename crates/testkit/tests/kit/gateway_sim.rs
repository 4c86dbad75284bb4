//! The world around the gateway over many seeds.

use jackfield_testkit::{gateway_sim, sim::Tally};

/// What must really happen in these worlds, or the invariants are held over nothing.
const TROUBLE: &[&str] = &[
    "answered host_lost",
    "answers",
    "asks answered",
    "asks withdrawn",
    "frames heard",
    "heard on elsewhere",
    "hosts lost",
    "legs bound",
    "legs lost",
    "legs opened",
    "pauses",
    "prompts asked again",
    "refusals",
    "requests",
    "sessions adopted",
    "sessions let go",
    "strangers turned away",
    "turns ended",
    "turns interrupted",
];

fn run(seed: u64) -> Tally {
    gateway_sim::run(seed, gateway_sim::STEPS)
        .unwrap_or_else(|it| panic!("{}\nseed {seed}: {}", it.trace.join("\n"), it.detail))
}

#[test]
fn the_gateway_keeps_its_word_over_many_seeds() {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(500);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        tally.add(&run(seed));
    }
    for what in TROUBLE {
        assert!(50 < tally.of(what), "`{what}` hardly ever happens: {tally:?}");
    }
    // Most of what is asked is answered by who was asked.
    assert!(tally.of("requests") / 3 < tally.of("answers"), "{tally:?}");
}

#[test]
fn the_same_seed_gives_the_same_traffic() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
