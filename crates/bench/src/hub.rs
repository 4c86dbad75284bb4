//! What the hub costs, with the journal on: a direct pipe to an agent and the same agent through it.

use super::{
    figures::{cpu_us, ms, percentile, resident_mb, us},
    way::{Bench, Line, Way},
};
use anyhow::{Context as _, Result, ensure};
use std::time::Instant;

const ROUNDS: usize = 40;
const PROMPTS_PER_ROUND: usize = 50;
const BURST: u64 = 200_000;
const BURST_BYTES: u64 = 380;
const BURSTS: usize = 3;
const STARTS: usize = 15;

/// Starts the daemon of `bench` and prints the tables.
pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let up = bench.start()?;
    let idle = resident_mb(bench.daemon_pid())?;
    println!(
        "daemon: exec to listening {:.1} ms, resident idle {idle:.1} MB (target 10)\n",
        ms(up)
    );
    prompts(bench)?;
    bursts(bench)?;
    starts(bench)?;
    let after = resident_mb(bench.daemon_pid())?;
    println!("\ndaemon: resident at the end {after:.1} MB\n");
    Ok(())
}

/// Added time per prompt: one update and the answer.
fn prompts(bench: &Bench) -> Result<()> {
    let mut lines = Vec::new();
    for way in Way::ALL {
        let (line, session) = opened(bench, way)?;
        lines.push((way, line, session, Vec::new()));
    }
    let cpu_before = cpu_us(bench.daemon_pid())?;
    for _ in 0..ROUNDS {
        for (_, line, session, times) in &mut lines {
            for _ in 0..PROMPTS_PER_ROUND {
                let begin = Instant::now();
                line.talk.prompt(session, "hi")?;
                times.push(begin.elapsed());
            }
        }
    }
    let prompts = f64::from(u32::try_from(ROUNDS * PROMPTS_PER_ROUND * 3)?);
    let cpu = (cpu_us(bench.daemon_pid())? - cpu_before) / prompts;
    let direct = percentile(&mut lines[0].3, 50);
    println!("{:<18} {:>9} {:>9} {:>11}", "PROMPT", "P50 µs", "P99 µs", "ADDED P50");
    for (way, _, _, times) in &mut lines {
        let (p50, p99) = (percentile(times, 50), percentile(times, 99));
        let added = us(p50) - us(direct);
        println!("{:<18} {:>9.1} {:>9.1} {added:>+11.1}", way.name(), us(p50), us(p99));
    }
    println!("daemon's own processor time per prompt: {cpu:.1} µs (target for added p50: 40)\n");
    Ok(())
}

/// Updates per second of one session, and what each costs the daemon.
fn bursts(bench: &Bench) -> Result<()> {
    println!("{:<18} {:>11} {:>14} {:>9}", "BURST", "UPDATES/s", "CPU µs/UPDATE", "LOST");
    let text = format!("burst {BURST} {BURST_BYTES}");
    for way in Way::ALL {
        let (mut line, session) = opened(bench, way)?;
        let mut best = 0.0_f64;
        let mut cpu = f64::MAX;
        let mut lost = 0;
        for _ in 0..BURSTS {
            let (begin, used) = (Instant::now(), cpu_us(bench.daemon_pid())?);
            let updates = line.talk.prompt(&session, &text)?;
            let seconds = begin.elapsed().as_secs_f64();
            lost += BURST.saturating_sub(updates);
            let count = f64::from(u32::try_from(updates)?);
            best = best.max(count / seconds);
            cpu = cpu.min((cpu_us(bench.daemon_pid())? - used) / count);
        }
        let cpu = if way == Way::Direct { "-".to_owned() } else { format!("{cpu:.2}") };
        println!("{:<18} {best:>11.0} {cpu:>14} {lost:>9}", way.name());
    }
    println!(
        "(best of {BURSTS}; {BURST} updates of {BURST_BYTES} bytes; targets 300,000/s and 3 µs)\n"
    );
    Ok(())
}

/// From exec to the first answer, as an editor sees it.
fn starts(bench: &Bench) -> Result<()> {
    println!("{:<34} {:>9}", "START TO FIRST INITIALIZE", "P50 ms");
    for (name, way) in [("direct pipe", Way::Direct), ("jackfield acp, daemon running", Way::Stdio)]
    {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let begin = Instant::now();
            let mut line = bench.connect(way)?;
            line.talk.initialize()?;
            times.push(begin.elapsed());
        }
        println!("{name:<34} {:>9.1}", ms(percentile(&mut times, 50)));
    }
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let mut fresh = Bench::new(bench.jackfield.clone(), bench.agent.clone())?;
        let begin = Instant::now();
        fresh.start()?;
        fresh.hub_only()?.initialize()?;
        times.push(begin.elapsed());
    }
    let serve = ms(percentile(&mut times, 50));
    println!("{:<34} {serve:>9.1}  (target 20)", "jackfield serve, empty journal");
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let cold = Bench::new(bench.jackfield.clone(), bench.agent.clone())?;
        let begin = Instant::now();
        let mut line = cold.connect(Way::Stdio)?;
        line.talk.initialize()?;
        times.push(begin.elapsed());
        drop(line);
        let stopped = cold.command().args(["daemon", "stop"]).status()?;
        ensure!(stopped.success(), "the daemon that was started on demand did not stop");
    }
    let cold = ms(percentile(&mut times, 50));
    println!("{:<34} {cold:>9.1}", "jackfield acp, no daemon yet");
    Ok(())
}

fn opened(bench: &Bench, way: Way) -> Result<(Line, String)> {
    let mut line = bench.connect(way).with_context(|| way.name())?;
    line.talk.initialize()?;
    let cwd = bench.dir.path().to_string_lossy().into_owned();
    let session = line.talk.open(&cwd)?;
    for _ in 0..20 {
        line.talk.prompt(&session, "warm up")?;
    }
    Ok((line, session))
}
