//! A cell full of sessions that sleep, beside the same cell when it was empty.

use super::{
    FleetOptions, seed,
    world::{SERVERS, member},
};
use crate::{
    figures::{ms, number, percentile, resident_mb},
    talk::Talk,
    way::Bench,
};
use anyhow::{Result, ensure};
use jackfield_test_support::nats::{Cluster, Server};
use std::time::{Duration, Instant};

const SLEEPERS: u64 = 100_000;
const STARTS: usize = 5;
const LISTS: usize = 20;
/// Far apart from each other.
const ATTACHED: u64 = 20;

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    let count = options.size(SLEEPERS);
    let cluster = Cluster::start(SERVERS);
    println!("FLEET: {count} sessions that sleep");
    println!(
        "{:<26} {:>9} {:>9}   LIST: {:>7} {:>7}   ATTACH: {:>7} {:>7}   MB: {:>6} {:>8} {:>17}",
        "",
        "START ms",
        "MAX ms",
        "P50 ms",
        "P99 ms",
        "P50 ms",
        "P99 ms",
        "HOST",
        "GATEWAY",
        "SERVERS"
    );
    // The first of all makes the streams of the cell.
    let made = member(options, &cluster, "host", "")?.1.as_secs_f64();
    println!("{:<26} {}", "empty", measure(options, &cluster, None)?);
    let begin = Instant::now();
    let home = tempfile::tempdir()?;
    seed::sleepers(cluster.urls(), &home.path().to_string_lossy(), count)?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{:<26} {}", "full", measure(options, &cluster, Some(count))?);
    println!(
        "(targets: start 5,000 ms, list 100 ms, memory of host and gateway flat; the sessions were written \
         in {seconds:.0} s, {:.0} a second; the first start of all took {made:.1} s)\n",
        number(count) / seconds
    );
    Ok(())
}

/// Some starts of a host, and what it is like with the last one.
fn measure(options: &FleetOptions, cluster: &Cluster, sleepers: Option<u64>) -> Result<String> {
    let (mut host, took) = member(options, cluster, "host", "")?;
    let mut starts = vec![took];
    for _ in 1..STARTS {
        drop(host);
        let (next, took) = member(options, cluster, "host", "")?;
        starts.push(took);
        host = next;
    }
    let (gateway, _) = member(options, cluster, "gateway", "")?;
    let mut lists = lists(&gateway, sleepers.unwrap_or_default())?;
    let mb = [resident_mb(host.daemon_pid())?, resident_mb(gateway.daemon_pid())?];
    let servers = cluster.servers().iter().filter_map(Server::pid);
    let servers: Vec<String> =
        servers.map(|it| Ok(format!("{:.0}", resident_mb(it)?))).collect::<Result<_>>()?;
    let mut attached = match sleepers {
        Some(count) => attach(&gateway, count)?,
        None => vec![Duration::ZERO],
    };
    let [start, slowest] = [50, 100].map(|it| ms(percentile(&mut starts, it)));
    let [list, late_list] = [50, 99].map(|it| ms(percentile(&mut lists, it)));
    let [attach, late_attach] = [50, 99].map(|it| ms(percentile(&mut attached, it)));
    Ok(format!(
        "{start:>9.0} {slowest:>9.0}         {list:>7.1} {late_list:>7.1}           {attach:>7.1} \
         {late_attach:>7.1}       {:>6.1} {:>8.1} {:>17}",
        mb[0],
        mb[1],
        servers.join(" + ")
    ))
}

/// First pages of the list.
fn lists(gateway: &Bench, sleepers: u64) -> Result<Vec<Duration>> {
    let mut talk = greeted(gateway)?;
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let begin = Instant::now();
        let (answer, _) = talk.ask("session/list", "{}")?;
        times.push(begin.elapsed());
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let rows = answer["result"]["sessions"].as_array().map_or(0, Vec::len);
        ensure!(sleepers == 0 || 50 <= rows, "a page has {rows} sessions: {answer}");
    }
    Ok(times)
}

/// From the question to the end of what was in the log: a host adopts the session first.
fn attach(gateway: &Bench, sleepers: u64) -> Result<Vec<Duration>> {
    let mut talk = greeted(gateway)?;
    let mut times = Vec::new();
    for number in 0..ATTACHED {
        let session = seed::name(number * (sleepers / ATTACHED));
        let params = serde_json::json!({ "sessionId": session, "after": 0 });
        let begin = Instant::now();
        let (answer, _) = talk.ask("_jackfield/attach", &params.to_string())?;
        times.push(begin.elapsed());
        ensure!(answer.contains("\"result\""), "not attached: {answer}");
    }
    Ok(times)
}

fn greeted(gateway: &Bench) -> Result<Talk> {
    let mut talk = gateway.hub_only()?;
    talk.initialize()?;
    Ok(talk)
}
