//! The simulated world around the hub, over many seeds.

use crate::seeds::run_seeds;
use jackfield_sim::hub_sim;

/// Each of these must occur at least once, or the invariants are proved over nothing.
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
    "relays sent away",
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
    "storage notices",
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

#[test]
fn invariants_hold_over_many_seeds_and_every_kind_of_trouble_occurs() {
    let tally = run_seeds("hub");
    let missing: Vec<_> = TROUBLE.iter().filter(|it| tally.of(it) == 0).collect();
    assert!(missing.is_empty(), "never seen: {missing:?} in {tally:?}");
}

#[test]
fn same_seed_gives_the_same_events() {
    let tally = |seed| hub_sim::run(seed, 1_000).expect("the invariants hold for this seed");
    assert_eq!(tally(7), tally(7));
    assert_ne!(tally(7), tally(8));
}
