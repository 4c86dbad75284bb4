//! Much at once, and peers that do not read: nothing is lost, nobody else waits.

use super::{Bus, one_pool, pid, request, say_all, socket};
use jackfield_e2e::{Client, Home, procs};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

const BURST: usize = 100_000;

/// Every update once and in order, then the answer.
fn check_burst(lines: impl Iterator<Item = String>, count: usize) {
    let mut next = 0;
    for line in lines {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message.get("result").is_some() {
            assert_eq!(next, count);
            return;
        }
        assert_eq!(message["params"]["update"]["n"], next, "in order, without gaps");
        next += 1;
    }
    panic!("the answer is missing after {next} updates");
}

#[test]
fn a_hundred_thousand_updates_arrive_once_and_in_order() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut stream = UnixStream::connect(socket(&home)).unwrap();
    let burst = json!({ "sessionId": "s", "n": BURST });
    say_all(&mut stream, [request(1, "burst", &burst)]);
    let lines = BufReader::with_capacity(1 << 18, &stream).lines();
    check_burst(lines.map(Result::unwrap), BURST);
    let peak = procs::resident_peak(bus.child.id());
    assert!(peak < 64 << 20, "{} MiB", peak >> 20);
    bus.stop();
}

/// The published kernel stopped for ever once its stdout was full: 160 of 100,000 arrived.
#[test]
fn a_reader_on_stdio_may_pause_and_then_hears_everything() {
    let home = Home::new();
    let (bus, mut stdin, mut stdout) = Bus::spawn(&home, &one_pool(&home, 1), &[]);
    let burst = json!({ "sessionId": "s", "n": BURST });
    say_all(&mut stdin, [request(1, "burst", &burst)]);
    // It begins to read when the bus has nowhere to put anything any more: its memory stands still.
    let mut before = 0;
    jackfield_e2e::wait_for("the burst to stand still", Duration::from_secs(30), || {
        std::thread::sleep(Duration::from_millis(300));
        let now = procs::resident(bus.child.id());
        let still = now == before && (1 << 20) < now;
        before = now;
        still.then_some(())
    });
    let peak = procs::resident_peak(bus.child.id());
    assert!(peak < 64 << 20, "{} MiB", peak >> 20);
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap();
    let rest = BufReader::with_capacity(1 << 18, std::io::Cursor::new(first).chain(stdout));
    check_burst(rest.lines().map(Result::unwrap), BURST);
    drop(stdin);
    assert_eq!(bus.end().code(), Some(0));
}

/// The published kernel dropped what did not fit: "Failed to write to worker".
#[test]
fn a_worker_that_does_not_read_for_a_while_gets_everything_in_the_end() {
    const COUNT: u64 = 20_000;
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut stream = UnixStream::connect(socket(&home)).unwrap();
    let mut reader = Client::new(Box::new(stream.try_clone().unwrap()), Box::new(std::io::sink()));
    say_all(&mut stream, [request("deaf", "deaf", &json!({ "ms": 1000 }))]);
    // 10 MB: far more than its pipe holds. The bus stops reading us, not the other way round.
    let text = "x".repeat(500);
    for id in 0..COUNT {
        say_all(&mut stream, [request(id, "echo", &json!({ "text": text }))]);
    }
    reader.until("the first answer", |it| it["id"] == "deaf");
    for id in 0..COUNT {
        let answer = reader.next(Duration::from_secs(20)).expect("an answer");
        assert_eq!(answer["id"], id, "in order, without gaps");
        assert_eq!(answer["result"]["said"]["text"], text);
    }
    bus.stop();
}

#[test]
fn client_that_never_reads_is_closed_and_its_worker_serves_others() {
    let home = Home::new();
    let mut config = one_pool(&home, 2);
    config["limits"] = json!({ "max_output_queue": 1 << 20, "backpressure_timeout_sec": 2 });
    let bus = Bus::on_unix(&home, &config);
    let mut other = bus.dial();
    let mut stream = UnixStream::connect(socket(&home)).unwrap();
    let begin = Instant::now();
    let burst = json!({ "sessionId": "s", "n": BURST });
    say_all(&mut stream, [request(1, "burst", &burst)]);
    bus.until_said("and none was read in ");
    assert!(Duration::from_secs(2) < begin.elapsed(), "{:?}", begin.elapsed());
    // Both workers serve the other client as soon as the one that waited has finished its burst.
    let mut workers = std::collections::BTreeSet::new();
    jackfield_e2e::wait_for("answers of both workers", Duration::from_secs(20), || {
        workers.insert(pid(&other.ask("echo", &json!({}))));
        (workers.len() == 2).then_some(())
    });
    let peak = procs::resident_peak(bus.child.id());
    assert!(peak < 64 << 20, "{} MiB", peak >> 20);
    // The client can still read what was sent before the end of its connection.
    let mut heard = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let ended = stream.read_to_end(&mut heard);
    assert!(ended.is_ok() || heard.is_empty(), "{ended:?}");
    assert!(heard.len() < 20 << 20, "{}", heard.len());
    let _gone = stream.write_all(b"\n");
    bus.stop();
}

/// While one client and one worker flood, another is served in time.
#[test]
fn a_flood_keeps_nobody_waiting_long() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 2));
    let mut calm = bus.dial();
    let calm_session = json!({ "sessionId": "calm" });
    let calm_worker = pid(&calm.ask("echo", &calm_session));
    let mut flood = bus.dial();
    let flood_worker = pid(&flood.ask("echo", &json!({ "sessionId": "flood" })));
    assert_ne!(calm_worker, flood_worker);
    let burst = json!({ "sessionId": "flood", "n": BURST });
    let id = flood.send("burst", &burst);
    let mut waits = Vec::new();
    for _ in 0..50 {
        let begin = Instant::now();
        calm.result("echo", &calm_session);
        waits.push(begin.elapsed());
    }
    waits.sort_unstable();
    // The bench measures; here it is only shown that nobody waits for the end of the flood.
    assert!(waits[45] < Duration::from_secs(1), "{waits:?}");
    assert!(flood.answer(id).get("result").is_some());
    let updates = flood.heard.iter().filter(|it| it["method"] == "session/update").count();
    assert_eq!(updates, BURST);
    bus.stop();
}
