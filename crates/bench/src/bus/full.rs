//! Whether a full bus is as quick as an empty one: many sessions, many requests that wait.

use super::{Program, Running, Transport, World, ask, trouble};
use crate::figures::{percentile, resident_mb, us};
use anyhow::{Context as _, Result};
use jackfield_test_support::line_client::{LineClient, MessageTarget};
use std::time::Instant;

const STEPS: [u64; 2] = [10_000, 100_000];
const PINGS: u64 = 1_000;
/// Requests on the way at once while sessions are bound.
const WINDOW: u64 = 512;

pub(super) fn run(world: &World<'_>) {
    println!("{:<34} {:>12} {:>12} {:>12}", "FULL", "PING P50 µs", "PING P99 µs", "RESIDENT MB");
    for program in &world.programs {
        let mut row = format!("{}, empty", program.name);
        if let Err(error) = fill(world, program, &mut row) {
            println!("{row:<34} {}", trouble(&error));
        }
    }
    println!("(unix; targets: 100,000 of both, and no slower)\n");
}

struct Full {
    bus: Running,
    /// Asks for what fills the bus.
    filler: LineClient,
    /// Another client, with a session of its own.
    quick: LineClient,
}

/// `row` says what was being done when it fails.
fn fill(world: &World<'_>, program: &Program, row: &mut String) -> Result<()> {
    let (bus, filler) = world.start(program, Transport::Unix, &world.config(2))?;
    let quick = bus.dial()?;
    let mut full = Full { bus, filler, quick };
    full.ping(row)?;
    let mut bound = 0;
    for sessions in STEPS {
        *row = format!("{}, {sessions} sessions", program.name);
        full.bind(bound, sessions)?;
        bound = sessions;
        full.ping(row)?;
    }
    let mut waiting = 0;
    for requests in STEPS {
        *row = format!("{}, {requests} pending too", program.name);
        full.hold(waiting, requests)?;
        waiting = requests;
        full.ping(row)?;
    }
    *row = format!("{}, all answered", program.name);
    full.release(waiting)?;
    full.ping(row)
}

impl Full {
    fn ping(&mut self, row: &str) -> Result<()> {
        let to = MessageTarget::for_session("quick");
        let mut times = Vec::new();
        for id in 0..PINGS {
            let begin = Instant::now();
            ask(&mut self.quick, &to, id, "bench/ping", "")?;
            times.push(begin.elapsed());
        }
        let (p50, p99) = (us(percentile(&mut times, 50)), us(percentile(&mut times, 99)));
        let resident = resident_mb(self.bus.pid())?;
        println!("{row:<34} {p50:>12.1} {p99:>12.1} {resident:>12.1}");
        Ok(())
    }

    /// Opens sessions up to this number, each with a request.
    fn bind(&mut self, from: u64, to: u64) -> Result<()> {
        let (mut asked, mut answered) = (from, from);
        while answered < to {
            let mut batch = String::new();
            while asked < to && asked - answered < WINDOW {
                asked += 1;
                let session = MessageTarget::for_session(format!("session-{asked}"));
                batch.push_str(&session.request(asked, "bench/ping", ""));
            }
            self.filler.send(batch.as_bytes())?;
            let came = self.filler.lines();
            answered += came.with_context(|| format!("{answered} answered, no more"))?;
        }
        Ok(())
    }

    /// Requests that the workers do not answer yet, in all the sessions.
    fn hold(&mut self, from: u64, to: u64) -> Result<()> {
        for batch in from / WINDOW..to.div_ceil(WINDOW) {
            let numbers = (batch * WINDOW).max(from) + 1..=((batch + 1) * WINDOW).min(to);
            let lines = numbers.map(|number| {
                MessageTarget::for_session(format!("session-{number}")).request(
                    number,
                    "bench/hold",
                    "",
                )
            });
            self.filler.send(lines.collect::<String>().as_bytes())?;
        }
        Ok(())
    }

    /// Lets both workers answer, and waits for every answer.
    fn release(&mut self, waiting: u64) -> Result<()> {
        // One of these sessions is on the other worker, wherever the bus puts them.
        for number in 1..=WINDOW {
            let session = MessageTarget::for_session(format!("session-{number}"));
            let line = session.request(waiting + number, "bench/release", "");
            self.filler.send(line.as_bytes())?;
        }
        let mut answered = 0;
        while answered < waiting + WINDOW {
            let lost = || format!("lost {}", waiting + WINDOW - answered);
            answered += self.filler.lines().with_context(lost)?;
        }
        Ok(())
    }
}
