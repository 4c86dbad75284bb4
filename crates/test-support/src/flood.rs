//! A worker and a client that flood the bus, and pings of somebody beside them.

use crate::line_client::{LineClient, To, write_all};
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Pings are sent so far apart.
const PAUSE: Duration = Duration::from_millis(1);
const BURST: u64 = 20_000;
const BATCH: u64 = 500;

/// A flood that goes on until it is told to stop.
#[derive(Debug, Default)]
pub struct Flood {
    stop: AtomicBool,
    carried: AtomicU64,
}

/// One that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Ping {
    pub took: Duration,
    /// Messages of the flood that came through meanwhile.
    pub passed: u64,
}

impl Flood {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Messages that came through so far.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// A worker that has something to say all the time; this client reads it.
    pub fn by_worker(&self, mut client: LineClient, to: &To) -> io::Result<()> {
        let rest = format!(",\"count\":{BURST},\"bytes\":290");
        let request = to.request(1, "bench/burst", &rest);
        while !self.stop.load(Ordering::Relaxed) {
            client.send(request.as_bytes())?;
            let mut came = 0;
            while came <= BURST {
                came += self.count(client.lines()?);
            }
        }
        Ok(())
    }

    /// A client that asks all the time, as fast as it is let, and reads the answers beside it.
    pub fn by_client(&self, mut client: LineClient, to: &To) -> io::Result<()> {
        let hand = client.writer()?;
        let batch: String =
            (1..=BATCH).map(|id| to.request(id, "bench/ping", ",\"n\":1")).collect();
        let (asked, is_last) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let writer = scope.spawn(|| -> io::Result<()> {
                while !is_last.load(Ordering::Relaxed) {
                    asked.fetch_add(BATCH, Ordering::Relaxed);
                    // Said before the last batch is written: who still reads has something to come.
                    is_last.store(self.stop.load(Ordering::Relaxed), Ordering::Release);
                    write_all(&hand, batch.as_bytes())?;
                }
                Ok(())
            });
            let mut answered = 0;
            while !is_last.load(Ordering::Acquire) || answered < asked.load(Ordering::Relaxed) {
                answered += self.count(client.lines()?);
            }
            writer.join().expect("a writer does not panic")
        })
    }

    /// So many pings of somebody beside it.
    pub fn pings(&self, client: &mut LineClient, to: &To, count: u64) -> io::Result<Vec<Ping>> {
        let mut pings = Vec::new();
        for id in 0..count {
            let (asked, before) = (Instant::now(), self.carried());
            client.send(to.request(id, "bench/ping", "").as_bytes())?;
            client.answer()?;
            pings.push(Ping { took: asked.elapsed(), passed: self.carried() - before });
            thread::sleep(PAUSE);
        }
        Ok(pings)
    }

    fn count(&self, lines: u64) -> u64 {
        self.carried.fetch_add(lines, Ordering::Relaxed);
        lines
    }
}
