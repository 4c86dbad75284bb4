//! How many messages a second the bus carries, what each costs it, and how much memory it takes.

use super::{Program, Running, Transport, World, program::PATIENCE, trouble};
use crate::figures::{cpu_us, forget_peak, peak_mb};
use anyhow::Result;
use jackfield_test_support::line_client::{LineClient, MessageTarget, wait_until_readable};
use std::{io::ErrorKind, os::fd::AsFd as _, time::Instant};

/// Messages of one burst, and their size as the peers were measured.
const BURST: u64 = 300_000;
const BURST_BYTES: u64 = 290;
const BURSTS: usize = 3;

const WORKERS: usize = 16;
const CLIENTS: usize = 64;
const EACH: u64 = 10_000;

/// The best of some bursts.
#[derive(Default)]
struct Best {
    rate: f64,
    cpu: f64,
    peak: f64,
    lost: u64,
}

impl Best {
    fn print(&self, name: &str, is_bus: bool) {
        let (mut cpu, mut peak) = ("-".to_owned(), "-".to_owned());
        if is_bus {
            (cpu, peak) = (format!("{:.2}", self.cpu), format!("{:.1}", self.peak));
        }
        // What stands still half-way has no speed.
        let is_whole = self.lost == 0;
        let rate = if is_whole { format!("{:.0}", self.rate) } else { "stalls".to_owned() };
        println!("{name:<22} {rate:>11} {cpu:>15} {peak:>9} {:>9}", self.lost);
    }

    /// Adds one burst of `expected` messages that went through the process `pid`.
    fn add(
        &mut self,
        pid: u32,
        expected: u64,
        mut burst: impl FnMut() -> Result<u64>,
    ) -> Result<()> {
        forget_peak(pid)?;
        let (begin, used) = (Instant::now(), cpu_us(pid)?);
        let came = burst()?;
        let seconds = begin.elapsed().as_secs_f64();
        self.lost += expected.saturating_sub(came);
        let messages = f64::from(u32::try_from(came.max(1))?);
        let cpu = (cpu_us(pid)? - used) / messages;
        self.cpu = if self.rate == 0.0 { cpu } else { self.cpu.min(cpu) };
        self.rate = self.rate.max(messages / seconds);
        self.peak = self.peak.max(peak_mb(pid)?);
        Ok(())
    }
}

/// One worker, one client.
pub(super) fn one_to_one(world: &World<'_>) -> Result<()> {
    head("BURST, 1 TO 1");
    let (worker, mut client) = Running::direct(world.worker)?;
    repeat(&worker, &mut client)?.print("direct pipe", false);
    for (program, transport) in world.ways() {
        let name = format!("{}, {}", program.name, transport.name());
        let measured = world
            .start(program, transport, &world.config(1))
            .and_then(|(bus, mut client)| repeat(&bus, &mut client));
        match measured {
            Ok(best) => best.print(&name, true),
            Err(error) => println!("{name:<22} {}", trouble(&error)),
        }
    }
    println!("(best of {BURSTS}; {BURST} messages; targets 500,000/s and 1.5 µs)\n");
    Ok(())
}

fn head(name: &str) {
    let columns = ("MESSAGES/s", "CPU µs/MESSAGE", "PEAK MB", "LOST");
    let (rate, cpu, peak, lost) = columns;
    println!("{name:<22} {rate:>11} {cpu:>15} {peak:>9} {lost:>9}");
}

fn repeat(process: &Running, client: &mut LineClient) -> Result<Best> {
    let to = MessageTarget::for_session("s");
    let rest = format!(",\"count\":{BURST},\"bytes\":{BURST_BYTES}");
    let request = to.request(1, "bench/burst", &rest);
    let mut best = Best::default();
    for _ in 0..BURSTS {
        best.add(process.pid(), BURST, || {
            client.send(request.as_bytes())?;
            heard(&mut [&mut *client], BURST + 1)
        })?;
        if 0 < best.lost {
            // What is missing may still come, and would be counted with the next one.
            break;
        }
    }
    Ok(best)
}

/// Reads until each client has had so many lines, or nothing comes any more; the answers not counted.
fn heard(clients: &mut [&mut LineClient], each: u64) -> Result<u64> {
    let mut counts = vec![0; clients.len()];
    loop {
        let waiting: Vec<_> = (0..clients.len()).filter(|it| counts[*it] < each).collect();
        if waiting.is_empty() {
            break;
        }
        let fds: Vec<_> = waiting.iter().map(|it| clients[*it].as_fd()).collect();
        let ready = match wait_until_readable(&fds, PATIENCE) {
            Err(error) if error.kind() == ErrorKind::TimedOut => break,
            other => other?,
        };
        for place in ready {
            let at = waiting[place];
            counts[at] += clients[at].lines()?;
        }
    }
    let answers = counts.iter().filter(|it| **it == each).count() as u64;
    Ok(counts.iter().sum::<u64>() - answers)
}

/// Sixteen workers, sixty-four clients, all at once.
pub(super) fn many_to_many(world: &World<'_>) -> Result<()> {
    head("BURST, 16 TO 64");
    direct(world)?.print("direct pipes", false);
    for program in &world.programs {
        let name = format!("{}, unix", program.name);
        match through(world, program) {
            Ok(best) => best.print(&name, true),
            Err(error) => println!("{name:<22} {}", trouble(&error)),
        }
    }
    let all = EACH * CLIENTS as u64;
    println!(
        "(best of {BURSTS}; {all} messages of {CLIENTS} sessions; targets 300,000/s, 1.5 µs)\n"
    );
    Ok(())
}

fn request() -> impl Fn(usize) -> String {
    let rest = format!(",\"count\":{EACH},\"bytes\":{BURST_BYTES}");
    move |number| MessageTarget::for_session(format!("s{number}")).request(1, "bench/burst", &rest)
}

/// The same workers with one reader for all of them and nothing in between.
fn direct(world: &World<'_>) -> Result<Best> {
    let workers =
        (0..WORKERS).map(|_| Running::direct(world.worker)).collect::<Result<Vec<_>>>()?;
    let pid = workers[0].0.pid();
    let (_processes, mut clients): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
    let (request, sessions) = (request(), CLIENTS / WORKERS);
    let mut best = Best::default();
    for _ in 0..BURSTS {
        best.add(pid, EACH * CLIENTS as u64, || {
            for number in 0..CLIENTS {
                clients[number % WORKERS].send(request(number).as_bytes())?;
            }
            let each = (EACH + 1) * sessions as u64;
            let answers = (CLIENTS - WORKERS) as u64;
            Ok(heard(&mut clients.iter_mut().collect::<Vec<_>>(), each)? - answers)
        })?;
    }
    Ok(best)
}

fn through(world: &World<'_>, program: &Program) -> Result<Best> {
    let (bus, first) = world.start(program, Transport::Unix, &world.config(WORKERS))?;
    let mut clients = vec![first];
    for _ in 1..CLIENTS {
        clients.push(bus.dial()?);
    }
    let request = request();
    let mut best = Best::default();
    for _ in 0..BURSTS {
        best.add(bus.pid(), EACH * CLIENTS as u64, || {
            for (number, client) in clients.iter_mut().enumerate() {
                client.send(request(number).as_bytes())?;
            }
            heard(&mut clients.iter_mut().collect::<Vec<_>>(), EACH + 1)
        })?;
        if 0 < best.lost {
            break;
        }
    }
    Ok(best)
}
