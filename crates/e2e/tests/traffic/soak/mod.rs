//! A day of the bus in minutes: clients and workers come and go, one reads slowly, and at both ends
//! counts and checksums say that nothing was lost or said twice; memory and descriptors stay.
//!
//! CI runs a minute; `cargo xtask soak` runs ten, with a release build.

mod gauge;
mod talker;

use super::bus::Bus;
use gauge::Gauge;
use jackfield_e2e::procs;
use std::{
    env, thread,
    time::{Duration, Instant},
};
use talker::{Talker, Tally};

const STEADY: usize = 3;
const MORTAL: usize = 2;

#[test]
#[ignore = "nightly: a minute and more; the simulated bus is tested with every change"]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it by hand")]
fn nothing_is_lost_or_said_twice_and_nothing_grows() {
    let seconds = env::var("SOAK_SECONDS").ok().and_then(|it| it.parse().ok()).unwrap_or(60);
    // A window that is over before the next worker is killed: each starts at once.
    let limits = serde_json::json!({
        "max_output_queue": 256 * 1024, "restart_window_sec": 1, "max_restarts": 100,
    });
    let pools = [("steady", STEADY), ("mortal", MORTAL), ("slow", 1)];
    let bus = Bus::of_pools(&pools, &limits);
    let all = |pool: &str, count: usize| bus.workers(pool).len() == count;
    let started = Duration::from_secs(20);
    jackfield_e2e::wait_for("every worker", started, || {
        pools.iter().all(|(pool, count)| all(pool, *count)).then_some(())
    });
    let mut gauge = Gauge::new(&bus);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (tally, killed) = thread::scope(|scope| {
        let bus = &bus;
        let mut people = Vec::new();
        for seed in 1..=3 {
            people.push(scope.spawn(move || visits(bus, "steady", seed, end)));
        }
        for seed in 4..=5 {
            people.push(scope.spawn(move || visits(bus, "mortal", seed, end)));
        }
        people.push(scope.spawn(move || Talker::new(bus, "slow", 6).read_slowly(end)));
        people.push(scope.spawn(move || runaways(bus, end)));
        let killer = scope.spawn(move || kill(bus, end));
        gauge.watch(bus, end);
        let tally = people.into_iter().fold(Tally::default(), |sum, it| sum + it.join().unwrap());
        (tally, killer.join().unwrap())
    });
    println!("{tally:?}, {killed} workers killed");
    println!("{gauge}");
    assert!(0 < tally.failed, "a worker that is killed has work: {tally:?}");
    assert!(seconds / 4 <= killed, "workers are killed: {killed}");
    gauge.check(&bus);
    bus.stop();
}

/// One client after another, each with some sessions of its own.
fn visits(bus: &Bus, pool: &'static str, seed: u64, end: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut visit = 0;
    while Instant::now() < end {
        visit += 1;
        tally = tally + Talker::new(bus, pool, seed * 1_000_000 + visit).talk(end);
    }
    tally
}

/// Clients that leave in the middle of a burst, of an answer and of their own words.
fn runaways(bus: &Bus, end: Instant) -> Tally {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let to = jackfield_test_support::line_client::MessageTarget::in_pool(
            "steady",
            format!("gone-{}", tally.visits),
        );
        let mut client = bus.dial();
        let burst = to.request(1, "bench/burst", ",\"count\":2000,\"bytes\":290");
        let half = &to.request(2, "bench/ping", "")[..20];
        client.send(burst.as_bytes()).unwrap();
        client.line().unwrap();
        client.send(half.as_bytes()).unwrap();
        drop(client);
        tally.visits += 1;
        thread::sleep(Duration::from_millis(20));
    }
    tally
}

/// One mortal worker after another, a second apart.
fn kill(bus: &Bus, end: Instant) -> u64 {
    let mut killed = 0;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(1_500));
        let workers = bus.workers("mortal");
        if let Some(pid) = workers.get(usize::try_from(killed).unwrap() % workers.len().max(1)) {
            procs::kill_9(*pid);
            killed += 1;
        }
    }
    killed
}
