//! A worker and a client that flood the bus, and pings of another client at the same time.

use crate::line_client::{LineClient, MessageTarget, write_all};
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The time between two pings.
const PAUSE: Duration = Duration::from_millis(1);
const BURST: u64 = 20_000;
const BATCH: u64 = 500;

/// A flood that runs until it is stopped.
#[derive(Debug, Default)]
pub struct BusFlood {
    stop: AtomicBool,
    carried: AtomicU64,
}

/// A ping that was answered.
#[derive(Debug, Clone, Copy)]
pub struct PingSample {
    pub took: Duration,
    /// Messages of the flood that were delivered meanwhile.
    pub passed: u64,
}

impl BusFlood {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Messages that were delivered so far.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// A worker sends notifications without pause; this client reads them.
    pub fn by_worker(&self, mut client: LineClient, to: &MessageTarget) -> io::Result<()> {
        let rest = format!(",\"count\":{BURST},\"bytes\":290");
        let request = to.request(1, "bench/burst", &rest);
        while !self.stop.load(Ordering::Relaxed) {
            client.send(request.as_bytes())?;
            let mut received = 0;
            while received <= BURST {
                received += self.count(client.lines()?);
            }
        }
        Ok(())
    }

    /// A client sends requests as fast as it can and reads the responses at the same time.
    pub fn by_client(&self, mut client: LineClient, to: &MessageTarget) -> io::Result<()> {
        let writer_handle = client.writer()?;
        let batch: String =
            (1..=BATCH).map(|id| to.request(id, "bench/ping", ",\"n\":1")).collect();
        let (asked, is_last) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let writer = scope.spawn(|| -> io::Result<()> {
                while !is_last.load(Ordering::Relaxed) {
                    asked.fetch_add(BATCH, Ordering::Relaxed);
                    // Set before the last batch is written, so that the reader still has responses to wait for.
                    is_last.store(self.stop.load(Ordering::Relaxed), Ordering::Release);
                    write_all(&writer_handle, batch.as_bytes())?;
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

    /// Sends this many pings, one after the other.
    pub fn pings(
        &self,
        client: &mut LineClient,
        to: &MessageTarget,
        count: u64,
    ) -> io::Result<Vec<PingSample>> {
        let mut pings = Vec::new();
        for id in 0..count {
            let (asked, before) = (Instant::now(), self.carried());
            client.send(to.request(id, "bench/ping", "").as_bytes())?;
            client.answer()?;
            pings.push(PingSample { took: asked.elapsed(), passed: self.carried() - before });
            thread::sleep(PAUSE);
        }
        Ok(pings)
    }

    fn count(&self, lines: u64) -> u64 {
        self.carried.fetch_add(lines, Ordering::Relaxed);
        lines
    }
}
