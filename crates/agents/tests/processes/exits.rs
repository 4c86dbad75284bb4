//! How an agent can end, and what is told of it.

use crate::harness::{AgentHarness, BOUND, new_mark, note};
use crate::proc;
use jackfield_agents::{
    AgentProcessEvent, GracePeriods, LaunchCommand, ProcessLedger, SpawnError, StopUrgency,
    spawn_agent,
};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

#[tokio::test]
async fn agent_that_cannot_be_started_reports_the_reason() {
    let harness = AgentHarness::new();
    let text = harness.dir.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let text = text.to_str().unwrap();
    let script = harness.dir.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter").unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let cases = [
        ("no-such-agent", "/", "`no-such-agent` was not found on PATH"),
        ("/no/such/agent", "/", "`/no/such/agent`: No such file"),
        (text, "/", "Permission denied"),
        (script, "/", "the interpreter of"),
        ("cat", "/no/such/place", "the working directory `/no/such/place`: No such file"),
        ("cat", text, "is not a directory"),
    ];
    for (program, cwd, why) in cases {
        let mut harness = AgentHarness::new();
        harness.launch.cwd = cwd.into();
        let mut agent = harness.spawn(&[program]);
        let AgentProcessEvent::Gone(exit) = agent.next().await else { panic!("not Gone at once") };
        let told = exit.failed_to_start.unwrap();
        assert!(told.contains(why), "{told}");
        assert_eq!((exit.code, exit.signal), (None, None));
        agent.swept().await;
        assert_eq!(harness.ledger_files(), 0);
    }
}

#[tokio::test]
async fn missing_guard_is_an_error_and_leaves_no_entry() {
    let mut harness = AgentHarness::new();
    harness.guard.program = "/no/such/guard".into();
    let (events, _heard) = tokio::sync::mpsc::channel::<((), AgentProcessEvent)>(1);
    let launch = LaunchCommand { argv: vec!["cat".into()], ..harness.launch.clone() };
    let start = |launch: &LaunchCommand, mark: &str| {
        spawn_agent(&harness.guard, launch, mark, &harness.ledger, events.clone(), ())
            .err()
            .unwrap()
    };
    assert!(matches!(start(&launch, &new_mark()), SpawnError::Guard { .. }));
    assert!(matches!(start(&launch, "../x"), SpawnError::BadMark { .. }));
    assert!(matches!(start(&harness.launch, &new_mark()), SpawnError::NoCommand));
    assert_eq!(harness.ledger_files(), 0);
}

#[tokio::test]
async fn agent_canceled_before_its_start_does_not_start() {
    let mut harness = AgentHarness::new();
    // A guard that takes long to start, as on a busy machine: until nobody holds its agent any
    // more.
    let (go, begun) = (harness.dir.path().join("go"), harness.dir.path().join("begun"));
    let slow = format!(
        "#!/bin/sh\n[ \"$1\" = --ledger ] || until [ -e '{}' ]; do sleep 0.01; done\nexec '{}' \"$@\"\n",
        go.display(),
        harness.guard.program.display()
    );
    harness.guard.program = harness.dir.path().join("slow-guard");
    std::fs::write(&harness.guard.program, slow).unwrap();
    std::fs::set_permissions(&harness.guard.program, Permissions::from_mode(0o755)).unwrap();
    let agent = harness.spawn_script(&format!("touch '{}'; exec sleep 60", begun.display()));
    let (handle, mut events) = (agent.handle, agent.events);
    drop(handle);
    std::fs::write(&go, "").unwrap();
    let mut told = None;
    while let Some((_, event)) = tokio::time::timeout(BOUND, events.recv()).await.unwrap() {
        if let AgentProcessEvent::Gone(exit) = event {
            told = exit.failed_to_start;
        }
    }
    assert_eq!(told.as_deref(), Some("it was canceled before it started"));
    assert!(!begun.exists(), "it began");
    assert_eq!(proc::pids_with_mark(&agent.mark), proc::NO_PIDS);
}

#[tokio::test]
async fn exit_code_and_signal_are_reported() {
    let harness = AgentHarness::new();
    for (script, code, signal) in
        [("exit 3", Some(3), None), ("kill -9 $$", None, Some(9)), ("kill $$", None, Some(15))]
    {
        let mut agent = harness.spawn_script(script);
        agent.started().await;
        let exit = agent.gone().await;
        assert_eq!((exit.code, exit.signal), (code, signal), "{script}");
        agent.swept().await;
    }
}

#[tokio::test]
async fn exit_has_the_redacted_tail_of_stderr() {
    let mut harness = AgentHarness::new();
    harness.launch.env.push(("SOME_API_KEY".into(), "my-very-own-key".into()));
    let script = r#"
        i=0; while [ $i -lt 2000 ]; do echo "line $i of many" >&2; i=$((i+1)); done
        echo "401 for key $SOME_API_KEY, header Authorization: Bearer abc123" >&2
        printf 'and sk-ant-0123456789abcdef without a newline' >&2
        exit 1
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    let exit = agent.gone().await;
    let tail = &exit.stderr_tail;
    assert!(tail.len() <= 16 << 10 && tail.contains("line 1999 of many"), "{tail}");
    assert!(!tail.contains("line 0 of many") && !tail.contains("my-very-own-key"), "{tail}");
    assert!(tail.contains("401 for key ***, header Authorization: Bearer ***"), "{tail}");
    assert!(tail.ends_with("and sk-*** without a newline"), "{tail}");
    agent.swept().await;
}

#[tokio::test]
async fn guard_does_not_get_the_environment_of_its_agent() {
    let mut harness = AgentHarness::new();
    let library = "/nonexistent/library.so";
    for (name, value) in [("LD_PRELOAD", library), ("LD_LIBRARY_PATH", "/nonexistent"), ("A", "b")]
    {
        harness.launch.env.push((name.into(), value.into()));
    }
    // The parent of the agent is the guard. `ld.so` complains once for each program that it starts.
    let script = r#"
        tr '\0' '\n' < /proc/$PPID/environ | sed 's/^/guard has /' >&2
        echo "agent has $LD_PRELOAD $LD_LIBRARY_PATH $A $JACKFIELD_AGENT_MARK" >&2
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    let tail = agent.gone().await.stderr_tail;
    let complaints = tail.matches("from LD_PRELOAD cannot be preloaded").count();
    assert_eq!(complaints, 3, "sh, tr and sed, and not the guard: {tail}");
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH"] {
        assert!(!tail.contains(&format!("guard has {name}=")), "{tail}");
    }
    let seen = format!("agent has {library} /nonexistent b {}", agent.mark);
    assert!(tail.contains(&seen), "{tail}");
    agent.swept().await;
}

#[tokio::test]
async fn agent_that_exits_before_it_reads_is_reported_normally() {
    let mut agent = AgentHarness::new().spawn(&["true"]);
    for number in 0..10_000 {
        agent.send_frame(&note(number));
    }
    let exit = agent.gone().await;
    assert_eq!(exit.code, Some(0));
    assert_eq!(agent.handle.backlog(), 0);
    agent.send_frame(&note(1));
    assert_eq!(agent.handle.backlog(), 0);
    agent.swept().await;
}

#[tokio::test]
async fn stop_right_after_the_start_ends_the_agent() {
    let harness = AgentHarness::new();
    let exit = harness.spawn(&["sleep", "60"]).end(StopUrgency::Now).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let exit = harness.spawn(&["cat"]).end(StopUrgency::Polite).await;
    assert_eq!((exit.code, exit.signal), (Some(0), None));
}

#[tokio::test]
async fn all_frames_are_delivered_before_the_exit() {
    let harness = AgentHarness::new();
    for _ in 0..20 {
        let mut agent = harness.spawn_script(
            r#"i=0; while [ $i -lt 500 ]; do echo '{"jsonrpc":"2.0","method":"x"}'; i=$((i+1)); done"#,
        );
        agent.started().await;
        agent.gone().await;
        assert_eq!(agent.frames.len(), 500);
        agent.swept().await;
    }
}

#[tokio::test]
async fn exit_is_reported_while_a_grandchild_holds_stdout_open() {
    let graces = GracePeriods { left: Duration::from_secs(3), ..GracePeriods::default() };
    let harness = AgentHarness::new().with_graces(graces);
    // The grandchild is ready (TERM ignored) before the agent says its frame.
    let script = r#"
        setsid sh -c 'trap "" TERM; echo "{\"id\":1,\"result\":0}"; while :; do sleep 1; done' &
        read -r line; exit 7
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    agent.frame().await;
    let asked = Instant::now();
    agent.send_frame(&note(1));
    let exit = agent.gone().await;
    let told = asked.elapsed();
    assert_eq!(exit.code, Some(7));
    assert!(told < graces.left, "{told:?}");
    agent.swept().await;
    assert!(Duration::from_secs(3) <= asked.elapsed());
}

#[tokio::test]
async fn grandchild_that_keeps_writing_does_not_delay_the_exit() {
    let harness = AgentHarness::new();
    let script = r#"
        (trap '' TERM; exec yes '{"jsonrpc":"2.0","method":"more"}') &
        read -r line; exit 7
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    agent.frame().await;
    agent.send_frame(&note(1));
    assert_eq!(agent.gone().await.code, Some(7));
    agent.swept().await;
}

#[tokio::test]
async fn agent_that_closed_stdout_or_stdin_is_ended() {
    let harness = AgentHarness::new();
    let mut mute = harness.spawn_script("exec >&-; exec sleep 60");
    mute.started().await;
    assert_eq!(mute.gone().await.signal, Some(15));
    mute.swept().await;

    let mut deaf = harness.spawn_script(r#"exec <&-; echo '{"id":1,"result":0}'; exec sleep 60"#);
    deaf.started().await;
    deaf.frame().await;
    deaf.send_frame(&note(1));
    assert_eq!(deaf.gone().await.signal, Some(15));
    deaf.swept().await;
}

#[tokio::test]
async fn agent_with_a_closed_pipe_that_ignores_term_is_killed() {
    let harness = AgentHarness::new();
    let mut mute = harness.spawn_script("trap '' TERM; exec >&-; while :; do sleep 1; done");
    mute.started().await;
    let started = Instant::now();
    let exit = mute.gone().await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(exit.signal, Some(9));
    assert!(exit.stderr_tail.contains("closed its stdout"), "{}", exit.stderr_tail);
    mute.swept().await;
}

#[tokio::test]
async fn dropping_the_handle_ends_the_tree() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn_script("trap '' TERM; sleep 60 & while :; do sleep 1; done");
    agent.started().await;
    let crate::harness::RunningAgent { handle, mut events, mark, .. } = agent;
    drop(handle);
    let mut last = None;
    while let Some((_, event)) = tokio::time::timeout(BOUND, events.recv()).await.unwrap() {
        last = Some(event);
    }
    assert!(matches!(last, Some(AgentProcessEvent::Swept { survivors }) if survivors.is_empty()));
    assert_eq!(proc::pids_with_mark(&mark), proc::NO_PIDS);
}

#[tokio::test]
async fn fifty_agents_leave_no_descriptor_zombie_or_ledger_entry() {
    let harness = AgentHarness::new();
    let us = std::process::id();
    let mut before = Vec::new();
    for round in 0..51 {
        let mut agent = harness.spawn_script("sleep 60 & exec cat");
        agent.started().await;
        agent.send_frame(&note(round));
        assert_eq!(agent.frame().await, note(round));
        agent.end(if round % 2 == 0 { StopUrgency::Polite } else { StopUrgency::Now }).await;
        if round == 0 {
            before = proc::descriptors(us);
        }
    }
    assert_eq!(proc::descriptors(us), before);
    assert_eq!(proc::zombies_of(us), proc::NO_PIDS);
    assert_eq!(harness.ledger_files(), 0);
    assert_eq!(
        ProcessLedger::open(&harness.dir.path().join("ledger")).unwrap().reap().ended,
        proc::NO_PIDS
    );
}
