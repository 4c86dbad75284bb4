//! How many events a second come from agents through host, log and gateway to clients, beside messages of
//! the same size that are only stored.

use super::{
    FleetOptions,
    bare::{Bare, Load},
    ears::Ears,
    usage::Usage,
    world::World,
};
use crate::figures::{middle, number};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

const SESSIONS: u64 = 200;
/// Of each session in each round.
const EVENTS: u64 = 2_500;
const EVENT_BYTES: u64 = 300;
const ROUNDS: usize = 3;

/// One round of either kind.
struct Row {
    name: &'static str,
    rate: f64,
    /// For each event.
    usage: Usage,
}

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    let (sessions, events) = (options.size(SESSIONS), options.size(EVENTS));
    let world = World::start(options, "")?;
    let bare = Bare::new(world.cluster.urls());
    let mut ears = Ears::open(&world.gateway, sessions)?;
    ears.count("burst 20")?;
    println!(
        "FLEET: {sessions} sessions say {events} words of {EVENT_BYTES} bytes each, three times"
    );
    println!(
        "{:<20} {:>9} {:>8} {:>8}   CPU µs/EVENT: {:>8} {:>6} {:>8} {:>7} {:>7}",
        "", "EVENTS/s", "EV/MSG", "KB/MSG", "SERVERS", "HOST", "GATEWAY", "CLIENT", "ALL"
    );
    let mut rows = Vec::new();
    for round in 0..ROUNDS {
        let before = bare.extent()?;
        let text = format!("burst {events} {EVENT_BYTES}");
        let (mut heard, total) = (0, sessions * events);
        let fleet = timed(&world, "through the fleet", number(total), || {
            let begin = Instant::now();
            heard = ears.count(&text)?;
            Ok(begin.elapsed())
        })?;
        ensure!(total <= heard, "{} events were lost", total - heard);
        let after = bare.extent()?;
        let (messages, bytes) = (after.messages - before.messages, after.bytes - before.bytes);
        let (mean, bytes) = (number(total) / number(messages), bytes / messages);
        print(&fleet, mean, bytes);
        let body = bare.body(bytes, round)?;
        let load = Load { subjects: sessions, messages: (messages / sessions).max(1), body };
        let like_ours = mean * number(load.subjects * load.messages);
        let work = || bare.publish(&load, round);
        let stored = timed(&world, "stored, nothing else", like_ours, work)?;
        print(&stored, mean, bytes);
        rows.push((fleet, stored));
    }
    conclude(&rows);
    Ok(())
}

fn timed(
    world: &World,
    name: &'static str,
    events: f64,
    work: impl FnOnce() -> Result<Duration>,
) -> Result<Row> {
    let before = world.usage()?;
    let time = work()?;
    let usage = (world.usage()? - before).per(events);
    Ok(Row { name, rate: events / time.as_secs_f64(), usage })
}

fn print(row: &Row, mean: f64, bytes: u64) {
    let Row { name, rate, usage } = row;
    let kb = number(bytes) / 1024.0;
    println!(
        "{name:<20} {rate:>9.0} {mean:>8.1} {kb:>8.1}                 {:>8.2} {:>6.2} {:>8.2} {:>7.2} {:>7.2}",
        usage.servers, usage.host, usage.gateway, usage.ours, usage.machine
    );
}

/// The middle of what the rounds say, each ratio within its own round.
fn conclude(rows: &[(Row, Row)]) {
    let rates = rows.iter().map(|(fleet, stored)| fleet.rate / stored.rate);
    let costs = rows.iter().map(|(fleet, stored)| stored.usage.servers / fleet.usage.servers);
    let (share, servers) =
        (middle(&mut rates.collect::<Vec<_>>()), middle(&mut costs.collect::<Vec<_>>()));
    println!("{:<52} {:>6.0} %  (target 70)", "events/s, of what is only stored", 100.0 * share);
    println!(
        "{:<52} {:>6.0} %  (servers alone on their machines)\n",
        "events per second of the servers' processor time, of it",
        100.0 * servers
    );
}
