//! Requests at a steady rate, on a few connections that are kept open.

use super::web::{Run, Web};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

const CONNECTIONS: u32 = 8;
const WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) failed: u64,
    pub(super) delays: Vec<Duration>,
}

pub(super) async fn ask(web: &Web, runs: &[Run], per_second: u32, length: Duration) -> Asked {
    let mut askers = JoinSet::new();
    for number in 0..CONNECTIONS {
        let paths: Vec<String> = runs.iter().map(|it| format!("/api/runs/{}", it.run)).collect();
        askers.spawn(one(web.clone(), paths, number as usize, per_second, length));
    }
    let mut all = Asked::default();
    for asked in askers.join_all().await {
        all.failed += asked.failed;
        all.delays.extend(asked.delays);
    }
    all
}

async fn one(
    web: Web,
    paths: Vec<String>,
    number: usize,
    per_second: u32,
    length: Duration,
) -> Asked {
    let mut stream = web.connect().await;
    let mut clock = interval(Duration::from_secs(1) * CONNECTIONS / per_second.max(1));
    // Late is late: the rate is kept on average.
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (begun, mut asked, mut buffer) = (Instant::now(), Asked::default(), Vec::new());
    for path in paths.iter().cycle().skip(number) {
        clock.tick().await;
        if length < begun.elapsed() {
            break;
        }
        let sent = Instant::now();
        let request = web.head("GET", path) + "\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        buffer.clear();
        let good = loop {
            match timeout(WITHIN, stream.read_buf(&mut buffer)).await {
                Ok(Ok(count)) if 0 < count => {}
                _ => break false,
            }
            if let Some(good) = is_whole(&buffer) {
                break good;
            }
        };
        asked.failed += u64::from(!good);
        asked.delays.push(sent.elapsed());
    }
    asked
}

/// Whether the answer is there in full, and is a good one.
fn is_whole(answer: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "))?;
    (length.parse() == Ok(body.len())).then(|| head.starts_with("HTTP/1.1 200"))
}
