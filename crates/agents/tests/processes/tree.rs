//! Process trees: nobody stays, wherever they went.

use crate::proc;
use crate::world::{BOUND, World, note};
use jackfield_agents::{Graces, Stop};
use rustix::process::Signal;
use std::time::Duration;

/// A session of its own, TERM ignored, and ready when it says so.
const STRAY: &str = r#"
    setsid sh -c 'trap "" TERM HUP INT; echo "{\"id\":1,\"result\":0}"; while :; do sleep 1; done' &
"#;

fn quick() -> Graces {
    let grace = Duration::from_millis(50);
    Graces { eof: grace, term: grace, left: grace, ..Graces::default() }
}

#[tokio::test]
async fn a_stray_that_ignores_term_dies_on_a_polite_stop() {
    let world = World::new().graces(quick());
    let mut agent = world.sh(&format!("{STRAY} exec cat"));
    agent.started().await;
    agent.frame().await;
    assert!(3 <= proc::marked(&agent.mark).len());
    assert_eq!(agent.end(Stop::Polite).await.code, Some(0));
    assert_eq!(world.ledger_files(), 0);
}

#[tokio::test]
async fn an_agent_that_ignores_everything_dies_too() {
    let world = World::new().graces(quick());
    let mut agent = world.sh(&format!("{STRAY} trap '' TERM; while :; do sleep 1; done"));
    agent.started().await;
    agent.frame().await;
    assert_eq!(agent.end(Stop::Polite).await.signal, Some(9));
}

#[tokio::test]
async fn an_agent_that_runs_itself_again_is_still_the_agent() {
    let world = World::new();
    let mut agent = world.sh("exec sh -c 'exec sh -c \"exec cat\"'");
    agent.started().await;
    agent.say(&note(1));
    assert_eq!(agent.frame().await, note(1));
    assert_eq!(agent.end(Stop::Polite).await.code, Some(0));
    // As a child behind a wrapper that forwards nothing.
    let world = World::new().graces(quick());
    let mut agent = world.sh("trap '' TERM; sh -c 'trap \"\" TERM; while read -r l; do echo \"$l\"; done; sleep 60'; exit 5");
    agent.started().await;
    agent.say(&note(2));
    assert_eq!(agent.frame().await, note(2));
    assert_eq!(agent.end(Stop::Polite).await.signal, Some(9));
}

#[tokio::test]
async fn an_orphan_without_the_mark_is_found_by_its_parents() {
    let world = World::new().graces(quick());
    // Forked twice, an empty environment, a session of its own: only the subreaper knows it.
    let script = r#"
        (env -i setsid sh -c 'trap "" TERM; echo "{\"id\":$$,\"result\":0}"; while :; do /bin/sleep 1; done' &)
        exec cat
    "#;
    let mut agent = world.sh(script);
    agent.started().await;
    let frame = agent.frame().await;
    let pid = frame[6..frame.find(',').unwrap()].parse().unwrap();
    assert!(proc::lives(pid));
    assert!(!proc::marked(&agent.mark).contains(&pid));
    agent.end(Stop::Polite).await;
    assert!(!proc::lives(pid));
}

#[tokio::test]
async fn a_tree_that_forks_while_it_dies_dies() {
    let world = World::new();
    let mut agent = world.sh(&format!("{STRAY} while :; do sleep 60 & sleep 0.001; done"));
    agent.started().await;
    agent.frame().await;
    agent.end(Stop::Now).await;
}

#[tokio::test]
async fn a_stopped_process_is_ended_as_well() {
    let world = World::new().graces(quick());
    let mut agent = world.sh("sleep 60 & exec cat");
    let pid = agent.started().await;
    agent.say(&note(1));
    agent.frame().await;
    proc::kill(pid, Signal::STOP);
    assert_eq!(agent.end(Stop::Polite).await.signal, Some(15));
}

#[tokio::test]
async fn nothing_but_three_descriptors_and_no_strange_signals_reach_the_agent() {
    let world = World::new();
    // A descriptor that someone forgot to close on exec.
    let leak = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let mut agent = world.spawn(&["cat"]);
    let pid = agent.started().await;
    agent.say(&note(1));
    agent.frame().await;
    assert_eq!(proc::fds(pid), [0, 1, 2]);
    for name in ["SigBlk", "SigIgn"] {
        let value = proc::value(pid, "status", name).unwrap();
        // The C library keeps signals 32 and 33 to itself.
        assert_eq!(u64::from_str_radix(&value, 16).unwrap() & 0x7fff_ffff, 0, "{name}");
    }
    let (_, guard) = proc::state(pid).unwrap();
    for fd in [1, 2] {
        let target = std::fs::read_link(format!("/proc/{guard}/fd/{fd}")).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
    }
    drop(leak);
    agent.end(Stop::Polite).await;
}

#[tokio::test]
async fn a_guard_sits_out_ctrl_c_and_takes_term_for_a_polite_stop() {
    let world = World::new();
    let mut agent = world.spawn(&["cat"]);
    let pid = agent.started().await;
    let (_, guard) = proc::state(pid).unwrap();
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT] {
        proc::kill(guard, signal);
    }
    agent.say(&note(1));
    assert_eq!(agent.frame().await, note(1));
    agent.end(Stop::Polite).await;
    let mut agent = World::new().graces(quick()).sh("exec cat");
    let pid = agent.started().await;
    let (_, guard) = proc::state(pid).unwrap();
    proc::kill(guard, Signal::TERM);
    assert_eq!(agent.gone().await.signal, Some(15));
    agent.swept().await;
}

#[tokio::test]
async fn if_the_guard_is_killed_the_agent_dies_and_the_rest_is_found_by_the_mark() {
    let world = World::new();
    let mut agent = world.sh(&format!("{STRAY} echo lost >&2; exec cat"));
    let pid = agent.started().await;
    agent.frame().await;
    let (_, guard) = proc::state(pid).unwrap();
    proc::kill(guard, Signal::KILL);
    let exit = agent.gone().await;
    assert_eq!((exit.code, exit.signal, &exit.failed_to_start), (None, None, &None));
    assert!(exit.stderr_tail.contains("the guard of this agent was lost"), "{}", exit.stderr_tail);
    let mark = agent.mark.clone();
    agent.swept().await;
    proc::wait_until("the agent is gone", BOUND, || !proc::lives(pid));
    assert_eq!(proc::marked(&mark), proc::NOBODY);
    assert_eq!(proc::zombies_of(std::process::id()), proc::NOBODY);
    assert_eq!(world.ledger_files(), 0);
}

#[tokio::test]
async fn what_carries_the_mark_outside_the_tree_is_ended_too() {
    let world = World::new();
    let mut agent = world.spawn(&["cat"]);
    agent.started().await;
    let mut elsewhere = std::process::Command::new("sleep")
        .arg("60")
        .env(jackfield_agents::MARK_VARIABLE, &agent.mark)
        .spawn()
        .unwrap();
    let mut stranger = std::process::Command::new("sleep")
        .arg("60")
        .env(jackfield_agents::MARK_VARIABLE, format!("{}-other", agent.mark))
        .spawn()
        .unwrap();
    agent.end(Stop::Polite).await;
    assert!(!proc::lives(elsewhere.id()));
    assert!(proc::lives(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    elsewhere.wait().unwrap();
}

#[tokio::test]
async fn many_agents_can_end_at_once() {
    let world = World::new();
    let mut agents = Vec::new();
    for _ in 0..20 {
        agents.push(world.sh("sleep 60 & exec cat"));
    }
    for agent in &mut agents {
        agent.started().await;
        agent.handle.stop(Stop::Polite);
    }
    for mut agent in agents {
        assert_eq!(agent.gone().await.code, Some(0));
        agent.swept().await;
    }
    assert_eq!(world.ledger_files(), 0);
}

#[tokio::test]
async fn tools_of_a_cancelled_turn_are_ended_and_the_agent_and_its_helpers_stay() {
    // A helper and a daemon of its own from before the turn, a helper and two strays from within it.
    let script = r#"
        sleep 61 & setsid sleep 62 &
        echo '{"id":1,"result":0}'; read -r go
        sleep 63 & setsid sleep 64 & setsid sh -c 'trap "" TERM; while :; do sleep 65; done' &
        exec cat
    "#;
    let world = World::new();
    let mut agent = world.sh(script);
    agent.started().await;
    agent.frame().await;
    let mark = agent.mark.clone();
    let left = |word: &str| {
        let is_it = |pid: &u32| proc::args(*pid) == ["sleep", word];
        proc::marked(&mark).into_iter().filter(is_it).count()
    };
    proc::wait_until("what was before", BOUND, || left("61") + left("62") == 2);
    // The table counts in hundredths of a second: before and after must not be the same one.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = std::time::Instant::now();
    agent.say(&note(1));
    proc::wait_until("the tools", BOUND, || left("63") + left("64") + left("65") == 3);
    agent.handle.end_tools(began.elapsed() + Duration::from_millis(20));
    proc::wait_until("the tools are gone", BOUND, || left("64") + left("65") == 0);
    assert_eq!([left("61"), left("62"), left("63")], [1, 1, 1]);
    agent.say(&note(3));
    assert_eq!(agent.frame().await, note(3));
    agent.end(Stop::Polite).await;
}
