//! The simulator over many seeds, and tests of the simulator itself.

use jackfield_testkit::{
    sim::{self, Tally},
    worlds::Failure,
};

/// What must really happen in these worlds, or the invariants are held over nothing.
const TROUBLE: &[&str] = &[
    "agent could not start",
    "agent died by itself",
    "agent fell silent",
    "agents left alone",
    "agents paused",
    "appends failed",
    "appends retried",
    "asks answered",
    "asks answered by a rule",
    "asks answered from outside",
    "asks voided",
    "asks raced",
    "asks withdrawn by the agent",
    "clients fell behind",
    "clients finished",
    "clients hung up on",
    "clients left",
    "crashes",
    "early updates",
    "forks cut by a crash",
    "forks failed",
    "initialize refused",
    "load or resume refused",
    "orderly stops",
    "overloaded",
    "legs sent away",
    "passing words heard",
    "prompts cancelled",
    "prompts held",
    "prompts queued",
    "prompts released",
    "prompts run after a wait",
    "prompts said again",
    "prompts steered",
    "prompts withdrawn",
    "quotas met",
    "reads failed",
    "replayed updates",
    "requests withdrawn",
    "session/new refused",
    "sessions adopted",
    "sessions deleted",
    "sessions fenced",
    "prompts disowned",
    "sessions forked",
    "sessions closed in their process",
    "sessions let go",
    "sessions let go while they work",
    "sessions of another agent",
    "sessions put to sleep",
    "sessions reloaded",
    "sessions reseeded",
    "sessions resumed",
    "sessions taken away",
    "short of memory",
    "silences told",
    "strangers turned away",
    "tails torn",
    "turns failed",
    "turns lost with their host",
    "turns interrupted",
    "turns side by side in one process",
    "turns stopped",
    "updates outside a turn",
    "words that were nobody's",
];

fn explain(failure: &Failure) -> String {
    let Failure { seed, steps, invariant, detail, .. } = failure;
    let replay = format!("cargo xtask sim --world hub --seed {seed} --steps {steps} --trace");
    format!("seed {seed} breaks `{invariant}`: {detail}\nreplay: {replay}")
}

#[test]
fn every_invariant_holds_over_many_seeds() {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(2_000);
    for seed in 0..seeds {
        if let Err(failure) = sim::run(seed, sim::STEPS) {
            panic!("{}", explain(&failure));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let tally = |seed| sim::run(seed, 1_000).expect("holds");
    assert_eq!(tally(7), tally(7));
    assert_ne!(tally(7), tally(8));
}

#[test]
fn every_kind_of_trouble_occurs() {
    let mut all = Tally::default();
    for seed in 0..2_000 {
        all.add(&sim::run(seed, sim::STEPS).unwrap_or_else(|it| panic!("{}", explain(&it))));
    }
    let missing: Vec<_> = TROUBLE.iter().filter(|it| all.of(it) == 0).collect();
    assert!(missing.is_empty(), "never seen: {missing:?} in {all:?}");
}
