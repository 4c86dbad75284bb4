//! A client that does not read while the agent floods: memory stays flat and nothing is lost.

use jackfield_e2e::{Client, Home, procs, wait_for};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

#[test]
fn updates_wait_in_the_journal_for_a_client_that_does_not_read() {
    flood_without_reading(200_000, Duration::ZERO);
}

#[test]
#[ignore = "nightly: a minute without reading"]
fn half_a_million_updates_wait_in_the_journal_for_a_minute() {
    flood_without_reading(500_000, Duration::from_mins(1));
}

#[test]
#[ignore = "nightly: 200 readers of a log of 40 MB"]
fn memory_of_many_readers_that_left_goes_back_to_the_system() {
    const READERS: usize = 200;
    const MAX: u64 = 64 << 20;
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut driver = home.dial();
    driver.connect(&home.fake_agent(&[]));
    let id = driver.open(home.path());
    let prompt = driver.send_prompt(&id, "burst 40000 1000");
    drain(&mut driver, prompt, 40_000);
    let before = procs::allocated(daemon.pid());
    let readers: Vec<UnixStream> = (0..READERS)
        .map(|_| {
            let mut stream = UnixStream::connect(home.socket()).unwrap();
            let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
            let params = json!({ "sessionId": id, "after": 0 });
            let attach = json!({ "jsonrpc": "2.0", "id": 2, "method": "_jackfield/attach", "params": params });
            writeln!(stream, "{hello}\n{attach}").unwrap();
            stream
        })
        .collect();
    let grown = || procs::allocated(daemon.pid()).saturating_sub(before);
    wait_for("the readers to be behind", Duration::from_mins(2), || (MAX < grown()).then_some(()));
    drop(readers);
    wait_for("the memory to go back", Duration::from_mins(1), || (grown() < MAX).then_some(()));
    assert_eq!(driver.prompt(&id, "hello"), "end_turn");
    drop(driver);
    daemon.stop();
}

/// `pause` is how long the client does not read, at least: the flood itself takes seconds.
fn flood_without_reading(count: usize, pause: Duration) {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut driver = home.dial();
    driver.connect(&home.fake_agent(&[]));
    let id = driver.open(home.path());
    driver.prompt(&id, "burst 2000 300");
    let sleeper = UnixStream::connect(home.socket()).unwrap();
    resume(&sleeper, &id);
    let before = procs::resident(daemon.pid());
    let begin = Instant::now();
    let prompt = driver.send_prompt(&id, &format!("burst {count} 300"));
    drain(&mut driver, prompt, count);
    let flood = begin.elapsed();
    let rest = pause.checked_sub(flood).unwrap_or_default();
    let deadline = Instant::now() + rest;
    let mut most = procs::resident(daemon.pid());
    while Instant::now() < deadline {
        most = most.max(procs::resident(daemon.pid()));
        std::thread::sleep(Duration::from_millis(100));
    }
    let grown = procs::resident_peak(daemon.pid()).max(most).saturating_sub(before);
    assert!(grown < 50 * 1024 * 1024, "the daemon grew by {} MB", grown >> 20);
    check_everything(&sleeper, count);
    drop(sleeper);
    drop(driver);
    daemon.stop();
}

/// Attaches a second client by hand and reads exactly the two answers, so that nothing reads on.
fn resume(stream: &UnixStream, id: &str) {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    let resume = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/resume", "params": { "sessionId": id, "cwd": "/" } });
    let mut writer = stream;
    writeln!(writer, "{hello}").unwrap();
    writeln!(writer, "{resume}").unwrap();
    let mut reader = BufReader::with_capacity(1, stream);
    for _ in 0..2 {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("\"result\""), "{line}");
    }
}

/// The driver reads its own turn to the end without keeping it.
fn drain(driver: &mut Client, prompt: u64, count: usize) {
    let mark = format!("\"id\":{prompt},");
    let mut updates = 0;
    loop {
        let line = driver.next_line(Duration::from_mins(1)).expect("the turn ends");
        if line.contains("\"stopReason\"") && line.contains(&mark) {
            break;
        }
        updates += usize::from(line.contains("agent_message_chunk"));
    }
    assert_eq!(updates, count, "the driver heard each update");
}

/// The sleeper wakes and reads: its neighbour's prompt, then every update once and in order.
fn check_everything(stream: &UnixStream, count: usize) {
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut next = 1;
    for line in BufReader::with_capacity(1 << 18, stream).lines() {
        let line = line.expect("the hub goes on");
        if !line.contains("agent_message_chunk") {
            continue;
        }
        let at = line.find("\"text\":\"").expect("a text") + 8;
        let digits: String = line[at..].chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(digits, next.to_string(), "lost or repeated");
        if next == count {
            return;
        }
        next += 1;
    }
    panic!("the stream ended at {next}");
}

#[test]
fn a_client_that_asks_and_never_reads_is_cut_off() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut writer = &stream;
    let method = "x".repeat(60_000);
    // Each answer repeats the name of the method that is not there.
    let cut = (1..10_000).find(|id| {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
        writer.write_all(line.as_bytes()).is_err()
    });
    assert!(cut.is_some(), "it was listened to for ever");
    let mut other = home.dial();
    other.hello();
    let peak = procs::resident_peak(daemon.pid()) >> 20;
    assert!(peak < 200, "the daemon took {peak} MB");
    drop(other);
    daemon.stop();
}
