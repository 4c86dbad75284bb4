//! Frames and noise, both ways, and what happens when someone does not read.

use crate::harness::{AgentHarness, BOUND, note};
use crate::proc;
use bytes::Bytes;
use jackfield_agents::{AgentProcessEvent, BacklogFull, ProcessLimits, StopUrgency};
use std::time::Duration;

#[tokio::test]
async fn frames_pass_through_an_agent_unchanged() {
    let harness = AgentHarness::new();
    let mut agent = harness.spawn(&["cat"]);
    let pid = agent.started().await;
    assert!(proc::is_alive(pid));
    let texts = [note(1), r#"{"id": 7 ,"result":{"a":1.50,"b":"é"}}"#.to_owned(), note(3)];
    for text in &texts {
        agent.handle.send(Bytes::copy_from_slice(text.as_bytes())).unwrap();
    }
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    assert_eq!(agent.handle.backlog(), bytes);
    assert_eq!(agent.handle.flush(), bytes);
    assert_eq!((agent.handle.backlog(), agent.handle.flush()), (0, 0));
    for text in &texts {
        assert_eq!(&agent.frame().await, text);
    }
    let exit = agent.end(StopUrgency::Polite).await;
    assert_eq!((exit.code, exit.signal, exit.failed_to_start), (Some(0), None, None));
    assert_eq!((exit.stderr_tail.as_str(), exit.noise), ("", 0));
    assert_eq!(harness.ledger_files(), 0);
}

#[tokio::test]
async fn frames_sent_before_the_start_reach_the_agent() {
    let mut agent = AgentHarness::new().spawn(&["cat"]);
    agent.send_frame(&note(1));
    agent.started().await;
    assert_eq!(agent.frame().await, note(1));
    agent.end(StopUrgency::Polite).await;
}

#[tokio::test]
async fn more_frames_than_a_pipe_holds_arrive_in_order() {
    const COUNT: usize = 20_000;
    let mut agent = AgentHarness::new().spawn(&["cat"]);
    agent.started().await;
    let (mut sent, mut wrote) = (0, 0);
    for number in 0..COUNT {
        let text = note(number);
        sent += text.len() + 1;
        agent.handle.send(Bytes::from(text)).unwrap();
        if number % 100 == 0 {
            wrote += agent.handle.flush();
        }
    }
    wrote += agent.handle.flush();
    assert!(0 < wrote && wrote < sent, "{wrote} of {sent}");
    let mut number = 0;
    while number < COUNT || wrote < sent {
        match agent.next().await {
            AgentProcessEvent::Frames(frames) => {
                for frame in frames {
                    assert_eq!(frame.text(), note(number));
                    number += 1;
                }
            }
            AgentProcessEvent::Wrote { bytes } => wrote += bytes,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((agent.handle.backlog(), wrote), (0, sent));
    agent.end(StopUrgency::Polite).await;
}

#[tokio::test]
async fn polite_stop_closes_stdin_after_the_last_frame() {
    let mut agent = AgentHarness::new().spawn(&["cat"]);
    agent.started().await;
    for number in 0..5000 {
        agent.handle.send(Bytes::from(note(number))).unwrap();
    }
    agent.handle.stop(StopUrgency::Polite);
    let exit = agent.gone().await;
    assert_eq!(exit.code, Some(0));
    assert_eq!(agent.frames, (0..5000).map(note).collect::<Vec<_>>());
    agent.swept().await;
}

#[tokio::test]
async fn noise_is_counted_and_never_breaks_a_frame() {
    let harness = AgentHarness::new();
    let script = r#"
        echo 'Loaded cached credentials.'
        printf '\033[2J\033]0;title\007\r\n\r\n'
        printf '{"jsonrpc":"2.0","method":"a"}\r\n'
        printf '\377\376\000 not text\n'
        printf '\033]0;tab\007\357\273\277{"jsonrpc":"2.0","method":"b"}\n'
        echo '{"level":"info","token":"Bearer abc.def"}'
        echo '    at Object.<anonymous> (index.js:1:1)'
        printf '{"jsonrpc":"2.0","method":"c"}'
    "#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    let exit = agent.gone().await;
    let methods = ["a", "b", "c"].map(|name| format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#));
    assert_eq!(agent.frames, methods);
    assert_eq!((exit.noise, agent.noise), (6, 6), "{}", exit.stderr_tail);
    assert!(exit.stderr_tail.contains("[stdout] Loaded cached credentials."));
    assert!(exit.stderr_tail.contains(r#"[stdout] {"level":"info","token":"Bearer ***"}"#));
    assert!(!exit.stderr_tail.contains('\x1b'), "{}", exit.stderr_tail);
    agent.swept().await;
}

#[tokio::test]
async fn oversized_line_uses_little_memory_and_next_frame_survives() {
    let harness = AgentHarness::new();
    let script = r#"head -c 200000000 /dev/zero | tr '\0' x; echo; echo '{"id":1,"result":2}'"#;
    let mut agent = harness.spawn_script(script);
    agent.started().await;
    assert_eq!(agent.frame().await, r#"{"id":1,"result":2}"#);
    let exit = agent.gone().await;
    assert_eq!(exit.noise, 1);
    assert!(exit.stderr_tail.contains("longer than 16777216 bytes"), "{}", exit.stderr_tail);
    agent.swept().await;
    let peak = proc::proc_value(std::process::id(), "status", "VmHWM").unwrap();
    let peak_kib: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 80 << 10, "{peak}");
}

#[tokio::test]
async fn backlog_of_an_agent_that_never_reads_is_limited() {
    let mut harness = AgentHarness::new();
    harness.limits = ProcessLimits { backlog_bytes_max: 1 << 20, ..ProcessLimits::default() };
    let mut agent = harness.spawn(&["sleep", "60"]);
    agent.started().await;
    let text = Bytes::from(format!(r#"{{"method":"{}"}}"#, "x".repeat(100_000)));
    let mut sent = 0;
    let full = loop {
        match agent.handle.send(text.clone()) {
            Ok(()) => sent += text.len() + 1,
            Err(full) => break full,
        }
        agent.handle.flush();
    };
    assert_eq!(full, BacklogFull { backlog: agent.handle.backlog(), limit: 1 << 20 });
    assert!(full.backlog <= full.limit && full.limit < full.backlog + text.len() + 1);
    // The pipe took the rest.
    assert!(full.backlog + (4 << 10) <= sent && sent <= full.backlog + (64 << 10), "{sent}");
    let exit = agent.end(StopUrgency::Now).await;
    assert_eq!(exit.signal, Some(9));
}

/// What the agent wrote so far, once it has stopped writing because the pipe is full.
fn written_when_blocked(pid: u32) -> u64 {
    let written = || proc::proc_value(pid, "io", "wchar").unwrap().parse::<u64>().unwrap();
    let mut last = 0;
    proc::wait_until("the agent waits for its pipe", BOUND, || {
        std::thread::sleep(Duration::from_millis(50));
        let now = written();
        let same = now == last && 0 < now && proc::state(pid).unwrap().0 == 'S';
        last = now;
        same
    });
    last
}

#[tokio::test]
async fn paused_agent_blocks_on_its_pipe_and_resumes() {
    let line = r#"{"jsonrpc":"2.0","method":"again"}"#;
    let mut agent = AgentHarness::new().spawn(&["yes", line]);
    let pid = agent.started().await;
    assert_eq!(agent.frame().await, line);
    agent.handle.pause();
    // The runtime has one thread: nothing is read while we look.
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(50), agent.events.recv()).await
    {
        assert!(matches!(event, Some((7, AgentProcessEvent::Frames(_)))), "{event:?}");
    }
    let blocked = written_when_blocked(pid);
    let more = tokio::time::timeout(Duration::from_millis(100), agent.events.recv()).await;
    assert!(more.is_err(), "a paused agent was read");
    assert_eq!(written_when_blocked(pid), blocked);
    agent.handle.resume();
    agent.frames.clear();
    assert_eq!(agent.frame().await, line);
    agent.handle.pause();
    let exit = agent.end(StopUrgency::Now).await;
    assert_eq!(exit.signal, Some(9));
}

#[tokio::test]
async fn full_event_channel_stops_the_reading() {
    let mut harness = AgentHarness::new();
    harness.events_max = 2;
    let mut agent = harness.spawn(&["yes", r#"{"jsonrpc":"2.0","method":"again"}"#]);
    let pid = agent.started().await;
    tokio::task::spawn_blocking(move || {
        let written = written_when_blocked(pid);
        // Two events in the channel, one in hand, one pipe: each about a read.
        assert!(written <= 1 << 20, "{written}");
    })
    .await
    .unwrap();
    agent.end(StopUrgency::Now).await;
}
