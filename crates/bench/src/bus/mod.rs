//! What the bus costs: a worker spoken to directly, and the same worker through the bus, in one run.

mod bursts;
mod fairness;
mod full;
mod program;
mod prompts;

use super::figures::{ms, percentile, resident_mb};
use anyhow::Result;
use jackfield_test_support::line_client::{LineClient, MessageTarget};
use program::{Program, Running, Transport};
use std::{
    path::Path,
    time::{Duration, Instant},
};

const STARTS: usize = 15;

/// What is measured, and with what.
pub(crate) struct World<'a> {
    programs: Vec<Program>,
    worker: &'a Path,
    dir: tempfile::TempDir,
}

pub(crate) fn run(jackfield: &Path, worker: &Path, peer: Option<&Path>) -> Result<()> {
    let mut programs = vec![Program::ours(jackfield)];
    if let Some(peer) = peer {
        programs.push(Program::peer(peer)?);
    }
    let world = World { programs, worker, dir: tempfile::tempdir()? };
    println!("BUS\n");
    prompts::run(&world)?;
    prompts::pipelined(&world)?;
    bursts::one_to_one(&world)?;
    bursts::many_to_many(&world)?;
    full::run(&world);
    fairness::run(&world);
    starts(&world)
}

impl World<'_> {
    /// A file with one pool of so many workers.
    fn config(&self, instances: usize) -> String {
        self.pools(&[("bench", instances)])
    }

    fn pools(&self, pools: &[(&str, usize)]) -> String {
        let pools: Vec<_> = pools
            .iter()
            .map(|(id, instances)| {
                serde_json::json!({ "id": id, "command": self.worker, "instances": instances })
            })
            .collect();
        // The published kernel passes over the limits it does not know.
        let limits = serde_json::json!({ "max_sessions": 200_000, "max_pending": 200_000 });
        serde_json::json!({ "pools": pools, "limits": limits }).to_string()
    }

    fn start(
        &self,
        program: &Program,
        transport: Transport,
        config: &str,
    ) -> Result<(Running, LineClient)> {
        Running::start(program, transport, config, self.dir.path())
    }

    /// Every program on every transport.
    fn ways(&self) -> impl Iterator<Item = (&Program, Transport)> {
        self.programs.iter().flat_map(|it| Transport::ALL.map(|transport| (it, transport)))
    }
}

/// A request and the wait for its answer; how many lines came before it.
fn ask(
    client: &mut LineClient,
    to: &MessageTarget,
    id: u64,
    method: &str,
    rest: &str,
) -> Result<u64> {
    client.send(to.request(id, method, rest).as_bytes())?;
    Ok(client.answer()?.1)
}

/// What a row says of a program that gave up half-way.
fn trouble(error: &anyhow::Error) -> String {
    match error.downcast_ref::<std::io::Error>() {
        Some(end) if end.kind() == std::io::ErrorKind::TimedOut => {
            let said = error.to_string();
            if said == end.to_string() { "stalls".to_owned() } else { format!("stalls: {said}") }
        }
        _ => format!("{error:#}"),
    }
}

/// From exec to the first answer of a worker, and the memory of the bus then.
fn starts(world: &World<'_>) -> Result<()> {
    println!("{:<28} {:>9} {:>12}", "START TO FIRST ANSWER", "P50 ms", "RESIDENT MB");
    let to = MessageTarget::for_session("s");
    let mut direct = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let (_worker, mut client) = Running::direct(world.worker)?;
        ask(&mut client, &to, 1, "bench/ping", "")?;
        direct.push(begin.elapsed());
    }
    println!("{:<28} {:>9.1} {:>12}", "direct pipe", ms(percentile(&mut direct, 50)), "-");
    for (program, transport) in world.ways().filter(|(_, it)| *it != Transport::Tcp) {
        let name = format!("{}, {}", program.name, transport.name());
        match start(world, program, transport) {
            Ok((time, resident)) => println!("{name:<28} {:>9.1} {resident:>12.1}", ms(time)),
            Err(error) => println!("{name:<28} {}", trouble(&error)),
        }
    }
    println!();
    Ok(())
}

fn start(world: &World<'_>, program: &Program, way: Transport) -> Result<(Duration, f64)> {
    let (mut times, mut resident) = (Vec::new(), 0.0);
    for _ in 0..STARTS {
        let begin = Instant::now();
        let (bus, mut client) = world.start(program, way, &world.config(1))?;
        ask(&mut client, &MessageTarget::for_session("s"), 1, "bench/ping", "")?;
        times.push(begin.elapsed());
        resident = resident_mb(bus.pid())?;
    }
    Ok((percentile(&mut times, 50), resident))
}
