//! Process trees: nobody stays, wherever they went.

use crate::harness::{AgentHarness, BOUND, note};
use crate::proc;
use jackfield_agents::{GracePeriods, StopUrgency};
use rustix::process::Signal;
use std::time::Duration;

/// A session of its own, TERM ignored, and ready when it says so.
const DETACHED_CHILD: &str = r#"
    setsid sh -c 'trap "" TERM HUP INT; echo "{\"id\":1,\"result\":0}"; while :; do sleep 1; done' &
"#;

fn short_graces() -> GracePeriods {
    let grace = Duration::from_millis(50);
    GracePeriods { eof: grace, term: grace, left: grace, ..GracePeriods::default() }
}

#[tokio::test]
async fn polite_stop_kills_a_detached_child_that_ignores_term() {
    let harness = AgentHarness::new().with_graces(short_graces());
    let mut agent = harness.spawn_script(&format!("{DETACHED_CHILD} exec cat"));
    agent.started().await;
    agent.frame().await;
    assert!(3 <= proc::pids_with_mark(&agent.mark).len());
    assert_eq!(agent.end(StopUrgency::Polite).await.code, Some(0));
    assert_eq!(harness.ledger_files(), 0);
}

#[tokio::test]
async fn agent_that_ignores_all_signals_is_killed() {
    let harness = AgentHarness::new().with_graces(short_graces());
    let mut agent =
        harness.spawn_script(&format!("{DETACHED_CHILD} trap '' TERM; while :; do sleep 1; done"));
    agent.started().await;
    agent.frame().await;
    assert_eq!(agent.end(StopUrgency::Polite).await.signal, Some(9));
}

#[tokio::test]
async fn agent_that_replaces_itself_by_exec_is_still_supervised() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn_script("exec sh -c 'exec sh -c \"exec cat\"'");
    agent.started().await;
    agent.send_frame(&note(1));
    assert_eq!(agent.frame().await, note(1));
    assert_eq!(agent.end(StopUrgency::Polite).await.code, Some(0));
    // As a child behind a wrapper that forwards nothing.
    let harness = AgentHarness::new().with_graces(short_graces());
    let mut agent = harness.spawn_script("trap '' TERM; sh -c 'trap \"\" TERM; while read -r l; do echo \"$l\"; done; sleep 60'; exit 5");
    agent.started().await;
    agent.send_frame(&note(2));
    assert_eq!(agent.frame().await, note(2));
    assert_eq!(agent.end(StopUrgency::Polite).await.signal, Some(9));
}

#[tokio::test]
async fn orphan_without_the_mark_is_found_by_its_parents() {
    let harness = AgentHarness::new().with_graces(short_graces());
    // Forked twice, an empty environment, a session of its own: only the subreaper knows it.
    let script = r#"
        (env -i setsid sh -c 'trap "" TERM; echo "{\"id\":$$,\"result\":0}"; while :; do /bin/sleep 1; done' &)
        exec cat
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    let frame = agent.frame().await;
    let pid = frame[6..frame.find(',').unwrap()].parse().unwrap();
    assert!(proc::is_alive(pid));
    assert!(!proc::pids_with_mark(&agent.mark).contains(&pid));
    agent.end(StopUrgency::Polite).await;
    assert!(!proc::is_alive(pid));
}

#[tokio::test]
async fn tree_that_forks_while_it_is_killed_ends() {
    let harness = AgentHarness::new();
    let mut agent =
        harness.spawn_script(&format!("{DETACHED_CHILD} while :; do sleep 60 & sleep 0.001; done"));
    agent.started().await;
    agent.frame().await;
    agent.end(StopUrgency::Now).await;
}

#[tokio::test]
async fn stopped_process_is_ended() {
    let harness = AgentHarness::new().with_graces(short_graces());
    let mut agent = harness.spawn_script("sleep 60 & exec cat");
    let pid = agent.started().await;
    agent.send_frame(&note(1));
    agent.frame().await;
    proc::kill(pid, Signal::STOP);
    assert_eq!(agent.end(StopUrgency::Polite).await.signal, Some(15));
}

#[tokio::test]
async fn agent_gets_three_descriptors_and_default_signals() {
    let harness = AgentHarness::new();
    // A descriptor that someone forgot to close on exec.
    let leak = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let mut agent = harness.spawn(&["cat"]);
    let pid = agent.started().await;
    agent.send_frame(&note(1));
    agent.frame().await;
    assert_eq!(proc::descriptors(pid), [0, 1, 2]);
    for name in ["SigBlk", "SigIgn"] {
        let value = proc::proc_value(pid, "status", name).unwrap();
        // The C library keeps signals 32 and 33 to itself.
        assert_eq!(u64::from_str_radix(&value, 16).unwrap() & 0x7fff_ffff, 0, "{name}");
    }
    let (_, guard) = proc::state(pid).unwrap();
    for fd in [1, 2] {
        let target = std::fs::read_link(format!("/proc/{guard}/fd/{fd}")).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
    }
    drop(leak);
    agent.end(StopUrgency::Polite).await;
}

#[tokio::test]
async fn guard_ignores_ctrl_c_and_stops_politely_on_term() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn(&["cat"]);
    let pid = agent.started().await;
    let (_, guard) = proc::state(pid).unwrap();
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT] {
        proc::kill(guard, signal);
    }
    agent.send_frame(&note(1));
    assert_eq!(agent.frame().await, note(1));
    agent.end(StopUrgency::Polite).await;
    let mut agent = AgentHarness::new().with_graces(short_graces()).spawn_script("exec cat");
    let pid = agent.started().await;
    let (_, guard) = proc::state(pid).unwrap();
    proc::kill(guard, Signal::TERM);
    assert_eq!(agent.gone().await.signal, Some(15));
    agent.swept().await;
}

#[tokio::test]
async fn killed_guard_ends_the_agent_and_the_mark_finds_the_rest() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn_script(&format!("{DETACHED_CHILD} echo lost >&2; exec cat"));
    let pid = agent.started().await;
    agent.frame().await;
    let (_, guard) = proc::state(pid).unwrap();
    proc::kill(guard, Signal::KILL);
    let exit = agent.gone().await;
    assert_eq!((exit.code, exit.signal, &exit.failed_to_start), (None, None, &None));
    assert!(
        exit.stderr_tail.contains("the guard of this agent was killed"),
        "{}",
        exit.stderr_tail
    );
    let mark = agent.mark.clone();
    agent.swept().await;
    proc::wait_until("the agent is gone", BOUND, || !proc::is_alive(pid));
    assert_eq!(proc::pids_with_mark(&mark), proc::NO_PIDS);
    assert_eq!(proc::zombies_of(std::process::id()), proc::NO_PIDS);
    assert_eq!(harness.ledger_files(), 0);
}

#[tokio::test]
async fn process_with_the_mark_outside_the_tree_is_ended() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn(&["cat"]);
    agent.started().await;
    let mut elsewhere = std::process::Command::new("sleep")
        .arg("60")
        .env(jackfield_agents::MARK_VARIABLE, &agent.mark)
        .spawn()
        .unwrap();
    let mut unrelated = std::process::Command::new("sleep")
        .arg("60")
        .env(jackfield_agents::MARK_VARIABLE, format!("{}-other", agent.mark))
        .spawn()
        .unwrap();
    agent.end(StopUrgency::Polite).await;
    assert!(!proc::is_alive(elsewhere.id()));
    assert!(proc::is_alive(unrelated.id()));
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
    elsewhere.wait().unwrap();
}

#[tokio::test]
async fn many_agents_can_end_at_the_same_time() {
    let harness = AgentHarness::new();
    let mut agents = Vec::new();
    for _ in 0..20 {
        agents.push(harness.spawn_script("sleep 60 & exec cat"));
    }
    for agent in &mut agents {
        agent.started().await;
        agent.handle.stop(StopUrgency::Polite);
    }
    for mut agent in agents {
        assert_eq!(agent.gone().await.code, Some(0));
        agent.swept().await;
    }
    assert_eq!(harness.ledger_files(), 0);
}

#[tokio::test]
async fn tools_of_a_canceled_turn_are_ended_and_helpers_stay() {
    // A helper and a daemon of its own from before the turn, a helper and two strays from within
    // it.
    let script = r#"
        sleep 61 & setsid sleep 62 &
        echo '{"id":1,"result":0}'; read -r go
        sleep 63 & setsid sleep 64 & setsid sh -c 'trap "" TERM; while :; do sleep 65; done' &
        exec cat
    "#;
    let harness = AgentHarness::new();
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    agent.frame().await;
    let mark = agent.mark.clone();
    let left = |word: &str| {
        let is_it = |pid: &u32| proc::command_line(*pid) == ["sleep", word];
        proc::pids_with_mark(&mark).into_iter().filter(is_it).count()
    };
    proc::wait_until("what was before", BOUND, || left("61") + left("62") == 2);
    // The table counts in hundredths of a second: before and after must not be the same one.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = std::time::Instant::now();
    agent.send_frame(&note(1));
    proc::wait_until("the tools", BOUND, || left("63") + left("64") + left("65") == 3);
    agent.handle.end_tools(began.elapsed() + Duration::from_millis(20));
    proc::wait_until("the tools are gone", BOUND, || left("64") + left("65") == 0);
    assert_eq!([left("61"), left("62"), left("63")], [1, 1, 1]);
    agent.send_frame(&note(3));
    assert_eq!(agent.frame().await, note(3));
    agent.end(StopUrgency::Polite).await;
}
