//! Whether a quiet session stays quick beside a worker and a client that flood the bus.

use super::{Program, Running, Transport, World, trouble};
use crate::figures::{ms, percentile};
use anyhow::Result;
use jackfield_test_support::{
    flood::BusFlood,
    line_client::{LineClient, MessageTarget},
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// So many pings make one figure.
const PINGS: u64 = 1_000;
const WINDOWS: usize = 3;

pub(super) fn run(world: &World<'_>) {
    println!("{:<34} {:>12} {:>12} {:>12}", "FAIRNESS", "PING P50 ms", "PING P99 ms", "FLOOD/s");
    if let Err(error) = direct(world) {
        println!("{:<34} {}", "direct pipes", trouble(&error));
    }
    for program in &world.programs {
        if let Err(error) = through(world, program) {
            println!("{:<34} {}", program.name, trouble(&error));
        }
    }
    println!("(unix; best p99 of {WINDOWS} windows; target 5 ms)\n");
}

/// The same load with nothing in between: what the machine itself makes of it.
fn direct(world: &World<'_>) -> Result<()> {
    let (_first, quiet) = Running::direct(world.worker)?;
    let (_second, one) = Running::direct(world.worker)?;
    let (_third, other) = Running::direct(world.worker)?;
    beside("direct pipes", quiet, one, other)
}

fn through(world: &World<'_>, program: &Program) -> Result<()> {
    let config = world.pools(&[("quiet", 1), ("loud", 2)]);
    let (bus, quiet) = world.start(program, Transport::Unix, &config)?;
    beside(&program.name, quiet, bus.dial()?, bus.dial()?)
}

fn beside(name: &str, mut quiet: LineClient, one: LineClient, other: LineClient) -> Result<()> {
    let flood = BusFlood::default();
    row(&format!("{name}, alone"), &mut quiet, &flood)?;
    thread::scope(|scope| {
        let worker = scope.spawn(|| flood.by_worker(one, &MessageTarget::in_pool("loud", "a")));
        let client = scope.spawn(|| flood.by_client(other, &MessageTarget::in_pool("loud", "b")));
        let measured = row(&format!("{name}, beside a flood"), &mut quiet, &flood);
        flood.stop();
        let floods = [worker, client].map(|it| it.join().expect("a flood does not panic"));
        floods.into_iter().fold(measured, |result, it| result.and(it.map_err(Into::into)))
    })
}

fn row(name: &str, quiet: &mut LineClient, flood: &BusFlood) -> Result<()> {
    let to = MessageTarget::in_pool("quiet", "q");
    let mut best = (Duration::MAX, Duration::MAX);
    let (begin, before) = (Instant::now(), flood.carried());
    for _ in 0..WINDOWS {
        let pings = flood.pings(quiet, &to, PINGS)?;
        let mut times: Vec<_> = pings.iter().map(|it| it.took).collect();
        best = best.min((percentile(&mut times, 99), percentile(&mut times, 50)));
    }
    let carried = u32::try_from(flood.carried() - before)?;
    let rate = f64::from(carried) / begin.elapsed().as_secs_f64();
    println!("{name:<34} {:>12.2} {:>12.2} {rate:>12.0}", ms(best.1), ms(best.0));
    Ok(())
}
