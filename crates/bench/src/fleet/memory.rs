//! What a session costs the host and the gateway while its agent waits, when it sleeps, and when it is let
//! go.

use super::{FleetOptions, ears::Ears, world::World};
use crate::figures::{memory_mb, number, resident_mb};
use anyhow::Result;

const SESSIONS: u64 = 400;
/// What a first crowd leaves behind is used again by a second one.
const CROWDS: usize = 2;
/// Longer than it takes to open all of them.
const CONFIG: &str = "[sessions]\nidle_after = \"30s\"\n";

/// Megabytes.
#[derive(Debug, Clone, Copy)]
struct Memory {
    resident: f64,
    /// Without the pages of the program's file.
    own: f64,
}

impl Memory {
    fn of(pid: u32) -> Result<Memory> {
        Ok(Memory { resident: resident_mb(pid)?, own: memory_mb(pid, "RssAnon:")? })
    }
}

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    let sessions = options.size(SESSIONS);
    let world = World::start(options, CONFIG)?;
    println!("FLEET: memory of {sessions} sessions");
    println!(
        "{:<34} {:>9} {:>7} {:>11}   {:>11} {:>7} {:>11}",
        "", "HOST MB", "OWN MB", "KB/SESSION", "GATEWAY MB", "OWN MB", "KB/SESSION"
    );
    let empty = both(&world)?;
    print("no session", empty, empty, sessions);
    for _ in 0..CROWDS {
        let before = both(&world)?;
        let ears = Ears::open(&world.gateway, sessions)?;
        world.wait("agents", |it| it == Some((sessions, sessions)))?;
        print("open, the agent waits", before, both(&world)?, sessions);
        world.wait("sleep", |it| it == Some((sessions, 0)))?;
        print("asleep, the client stays", before, both(&world)?, sessions);
        drop(ears);
        world.wait("the end", |it| it == Some((0, 0)))?;
        print("let go", before, both(&world)?, sessions);
    }
    println!(
        "(of each crowd against what there was before it; a session that was let go is in the log)\n"
    );
    Ok(())
}

fn both(world: &World) -> Result<[Memory; 2]> {
    Ok([Memory::of(world.host.daemon_pid())?, Memory::of(world.gateway.daemon_pid())?])
}

fn print(name: &str, before: [Memory; 2], now: [Memory; 2], sessions: u64) {
    let [host, gateway] = now;
    let each = |it: usize| (now[it].own - before[it].own) * 1024.0 / number(sessions);
    println!(
        "{name:<34} {:>9.1} {:>7.1} {:>11.1}   {:>11.1} {:>7.1} {:>11.1}",
        host.resident,
        host.own,
        each(0),
        gateway.resident,
        gateway.own,
        each(1)
    );
}
