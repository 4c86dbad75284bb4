//! The seeds that every change runs, the same for each simulated world.

use jackfield_sim::{
    hub_sim::RunTally,
    worlds::{SeedFailure, WORLDS},
};

/// The number of seeds, unless `SIM_SEEDS` asks for more.
const SEEDS_MIN: u64 = 1_000;

/// Runs the seeds of the world with this name; panics with the command that replays the one that fails.
pub(crate) fn run_seeds(name: &str) -> RunTally {
    let wanted = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok());
    let seeds = wanted.unwrap_or(SEEDS_MIN).max(SEEDS_MIN);
    run_range(name, 0..seeds)
}

/// Runs these seeds of the world with this name.
pub(crate) fn run_range(name: &str, seeds: std::ops::Range<u64>) -> RunTally {
    let world = WORLDS.iter().find(|it| it.name == name).expect("a simulated world has this name");
    world.run_seeds(seeds, world.steps).unwrap_or_else(|failure| {
        let SeedFailure { seed, steps, invariant, detail, trace } = failure;
        let replay = world.replay_command(seed, steps);
        let end = &trace[trace.len().saturating_sub(60)..];
        let end = end.join("\n");
        panic!("{end}\nseed {seed} breaks `{invariant}`: {detail}\nreplay: {replay}")
    })
}
