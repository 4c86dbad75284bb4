//! Many readers of many sessions at once: nothing is lost, and nothing is late.
//!
//! Agents stamp each of their words with the time; readers compare it with theirs. CI runs a small
//! world; `cargo xtask load` runs the large one, with release builds, and prints the figures of
//! docs/performance.md.

mod asker;
mod figures;
mod reader;
mod web;

use figures::{Figures, cpu};
use jackfield_e2e::{Home, procs};
use reader::{Carrier, Reader};
use serde_json::json;
use std::{
    env, fs,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use web::Web;

/// How large the world is.
#[derive(Debug, Clone, Copy)]
struct Size {
    sessions: usize,
    /// Of server-sent events, and as many of web sockets.
    readers: usize,
    seconds: u64,
    /// On `/api/runs/{id}`, beside the readers.
    requests_per_second: u32,
    /// What the slowest of a hundred deliveries may take.
    p99_max: Duration,
}

/// Words an agent says in a second.
const RATE: u64 = 20;

fn size() -> Size {
    let number = |name: &str, otherwise: u64| {
        env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
    };
    Size {
        sessions: usize::try_from(number("LOAD_SESSIONS", 10)).unwrap(),
        readers: usize::try_from(number("LOAD_READERS", 50)).unwrap(),
        seconds: number("LOAD_SECONDS", 4),
        requests_per_second: u32::try_from(number("LOAD_REQUESTS", 100)).unwrap(),
        // A debug build on a busy machine is no measurement; a second would be a fault.
        p99_max: Duration::from_millis(number("LOAD_P99_MS", 1_000)),
    }
}

#[test]
fn every_reader_of_every_session_hears_everything_in_time() {
    let size = size();
    let home = Home::new();
    fs::create_dir_all(home.path().join("config")).unwrap();
    let work = home.path().join("work");
    fs::create_dir_all(&work).unwrap();
    let config = format!(
        "[agents.fake]\ncommand = {}\n[http]\nroots = [{}]\n",
        json!(home.fake_agent(&[])),
        json!(work),
    );
    fs::write(home.path().join("config/config.toml"), config).unwrap();
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    let front = jackfield_e2e::Web::of(&home);
    let web = Web { at: front.address, token: front.token };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let figures = runtime.block_on(run(size, web, work.to_str().unwrap(), daemon.pid()));
    figures.print(size);
    assert_eq!(figures.lost, 0, "deliveries are missing");
    assert_eq!(figures.failed_requests, 0, "requests failed");
    assert!(figures.p99() < size.p99_max, "p99 is {:?}", figures.p99());
    drop(daemon);
}

#[expect(clippy::print_stderr, reason = "shows what a reader got last, if ticks are missing")]
async fn run(size: Size, web: Web, cwd: &str, daemon: u32) -> Figures {
    let mut sessions = Vec::new();
    for _ in 0..size.sessions {
        let body = json!({ "agentId": "fake", "message": "hi", "cwd": cwd });
        sessions.push(web.start(&body).await);
    }
    let before = procs::resident(daemon);
    let words = size.seconds * RATE;
    let mut readers = JoinSet::new();
    for carrier in [Carrier::Events, Carrier::WebSocket] {
        for number in 0..size.readers {
            let session = &sessions[number % sessions.len()].session;
            let reader = Reader::open(&web, carrier, session, cwd).await;
            readers.spawn(reader.read(words));
        }
    }
    let with_readers = procs::resident(daemon);
    let (begun, used) = (Instant::now(), cpu(daemon));
    for run in &sessions {
        web.prompt(&run.session, &format!("tick {words} {}", 1_000 / RATE)).await;
    }
    let length = Duration::from_secs(size.seconds);
    let asked = asker::ask(&web, &sessions, size.requests_per_second, length);
    let (asked, heard) = tokio::join!(asked, readers.join_all());
    let seconds = begun.elapsed().as_secs_f64();
    for reader in heard.iter().filter(|it| it.ticks < words) {
        eprintln!("a reader got {} of {words} ticks; the end: {:?}", reader.ticks, reader.end);
    }
    Figures {
        lost: heard.iter().map(|it| words - it.ticks).sum(),
        delays: heard.into_iter().flat_map(|it| it.delays).collect(),
        failed_requests: asked.failed,
        requests: asked.delays,
        connection_bytes: with_readers.saturating_sub(before) / (2 * size.readers as u64),
        resident_peak: procs::resident_peak(daemon),
        cpu: (cpu(daemon) - used) / seconds,
        seconds,
    }
}
