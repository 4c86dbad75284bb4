//! Other processes, and the life of the sandbox's own.

use super::attack_world::{AttackWorld, assert_works, text_of, words};
use jackfield_sandbox::plan::NetworkPlan;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn environment_and_limits_are_those_of_the_plan() {
    let world = AttackWorld::new(NetworkPlan::None);
    let mut plan = world.plan();
    plan.env = vec!["PATH".into()];
    plan.limits.file_bytes = Some(4096);
    let script = words(&["-c", "echo ${SECRET:-none}; ulimit -f"]);
    let mut command = world.sandboxed(&plan, Path::new("/bin/bash"), &script);
    let output = command.env("SECRET", "text").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "none\n4\n", "{}", text_of(&output));
}

#[test]
fn exit_code_of_the_agent_is_passed_on() {
    let world = AttackWorld::new(NetworkPlan::None);
    let code = |args: &[&str]| world.attack(&words(args)).status().unwrap().code();
    assert_eq!(code(&["exit", "7"]), Some(7));
    assert_eq!(code(&["exit", "0"]), Some(0));
}

#[test]
fn signal_is_forwarded_and_its_effect_is_the_exit_code() {
    let world = AttackWorld::new(NetworkPlan::None);
    let (mut supervisor, _agent) = start_waiting(&world, "wait");
    let pid = supervisor.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(supervisor.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn signal_of_the_parent_which_signals_the_whole_tree_is_not_repeated() {
    let world = AttackWorld::new(NetworkPlan::None);
    let (mut supervisor, agent) = start_waiting(&world, "wait");
    kill_process(Pid::from_child(&supervisor), Signal::TERM).unwrap();
    // A repeated TERM would end the agent before this signal arrives.
    let pid = supervisor.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
    assert_eq!(supervisor.wait().unwrap().code(), Some(128 + 10));
    wait_for_end(agent);
}

#[test]
fn kill_of_the_supervisor_ends_the_agent() {
    let world = AttackWorld::new(NetworkPlan::None);
    let (mut supervisor, agent) = start_waiting(&world, "wait");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_for_end(agent);
    // The next sandbox removes what the killed one could not.
    assert_works(&world, &words(&["exit", "0"]));
    assert_eq!(std::fs::read_dir(world.path("temporary")).unwrap().count(), 1);
}

#[test]
fn process_that_the_agent_left_ends_with_the_agent() {
    let world = AttackWorld::new(NetworkPlan::None);
    let (mut supervisor, left) = start_waiting(&world, "leave-process");
    assert!(supervisor.wait().unwrap().success());
    wait_for_end(left);
}

/// Starts a sandbox whose process prints an id and waits.
fn start_waiting(world: &AttackWorld, attack: &str) -> (Child, Pid) {
    let mut command = world.attack(&words(&[attack]));
    let mut supervisor = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    (supervisor, pid)
}

fn wait_for_end(pid: Pid) {
    let start = Instant::now();
    while test_kill_process(pid).is_ok() && !is_zombie(pid) {
        assert!(start.elapsed() < Duration::from_secs(10), "process {pid:?} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An orphan of the test may have a parent that does not reap it.
fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|it| it.starts_with('Z'))
}
