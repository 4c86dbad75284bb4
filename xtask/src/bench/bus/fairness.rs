//! Whether a quiet session stays quick beside a worker and a client that flood the bus.

use super::{Program, Running, Transport, World, ask, trouble};
use crate::bench::figures::{ms, percentile};
use anyhow::Result;
use jackfield_testkit::line_client::{LineClient, To, write_all};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Pings are sent so far apart, and so many make one figure.
const PAUSE: Duration = Duration::from_millis(1);
const PINGS: usize = 1_000;
const WINDOWS: usize = 3;

pub(super) fn run(world: &World<'_>) {
    println!("{:<34} {:>12} {:>12} {:>12}", "FAIRNESS", "PING P50 ms", "PING P99 ms", "FLOOD/s");
    for program in &world.programs {
        if let Err(error) = beside(world, program) {
            println!("{:<34} {}", program.name, trouble(&error));
        }
    }
    println!("(unix; best p99 of {WINDOWS} windows; target 5 ms)\n");
}

fn beside(world: &World<'_>, program: &Program) -> Result<()> {
    let config = world.pools(&[("quiet", 1), ("loud", 2)]);
    let (bus, mut quiet) = world.start(program, Transport::Unix, &config)?;
    row(&format!("{}, alone", program.name), &mut quiet, &AtomicU64::new(0))?;
    let (stop, carried) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let worker = scope.spawn(|| flooding_worker(&bus, &stop, &carried));
        let client = scope.spawn(|| flooding_client(&bus, &stop, &carried));
        let measured = row(&format!("{}, beside a flood", program.name), &mut quiet, &carried);
        stop.store(true, Ordering::Relaxed);
        let floods = [worker, client].map(|it| it.join().expect("a flood does not panic"));
        floods.into_iter().fold(measured, Result::and)
    })
}

fn row(name: &str, quiet: &mut LineClient, carried: &AtomicU64) -> Result<()> {
    let to = To::in_pool("quiet", "q");
    let mut best = (Duration::MAX, Duration::MAX);
    let (begin, before) = (Instant::now(), carried.load(Ordering::Relaxed));
    for _ in 0..WINDOWS {
        let mut times = Vec::with_capacity(PINGS);
        for id in 0..PINGS {
            let asked = Instant::now();
            ask(quiet, &to, id as u64, "bench/ping", "")?;
            times.push(asked.elapsed());
            thread::sleep(PAUSE);
        }
        let window = (percentile(&mut times, 99), percentile(&mut times, 50));
        best = best.min(window);
    }
    let carried = carried.load(Ordering::Relaxed) - before;
    let rate = f64::from(u32::try_from(carried)?) / begin.elapsed().as_secs_f64();
    println!("{name:<34} {:>12.2} {:>12.2} {rate:>12.0}", ms(best.1), ms(best.0));
    Ok(())
}

/// A worker that has something to say all the time, and a client that reads it.
fn flooding_worker(bus: &Running, stop: &AtomicBool, carried: &AtomicU64) -> Result<()> {
    let mut client = bus.dial()?;
    let to = To::in_pool("loud", "a");
    let request = to.request(1, "bench/burst", ",\"count\":20000,\"bytes\":290");
    while !stop.load(Ordering::Relaxed) {
        client.send(request.as_bytes())?;
        let mut came = 0;
        while came < 20_001 {
            let lines = client.lines()?;
            carried.fetch_add(lines, Ordering::Relaxed);
            came += lines;
        }
    }
    Ok(())
}

/// A client that asks all the time, as fast as it is let, and reads the answers beside it.
fn flooding_client(bus: &Running, stop: &AtomicBool, carried: &AtomicU64) -> Result<()> {
    let mut client = bus.dial()?;
    let hand = client.writer()?;
    let to = To::in_pool("loud", "b");
    let batch: String = (1..=500).map(|id| to.request(id, "bench/ping", ",\"n\":1")).collect();
    let (asked, is_last) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            while !is_last.load(Ordering::Relaxed) {
                asked.fetch_add(500, Ordering::Relaxed);
                // Said before the last batch is written: who still reads has something to come.
                is_last.store(stop.load(Ordering::Relaxed), Ordering::Release);
                write_all(&hand, batch.as_bytes())?;
            }
            Ok(())
        });
        let mut answered = 0;
        while !is_last.load(Ordering::Acquire) || answered < asked.load(Ordering::Relaxed) {
            let lines = client.lines()?;
            carried.fetch_add(lines, Ordering::Relaxed);
            answered += lines;
        }
        writer.join().expect("a writer does not panic")
    })
}
