//! How much later an answer comes through the bus: one prompt after another, and many on the way.

use super::{Running, World, ask, trouble};
use crate::figures::{cpu_us, percentile, us};
use anyhow::Result;
use jackfield_test_support::line_client::{LineClient, MessageTarget};
use std::time::{Duration, Instant};

const ROUNDS: usize = 40;
const PROMPTS_PER_ROUND: usize = 50;
/// One of the peers needs 44 ms for each.
const ROUND_MAX: Duration = Duration::from_millis(200);

const REQUESTS: u64 = 200_000;
/// Requests on the way at once; as many fit into a pipe.
const WINDOW: u64 = 512;

/// One way to a worker, and what was measured on it.
struct Row {
    name: String,
    /// The process that the client talks to: a bus, or the worker.
    process: Running,
    client: LineClient,
    times: Vec<Duration>,
    /// Of that process.
    cpu: f64,
    trouble: Option<String>,
}

impl Row {
    fn new(name: String, process: Running, client: LineClient) -> Row {
        Row { name, process, client, times: Vec::new(), cpu: 0.0, trouble: None }
    }

    fn round(&mut self, to: &MessageTarget) -> Result<()> {
        let (begin, used) = (Instant::now(), cpu_us(self.process.pid())?);
        for _ in 0..PROMPTS_PER_ROUND {
            let asked = Instant::now();
            ask(&mut self.client, to, self.times.len() as u64 + 1, "bench/prompt", "")?;
            self.times.push(asked.elapsed());
            if ROUND_MAX < begin.elapsed() {
                break;
            }
        }
        self.cpu += cpu_us(self.process.pid())? - used;
        Ok(())
    }
}

/// The direct pipe, then every bus on every transport.
fn rows(world: &World<'_>) -> Result<Vec<Row>> {
    let (worker, client) = Running::direct(world.worker)?;
    let mut rows = vec![Row::new("direct pipe".into(), worker, client)];
    for (program, transport) in world.ways() {
        let name = format!("{}, {}", program.name, transport.name());
        match world.start(program, transport, &world.config(1)) {
            Ok((bus, client)) => rows.push(Row::new(name, bus, client)),
            Err(error) => println!("{name:<22} {}", trouble(&error)),
        }
    }
    Ok(rows)
}

/// A request, one notification, the answer.
pub(super) fn run(world: &World<'_>) -> Result<()> {
    let mut rows = rows(world)?;
    let to = MessageTarget::for_session("s");
    for round in 0..=ROUNDS {
        for row in rows.iter_mut().filter(|it| it.trouble.is_none()) {
            if let Err(error) = row.round(&to) {
                row.trouble = Some(trouble(&error));
            }
            // The first round starts processes and fills caches.
            if round == 0 {
                row.times.clear();
                row.cpu = 0.0;
            }
        }
    }
    let base = percentile(&mut rows[0].times, 50);
    println!(
        "{:<22} {:>9} {:>9} {:>11} {:>14}",
        "PROMPT", "P50 µs", "P99 µs", "ADDED P50", "CPU µs/PROMPT"
    );
    for row in &mut rows {
        if let Some(trouble) = &row.trouble {
            println!("{:<22} {trouble}", row.name);
            continue;
        }
        let (p50, p99) = (percentile(&mut row.times, 50), percentile(&mut row.times, 99));
        let cpu = row.cpu / f64::from(u32::try_from(row.times.len())?);
        let added = us(p50) - us(base);
        println!("{:<22} {:>9.1} {:>9.1} {added:>+11.1} {cpu:>14.1}", row.name, us(p50), us(p99));
    }
    println!("(targets for added p50: 15 µs unix, 25 µs TCP)\n");
    Ok(())
}

/// Requests without waiting for the answers, as many as fit on the way.
pub(super) fn pipelined(world: &World<'_>) -> Result<()> {
    println!("{:<22} {:>11} {:>15}", "PIPELINED", "REQUESTS/s", "CPU µs/REQUEST");
    for mut row in rows(world)? {
        let used = cpu_us(row.process.pid())?;
        match pipeline(&mut row.client) {
            Ok(rate) => {
                let cpu = (cpu_us(row.process.pid())? - used) / f64::from(u32::try_from(REQUESTS)?);
                println!("{:<22} {rate:>11.0} {cpu:>15.2}", row.name);
            }
            Err(error) => println!("{:<22} {}", row.name, trouble(&error)),
        }
    }
    println!("({WINDOW} on the way at once; the row of the pipe has the worker's own time)\n");
    Ok(())
}

fn pipeline(client: &mut LineClient) -> Result<f64> {
    let to = MessageTarget::for_session("s");
    let begin = Instant::now();
    let (mut asked, mut answered) = (0, 0);
    while answered < REQUESTS {
        let mut batch = String::new();
        while asked < REQUESTS && asked - answered < WINDOW {
            asked += 1;
            batch.push_str(&to.request(asked, "bench/ping", ",\"n\":1"));
        }
        client.send(batch.as_bytes())?;
        answered += client.lines()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let requests = REQUESTS as f64;
    Ok(requests / begin.elapsed().as_secs_f64())
}
