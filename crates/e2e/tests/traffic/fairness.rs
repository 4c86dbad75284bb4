//! Nobody who floods the bus makes it slow for the others.

use super::bus::Bus;
use jackfield_testkit::{
    flood::{Flood, pings},
    line_client::{LineClient, To},
};
use std::{io, thread, time::Duration};

/// What the slowest of a hundred pings may take beside a flood.
const P99_MAX: Duration = Duration::from_millis(5);
/// A machine that has other work spoils one of them, not all.
const WINDOWS: usize = 12;
const PINGS: u64 = 200;

#[test]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it by hand")]
fn a_flood_does_not_slow_down_another_session() {
    let limits = serde_json::json!({});
    let bus = Bus::of_pools(&[("quiet", 1), ("loud", 2)], &limits);
    let mut quiet = bus.dial();
    let alone = best(&mut quiet).unwrap();
    let flood = Flood::default();
    let (one, other) = (bus.dial(), bus.dial());
    let beside = thread::scope(|scope| {
        let worker = scope.spawn(|| flood.by_worker(one, &To::in_pool("loud", "a")).unwrap());
        let client = scope.spawn(|| flood.by_client(other, &To::in_pool("loud", "b")).unwrap());
        let beside = best(&mut quiet);
        // Whatever came of it: nobody joins a flood that goes on.
        flood.stop();
        worker.join().unwrap();
        client.join().unwrap();
        beside.unwrap()
    });
    println!("p99 alone {alone:?}, beside {} messages {beside:?}", flood.carried());
    assert!(100_000 < flood.carried(), "that was no flood: {}", flood.carried());
    assert!(beside <= P99_MAX, "p99 is {beside:?} beside a flood, and {alone:?} without");
    drop(quiet);
    bus.stop();
}

/// The best p99 of some windows; one that is good enough is enough.
fn best(client: &mut LineClient) -> io::Result<Duration> {
    let to = To::in_pool("quiet", "q");
    let mut best = Duration::MAX;
    for _ in 0..WINDOWS {
        let mut times = pings(client, &to, PINGS)?;
        times.sort_unstable();
        best = best.min(times[(times.len() - 1) * 99 / 100]);
        if best <= P99_MAX {
            break;
        }
    }
    Ok(best)
}
