//! How old a word is when a client hears it: through a fleet, and through a daemon alone.

use super::{FleetOptions, ears::Ears, world::World};
use crate::{
    figures::{ms, number, percentile},
    way::Bench,
};
use anyhow::Result;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Sessions, and milliseconds between two words of each.
const CROWDS: [(u64, u64); 4] = [(10, 20), (100, 20), (400, 20), (40, 2)];
const SECONDS: u64 = 10;
/// What is said while all sessions are still being prompted says nothing.
const WARM_UP: u64 = 2;

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    println!("FLEET: age of a word when its client hears it");
    println!(
        "{:<34} {:<12} {:>9} {:>9} {:>9} {:>9}   CPU %: {:>8} {:>6} {:>8} {:>6}",
        "", "", "EVENTS/s", "P50 ms", "P99 ms", "MAX ms", "SERVERS", "HOST", "GATEWAY", "ALL"
    );
    for (sessions, pause) in CROWDS {
        let sessions = options.size(sessions);
        let name = format!("{sessions} sessions, a word each {pause} ms");
        let mut alone = Bench::new(options.jackfield.clone(), options.agent.clone())?;
        alone.start()?;
        let mut ears = Ears::open(&alone, sessions)?;
        println!("{}", row(&name, "one daemon", &mut listen(&mut ears, pause)?));
        drop((ears, alone));

        let world = World::start(options, "")?;
        let mut ears = Ears::open(&world.gateway, sessions)?;
        let (before, begin) = (world.usage()?, Instant::now());
        let mut heard = listen(&mut ears, pause)?;
        let used = (world.usage()? - before).per(begin.elapsed().as_secs_f64() * 1e4);
        let text = row(&name, "fleet", &mut heard);
        println!(
            "{text}          {:>8.0} {:>6.0} {:>8.0} {:>6.0}",
            used.servers, used.host, used.gateway, used.machine
        );
    }
    println!("(target: p50 and p99 at 20,000 events/s are told; processor time is of 200 %)\n");
    Ok(())
}

struct Heard {
    ages: Vec<Duration>,
    rate: f64,
}

/// Has every session say its words, and notes how old each is.
fn listen(ears: &mut Ears, pause: u64) -> Result<Heard> {
    let each = 1_000 / pause;
    let count = each * (WARM_UP + SECONDS);
    let begin = Instant::now();
    let heard = ears.prompt(&format!("tick {count} {pause}"), |ages: &mut Vec<_>, line| {
        if let Some((number, age)) = age(line)
            && WARM_UP * each < number
        {
            ages.push(age);
        }
    })?;
    // Of the whole time, as if words had come evenly: agents rest a little longer than they are told to.
    let share = number(SECONDS) / number(SECONDS + WARM_UP);
    let seconds = begin.elapsed().as_secs_f64() * share;
    let ages: Vec<Duration> = heard.into_iter().flatten().collect();
    let rate = number(u64::try_from(ages.len())?) / seconds;
    Ok(Heard { ages, rate })
}

/// The number of a word, and how long ago it was said.
fn age(line: &[u8]) -> Option<(u64, Duration)> {
    let at = memchr::memmem::find(line, b"\"tick ")?;
    let text = std::str::from_utf8(&line[at + 6..]).ok()?;
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let said = Duration::from_micros(words.next()?.parse().ok()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some((number, now.saturating_sub(said)))
}

fn row(name: &str, way: &str, heard: &mut Heard) -> String {
    let Heard { ages, rate } = heard;
    let [p50, p99, max] = [50, 99, 100].map(|it| ms(percentile(ages, it)));
    format!("{name:<34} {way:<12} {rate:>9.0} {p50:>9.1} {p99:>9.1} {max:>9.1}")
}
