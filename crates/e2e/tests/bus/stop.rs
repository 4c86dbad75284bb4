//! The end of a bus: its input ends, somebody asks for it, and nothing stays.

use super::{Bus, exists, fault, is_gone, one_pool, request, say_all, socket};
use jackfield_e2e::{Home, procs};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    io::Read as _,
    time::{Duration, Instant},
};

/// The published kernel stayed, in a busy loop that filled its log.
#[test]
fn the_end_of_the_input_ends_the_bus_when_everything_is_answered() {
    let home = Home::new();
    let (bus, mut stdin, mut stdout) = Bus::spawn(&home, &one_pool(&home, 2), &["--stdio"]);
    let slow = request("slow", "sleep", &json!({ "ms": 1000 }));
    let lines = (0..10).map(|it| request(it, "echo", &json!({})));
    say_all(&mut stdin, std::iter::once(slow).chain(lines));
    drop(stdin);
    let mut heard = String::new();
    stdout.read_to_string(&mut heard).unwrap();
    let used = cpu_ms(bus.child.id());
    assert_eq!(bus.end().code(), Some(0));
    let answers: Vec<Value> = heard.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(answers.len(), 11, "{heard}");
    assert!(answers.iter().all(|it| it.get("result").is_some()), "{heard}");
    assert_eq!(answers[10]["id"], "slow");
    assert!(used < 500, "{used} ms of the processor for one second of waiting");
    is_gone(&home, Duration::ZERO);
}

/// Of the bus itself, so far; nothing if it is gone already.
fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    ticks * 10
}

#[test]
fn an_input_that_is_over_at_once_is_no_reason_to_stay() {
    let home = Home::new();
    let (bus, stdin, stdout) = Bus::spawn(&home, &one_pool(&home, 1), &[]);
    drop((stdin, stdout));
    assert_eq!(bus.end().code(), Some(0));
}

/// The published kernel crashed, and left its socket.
#[test]
fn a_bus_that_is_asked_to_stop_answers_what_was_asked_and_leaves_nothing() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 2));
    let mut client = bus.dial();
    client.result("grandchild", &json!({}));
    let slow = client.send("sleep", &json!({ "ms": 700 }));
    let begin = Instant::now();
    // It has arrived when this is answered.
    client.result("echo", &json!({}));
    bus.signal(Signal::TERM);
    bus.until_said("stopping after 1 pending requests");
    assert_eq!(fault(&client.ask("echo", &json!({}))), "stopping");
    assert!(client.answer(slow).get("result").is_some());
    assert!(Duration::from_millis(700) <= begin.elapsed());
    assert_eq!(bus.end().code(), Some(0));
    assert!(!exists(&socket(&home)));
    is_gone(&home, Duration::ZERO);
    assert!(client.next(Duration::from_secs(5)).is_none(), "the connection is closed");
}

#[test]
fn what_takes_too_long_is_told_when_the_time_is_up() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "drain_timeout_sec": 0.5 });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    let never = client.send("hang", &json!({}));
    client.result("echo", &json!({}));
    bus.signal(Signal::INT);
    assert_eq!(fault(&client.answer(never)), "stopping");
    assert_eq!(bus.end().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    let never = client.send("stuck", &json!({}));
    bus.until_said("started as process");
    bus.signal(Signal::TERM);
    bus.until_said("stopping after");
    let begin = Instant::now();
    bus.signal(Signal::TERM);
    assert_eq!(fault(&client.answer(never)), "stopping");
    assert_eq!(bus.end().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    is_gone(&home, Duration::ZERO);
}

#[test]
fn an_idle_bus_does_nothing() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    client.result("echo", &json!({}));
    let before = cpu_ms(bus.child.id());
    std::thread::sleep(Duration::from_millis(1500));
    let used = cpu_ms(bus.child.id()) - before;
    assert!(used <= 10, "{used} ms");
    assert!(procs::allocated(bus.child.id()) < 20 << 20);
    bus.stop();
}
