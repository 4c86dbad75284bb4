//! Timeouts and closing of connections. Time is paused and jumps to the next timeout.

use super::{WebBench, status};
use crate::http::limits::{AUTHENTICATION_TIMEOUT, BODY_WITHIN, IDLE_WITHIN, SHUTDOWN_GRACE};
use std::time::Duration;
use tokio::time::Instant;

/// Asserts that a timeout has passed, with some time for closing.
fn took(begun: Instant, limit: Duration) {
    let took = begun.elapsed();
    assert!(limit <= took && took <= limit + Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_connection_is_closed_after_ten_seconds() {
    let bench = WebBench::new();
    for said in ["", "G", "PRI * HTTP/2.0\r\n", "GET /healthz HTTP/1.1\r\nHost: local"] {
        let begun = Instant::now();
        let mut peer = bench.dial().await;
        peer.send(said).await;
        assert_eq!(peer.read_to_end().await, "", "{said}");
        took(begun, AUTHENTICATION_TIMEOUT);
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn slow_request_head_is_closed_after_the_timeout() {
    let bench = WebBench::new();
    let begun = Instant::now();
    let mut peer = bench.dial().await;
    for byte in "GET /healthz HTTP/1.1\r\nHost: localhost\r\n".chars() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let said = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &[byte as u8]).await;
        if said.is_err() {
            break;
        }
    }
    assert_eq!(peer.read_to_end().await, "");
    took(begun, AUTHENTICATION_TIMEOUT);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn slow_body_is_refused_after_the_timeout() {
    let bench = WebBench::new();
    let begun = Instant::now();
    let mut peer = bench.dial().await;
    peer.send(&format!("{}Content-Length: 999\r\n\r\n", bench.head("POST /count"))).await;
    for _ in 0..99 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if tokio::io::AsyncWriteExt::write_all(&mut peer.stream, b"x").await.is_err() {
            break;
        }
    }
    assert_eq!(status(&peer.read_to_end().await), "400");
    took(begun, BODY_WITHIN);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn authenticated_connection_may_pause_and_health_check_may_not() {
    let bench = WebBench::new();
    let begun = Instant::now();
    let mut authenticated = bench.dial().await;
    authenticated.send(&format!("{}\r\n", bench.head("GET /seen"))).await;
    authenticated.read_until("200 OK").await;
    assert_eq!(status(&authenticated.read_to_end().await), "200");
    took(begun, IDLE_WITHIN);
    let begun = Instant::now();
    let mut watcher = bench.dial().await;
    watcher.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&watcher.read_to_end().await), "200");
    took(begun, AUTHENTICATION_TIMEOUT);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn event_stream_outlives_every_timeout() {
    let bench = WebBench::new();
    let mut peer = bench.dial().await;
    peer.send(&format!("{}\r\n", bench.head("GET /events"))).await;
    peer.read_until("data: hello").await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    let waiting = tokio::time::timeout(Duration::ZERO, peer.read_until("never said")).await;
    assert!(waiting.is_err(), "it is open");
    bench.finish().await;
    assert!(peer.read_to_end().await.ends_with("0\r\n\r\n"), "its end was said");
}

#[tokio::test]
async fn stop_closes_open_requests_gracefully_and_idle_ones_at_once() {
    let bench = WebBench::new();
    let mut idle = bench.dial().await;
    idle.send(&format!("{}\r\n", bench.head("GET /seen"))).await;
    idle.read_until("200 OK").await;
    let mut socket = bench.dial().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.send(&format!("{}{upgrade}{key}", bench.head("GET /ws"))).await;
    socket.read_until("\r\n\r\n").await;
    let silent = bench.dial().await;
    let begun = Instant::now();
    bench.finish().await;
    assert!(begun.elapsed() < 2 * SHUTDOWN_GRACE, "{:?}", begun.elapsed());
    assert!(idle.read_to_end().await.contains("200 OK"));
    assert_eq!(silent.read_to_end().await, "");
    let heard = socket.bytes().await;
    assert_eq!(heard[heard.len() - 2..], [0x88, 0], "a close frame without a reason");
}
