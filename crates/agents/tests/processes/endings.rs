//! How an agent can end, and what is told of it.

use crate::proc;
use crate::world::{BOUND, World, new_mark, note};
use jackfield_agents::{AgentEvent, Graces, Launch, Ledger, SpawnError, Stop, spawn};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

#[tokio::test]
async fn an_agent_that_cannot_be_started_says_why() {
    let world = World::new();
    let text = world.dir.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let text = text.to_str().unwrap();
    let script = world.dir.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter").unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let cases = [
        ("no-such-agent", "/", "`no-such-agent` was not found on PATH"),
        ("/no/such/agent", "/", "`/no/such/agent`: No such file"),
        (text, "/", "Permission denied"),
        (script, "/", "the interpreter of"),
        ("cat", "/no/such/place", "the working directory `/no/such/place`: No such file"),
        ("cat", text, "is no directory"),
    ];
    for (program, cwd, why) in cases {
        let mut world = World::new();
        world.launch.cwd = cwd.into();
        let mut agent = world.spawn(&[program]);
        let AgentEvent::Gone(exit) = agent.next().await else { panic!("not Gone at once") };
        let told = exit.failed_to_start.unwrap();
        assert!(told.contains(why), "{told}");
        assert_eq!((exit.code, exit.signal), (None, None));
        agent.swept().await;
        assert_eq!(world.ledger_files(), 0);
    }
}

#[tokio::test]
async fn without_a_guard_there_is_an_error_and_no_entry() {
    let mut world = World::new();
    world.guard.program = "/no/such/guard".into();
    let (events, _heard) = tokio::sync::mpsc::channel::<((), AgentEvent)>(1);
    let launch = Launch { argv: vec!["cat".into()], ..world.launch.clone() };
    let start = |launch: &Launch, mark: &str| {
        spawn(&world.guard, launch, mark, &world.ledger, events.clone(), ()).err().unwrap()
    };
    assert!(matches!(start(&launch, &new_mark()), SpawnError::Guard { .. }));
    assert!(matches!(start(&launch, "../x"), SpawnError::BadMark { .. }));
    assert!(matches!(start(&world.launch, &new_mark()), SpawnError::NoCommand));
    assert_eq!(world.ledger_files(), 0);
}

#[tokio::test]
async fn what_is_cancelled_before_it_begins_does_not_begin() {
    let mut world = World::new();
    // A guard that takes long to start, as on a busy machine: until nobody holds its agent any more.
    let (go, begun) = (world.dir.path().join("go"), world.dir.path().join("begun"));
    let slow = format!(
        "#!/bin/sh\n[ \"$1\" = --ledger ] || until [ -e '{}' ]; do sleep 0.01; done\nexec '{}' \"$@\"\n",
        go.display(),
        world.guard.program.display()
    );
    world.guard.program = world.dir.path().join("slow-guard");
    std::fs::write(&world.guard.program, slow).unwrap();
    std::fs::set_permissions(&world.guard.program, Permissions::from_mode(0o755)).unwrap();
    let agent = world.sh(&format!("touch '{}'; exec sleep 60", begun.display()));
    let (handle, mut events) = (agent.handle, agent.events);
    drop(handle);
    std::fs::write(&go, "").unwrap();
    let mut told = None;
    while let Some((_, event)) = tokio::time::timeout(BOUND, events.recv()).await.unwrap() {
        if let AgentEvent::Gone(exit) = event {
            told = exit.failed_to_start;
        }
    }
    assert_eq!(told.as_deref(), Some("nobody wants it any more"));
    assert!(!begun.exists(), "it began");
    assert_eq!(proc::marked(&agent.mark), proc::NOBODY);
}

#[tokio::test]
async fn the_exit_code_and_the_signal_are_told() {
    let world = World::new();
    for (script, code, signal) in
        [("exit 3", Some(3), None), ("kill -9 $$", None, Some(9)), ("kill $$", None, Some(15))]
    {
        let mut agent = world.sh(script);
        agent.started().await;
        let exit = agent.gone().await;
        assert_eq!((exit.code, exit.signal), (code, signal), "{script}");
        agent.swept().await;
    }
}

#[tokio::test]
async fn the_tail_of_stderr_comes_with_the_end_and_without_secrets() {
    let mut world = World::new();
    world.launch.env.push(("SOME_API_KEY".into(), "my-very-own-key".into()));
    let script = r#"
        i=0; while [ $i -lt 2000 ]; do echo "line $i of many" >&2; i=$((i+1)); done
        echo "401 for key $SOME_API_KEY, header Authorization: Bearer abc123" >&2
        printf 'and sk-ant-0123456789abcdef without a newline' >&2
        exit 1
    "#;
    let mut agent = world.sh(script);
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
async fn guard_does_not_see_the_environment_of_its_agent() {
    let mut world = World::new();
    let library = "/nonexistent/library.so";
    for (name, value) in [("LD_PRELOAD", library), ("LD_LIBRARY_PATH", "/nonexistent"), ("A", "b")]
    {
        world.launch.env.push((name.into(), value.into()));
    }
    // The parent of the agent is the guard. `ld.so` complains once for each program that it starts.
    let script = r#"
        tr '\0' '\n' < /proc/$PPID/environ | sed 's/^/guard has /' >&2
        echo "agent has $LD_PRELOAD $LD_LIBRARY_PATH $A $JACKFIELD_AGENT_MARK" >&2
    "#;
    let mut agent = world.sh(script);
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
async fn an_agent_that_ends_before_it_reads_takes_nobody_with_it() {
    let mut agent = World::new().spawn(&["true"]);
    for number in 0..10_000 {
        agent.say(&note(number));
    }
    let exit = agent.gone().await;
    assert_eq!(exit.code, Some(0));
    assert_eq!(agent.handle.backlog(), 0);
    agent.say(&note(1));
    assert_eq!(agent.handle.backlog(), 0);
    agent.swept().await;
}

#[tokio::test]
async fn a_stop_in_the_first_moment_finds_its_agent() {
    let world = World::new();
    let exit = world.spawn(&["sleep", "60"]).end(Stop::Now).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let exit = world.spawn(&["cat"]).end(Stop::Polite).await;
    assert_eq!((exit.code, exit.signal), (Some(0), None));
}

#[tokio::test]
async fn the_last_words_come_before_the_end() {
    let world = World::new();
    for _ in 0..20 {
        let mut agent = world.sh(
            r#"i=0; while [ $i -lt 500 ]; do echo '{"jsonrpc":"2.0","method":"x"}'; i=$((i+1)); done"#,
        );
        agent.started().await;
        agent.gone().await;
        assert_eq!(agent.frames.len(), 500);
        agent.swept().await;
    }
}

#[tokio::test]
async fn an_end_is_told_at_once_even_if_a_grandchild_holds_stdout_and_will_not_go() {
    let graces = Graces { left: Duration::from_secs(3), ..Graces::default() };
    let world = World::new().graces(graces);
    // The grandchild is ready (TERM ignored) before the agent says its frame.
    let script = r#"
        setsid sh -c 'trap "" TERM; echo "{\"id\":1,\"result\":0}"; while :; do sleep 1; done' &
        read -r line; exit 7
    "#;
    let mut agent = world.sh(script);
    agent.started().await;
    agent.frame().await;
    let asked = Instant::now();
    agent.say(&note(1));
    let exit = agent.gone().await;
    let told = asked.elapsed();
    assert_eq!(exit.code, Some(7));
    assert!(told < graces.left, "{told:?}");
    agent.swept().await;
    assert!(Duration::from_secs(3) <= asked.elapsed());
}

#[tokio::test]
async fn a_grandchild_that_writes_for_ever_does_not_keep_the_end_back() {
    let world = World::new();
    let script = r#"
        (trap '' TERM; exec yes '{"jsonrpc":"2.0","method":"more"}') &
        read -r line; exit 7
    "#;
    let mut agent = world.sh(script);
    agent.started().await;
    agent.frame().await;
    agent.say(&note(1));
    assert_eq!(agent.gone().await.code, Some(7));
    agent.swept().await;
}

#[tokio::test]
async fn an_agent_that_closed_stdout_or_stdin_serves_nobody_and_is_ended() {
    let world = World::new();
    let mut mute = world.sh("exec >&-; exec sleep 60");
    mute.started().await;
    assert_eq!(mute.gone().await.signal, Some(15));
    mute.swept().await;

    let mut deaf = world.sh(r#"exec <&-; echo '{"id":1,"result":0}'; exec sleep 60"#);
    deaf.started().await;
    deaf.frame().await;
    deaf.say(&note(1));
    assert_eq!(deaf.gone().await.signal, Some(15));
    deaf.swept().await;
}

#[tokio::test]
async fn a_dead_pipe_is_noticed_even_if_the_agent_will_not_go() {
    let world = World::new();
    let mut mute = world.sh("trap '' TERM; exec >&-; while :; do sleep 1; done");
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
    let world = World::new();
    let mut agent = world.sh("trap '' TERM; sleep 60 & while :; do sleep 1; done");
    agent.started().await;
    let crate::world::Agent { handle, mut events, mark, .. } = agent;
    drop(handle);
    let mut last = None;
    while let Some((_, event)) = tokio::time::timeout(BOUND, events.recv()).await.unwrap() {
        last = Some(event);
    }
    assert!(matches!(last, Some(AgentEvent::Swept { survivors }) if survivors.is_empty()));
    assert_eq!(proc::marked(&mark), proc::NOBODY);
}

#[tokio::test]
async fn fifty_lives_leave_no_descriptor_no_zombie_and_no_entry() {
    let world = World::new();
    let us = std::process::id();
    let mut before = Vec::new();
    for round in 0..51 {
        let mut agent = world.sh("sleep 60 & exec cat");
        agent.started().await;
        agent.say(&note(round));
        assert_eq!(agent.frame().await, note(round));
        agent.end(if round % 2 == 0 { Stop::Polite } else { Stop::Now }).await;
        if round == 0 {
            before = proc::fds(us);
        }
    }
    assert_eq!(proc::fds(us), before);
    assert_eq!(proc::zombies_of(us), proc::NOBODY);
    assert_eq!(world.ledger_files(), 0);
    assert_eq!(Ledger::open(&world.dir.path().join("ledger")).unwrap().reap().ended, proc::NOBODY);
}
