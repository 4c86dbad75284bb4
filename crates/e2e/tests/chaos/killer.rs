//! Who kills: agents by the pid that the daemon tells, now and then the guard above one, and the
//! daemon itself, which is started again on what it left.

use super::world::World;
use jackfield_e2e::{Client, Daemon, procs};
use jackfield_testkit::sim::Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Far above what the daemon needs with all of this, far below what a leak would reach.
const DAEMON_BYTES_MAX: u64 = 256 << 20;

/// Kills until trouble ends; the daemon that runs then.
pub(super) fn kill(world: &World, mut dice: Rng) -> Daemon {
    let mut daemon = world.home.serve(&["--idle-after", "never"]);
    let mut daemon_at = Instant::now() + between_daemons(&mut dice);
    while world.in_trouble() {
        world.pass(Duration::from_millis(50 + dice.below(300)));
        if daemon_at < Instant::now() {
            check_memory(world, &daemon);
            if dice.chance(80) {
                daemon.kill_9();
                world.count("daemons killed");
            } else {
                daemon.stop();
                world.count("daemons stopped");
            }
            daemon = world.home.serve(&["--idle-after", "never"]);
            daemon_at = Instant::now() + between_daemons(&mut dice);
        } else {
            kill_an_agent(world, &mut dice);
        }
    }
    check_memory(world, &daemon);
    daemon
}

fn between_daemons(dice: &mut Rng) -> Duration {
    Duration::from_millis(3_000 + dice.below(9_000))
}

pub(super) fn check_memory(world: &World, daemon: &Daemon) {
    let peak = procs::resident_peak(daemon.pid());
    if DAEMON_BYTES_MAX < peak {
        world.fault(format!("the daemon had {} MB", peak >> 20));
    }
}

fn kill_an_agent(world: &World, dice: &mut Rng) {
    let rows = rows(&mut world.home.dial());
    let pids: Vec<u64> = rows.iter().filter_map(|it| it["pid"].as_u64()).collect();
    if pids.is_empty() {
        return;
    }
    let Ok(pid) = u32::try_from(pids[dice.index(pids.len())]) else { return };
    let guard = procs::parent(pid).filter(|_| dice.chance(10));
    let victim = guard.unwrap_or(pid);
    // It may have ended since, and its pid may be anybody's now.
    if procs::carries(victim, world.home.mark()) {
        procs::kill_9(victim);
        world.count(if guard.is_some() { "guards killed" } else { "agents killed" });
    }
}

/// All sessions as the daemon lists them.
pub(super) fn rows(client: &mut Client) -> Vec<Value> {
    client.hello();
    let sessions = client.result("_jackfield/sessions", &json!({}));
    sessions["sessions"].as_array().cloned().unwrap_or_default()
}
