//! How connections end. Time is not waited for: it jumps to the next limit when nothing happens.

use super::{Bench, status};
use crate::web::limits::{BODY_WITHIN, GOODBYE_WITHIN, IDLE_WITHIN, STRANGER_WITHIN};
use std::time::Duration;
use tokio::time::Instant;

/// A little more than a limit: saying goodbye takes time too.
fn took(begun: Instant, limit: Duration) {
    let took = begun.elapsed();
    assert!(limit <= took && took <= limit + Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_says_nothing_or_never_all_is_gone_in_ten_seconds() {
    let bench = Bench::new();
    for said in ["", "G", "PRI * HTTP/2.0\r\n", "GET /healthz HTTP/1.1\r\nHost: local"] {
        let begun = Instant::now();
        let mut peer = bench.dial().await;
        peer.say(said).await;
        assert_eq!(peer.heard().await, "", "{said}");
        took(begun, STRANGER_WITHIN);
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_byte_a_second_is_not_enough() {
    let bench = Bench::new();
    let begun = Instant::now();
    let mut peer = bench.dial().await;
    for byte in "GET /healthz HTTP/1.1\r\nHost: localhost\r\n".chars() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let said = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &[byte as u8]).await;
        if said.is_err() {
            break;
        }
    }
    assert_eq!(peer.heard().await, "");
    took(begun, STRANGER_WITHIN);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_given_up() {
    let bench = Bench::new();
    let begun = Instant::now();
    let mut peer = bench.dial().await;
    peer.say(&format!("{}Content-Length: 999\r\n\r\n", bench.head("POST /count"))).await;
    for _ in 0..99 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if tokio::io::AsyncWriteExt::write_all(&mut peer.stream, b"x").await.is_err() {
            break;
        }
    }
    assert_eq!(status(&peer.heard().await), "400");
    took(begun, BODY_WITHIN);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_has_shown_the_token_may_pause_and_whoever_asked_for_health_may_not_stay() {
    let bench = Bench::new();
    let begun = Instant::now();
    let mut known = bench.dial().await;
    known.say(&format!("{}\r\n", bench.head("GET /seen"))).await;
    known.until("200 OK").await;
    assert_eq!(status(&known.heard().await), "200");
    took(begun, IDLE_WITHIN);
    let begun = Instant::now();
    let mut watcher = bench.dial().await;
    watcher.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&watcher.heard().await), "200");
    took(begun, STRANGER_WITHIN);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_outlives_every_limit() {
    let bench = Bench::new();
    let mut peer = bench.dial().await;
    peer.say(&format!("{}\r\n", bench.head("GET /events"))).await;
    peer.until("data: hello").await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    let waiting = tokio::time::timeout(Duration::ZERO, peer.until("never said")).await;
    assert!(waiting.is_err(), "it is open");
    bench.finish().await;
    assert!(peer.heard().await.ends_with("0\r\n\r\n"), "its end was said");
}

#[tokio::test]
async fn at_the_stop_what_is_open_ends_well_and_what_is_idle_at_once() {
    let bench = Bench::new();
    let mut idle = bench.dial().await;
    idle.say(&format!("{}\r\n", bench.head("GET /seen"))).await;
    idle.until("200 OK").await;
    let mut socket = bench.dial().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.say(&format!("{}{upgrade}{key}", bench.head("GET /ws"))).await;
    socket.until("\r\n\r\n").await;
    let silent = bench.dial().await;
    let begun = Instant::now();
    bench.finish().await;
    assert!(begun.elapsed() < 2 * GOODBYE_WITHIN, "{:?}", begun.elapsed());
    assert!(idle.heard().await.contains("200 OK"));
    assert_eq!(silent.heard().await, "");
    let heard = socket.bytes().await;
    assert_eq!(heard[heard.len() - 2..], [0x88, 0], "a close frame without a reason");
}
