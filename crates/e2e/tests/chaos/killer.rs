//! Who kills: agents, now and then the guard above one, and the daemon itself, which is started again
//! on what it left. Only processes that carry the mark of this home are signalled.

use super::world::World;
use jackfield_e2e::{Client, Daemon, procs};
use jackfield_test_support::rng::Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Far above what the daemon needs with all of this, far below what a leak would reach.
const DAEMON_BYTES_MAX: u64 = 256 << 20;

/// Kills until trouble ends; the daemon that runs then.
pub(super) fn kill(world: &World, mut dice: Rng) -> Daemon {
    let mut daemon = world.home.serve(&["--idle-after", "never"]);
    let mut daemon_at = Instant::now() + between_daemons(&mut dice);
    let mut ends = 0;
    while world.in_trouble() {
        world.pass(Duration::from_millis(50 + dice.below(300)));
        if daemon_at < Instant::now() {
            check_memory(world, &daemon);
            ends += 1;
            if ends % 4 == 0 {
                daemon.stop();
                world.count("daemons stopped");
            } else {
                daemon.kill_9();
                world.count("daemons killed");
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
    let is_agent = |it: &[String]| it[0].ends_with("/fake-agent") && it[1] != "--stray";
    let is_guard = |it: &[String]| it[1] == "guard";
    let guards = dice.chance(10);
    let is_it = |pid: &u32| {
        let words = procs::words(*pid);
        1 < words.len() && if guards { is_guard(&words) } else { is_agent(&words) }
    };
    // From the daemon's lists, a slow daemon would be a daemon whose agents live.
    let victims: Vec<u32> = procs::marked(world.home.mark()).into_iter().filter(is_it).collect();
    if !victims.is_empty() {
        procs::kill_9(victims[dice.index(victims.len())]);
        world.count(if guards { "guards killed" } else { "agents killed" });
    }
}

/// All sessions as the daemon lists them.
pub(super) fn rows(client: &mut Client) -> Vec<Value> {
    let sessions = client.result("_jackfield/sessions", &json!({}));
    sessions["sessions"].as_array().cloned().unwrap_or_default()
}
