//! Timeouts and closing of connections. Time is paused and jumps to the next timeout.

use super::{TestServer, status};
use crate::http::limits::{AUTHENTICATION_TIMEOUT, BODY_TIMEOUT, IDLE_TIMEOUT, SHUTDOWN_GRACE};
use std::time::Duration;
use tokio::time::Instant;

/// Asserts that a timeout has passed, with some time for closing.
fn assert_elapsed(started: Instant, limit: Duration) {
    let took = started.elapsed();
    assert!(limit <= took && took <= limit + Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_connection_is_closed_after_ten_seconds() {
    let server = TestServer::new();
    for sent in ["", "G", "PRI * HTTP/2.0\r\n", "GET /healthz HTTP/1.1\r\nHost: local"] {
        let started = Instant::now();
        let mut peer = server.dial().await;
        peer.send(sent).await;
        assert_eq!(peer.read_to_end().await, "", "{sent}");
        assert_elapsed(started, AUTHENTICATION_TIMEOUT);
    }
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn slow_request_head_is_closed_after_the_timeout() {
    let server = TestServer::new();
    let started = Instant::now();
    let mut peer = server.dial().await;
    for byte in "GET /healthz HTTP/1.1\r\nHost: localhost\r\n".chars() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let written = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &[byte as u8]).await;
        if written.is_err() {
            break;
        }
    }
    assert_eq!(peer.read_to_end().await, "");
    assert_elapsed(started, AUTHENTICATION_TIMEOUT);
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn slow_body_is_refused_after_the_timeout() {
    let server = TestServer::new();
    let started = Instant::now();
    let mut peer = server.dial().await;
    peer.send(&format!("{}Content-Length: 999\r\n\r\n", server.head("POST /count"))).await;
    for _ in 0..99 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if tokio::io::AsyncWriteExt::write_all(&mut peer.stream, b"x").await.is_err() {
            break;
        }
    }
    assert_eq!(status(&peer.read_to_end().await), "400");
    assert_elapsed(started, BODY_TIMEOUT);
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn authenticated_connection_may_pause_and_health_check_may_not() {
    let server = TestServer::new();
    let started = Instant::now();
    let mut authenticated = server.dial().await;
    authenticated.send(&format!("{}\r\n", server.head("GET /seen"))).await;
    authenticated.read_until("200 OK").await;
    assert_eq!(status(&authenticated.read_to_end().await), "200");
    assert_elapsed(started, IDLE_TIMEOUT);
    let started = Instant::now();
    let mut watcher = server.dial().await;
    watcher.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&watcher.read_to_end().await), "200");
    assert_elapsed(started, AUTHENTICATION_TIMEOUT);
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn event_stream_outlives_every_timeout() {
    let server = TestServer::new();
    let mut peer = server.dial().await;
    peer.send(&format!("{}\r\n", server.head("GET /events"))).await;
    peer.read_until("data: hello").await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    let waiting = tokio::time::timeout(Duration::ZERO, peer.read_until("never sent")).await;
    assert!(waiting.is_err(), "it is open");
    server.finish().await;
    assert!(peer.read_to_end().await.ends_with("0\r\n\r\n"), "the end was not sent");
}

#[tokio::test]
async fn stop_closes_open_requests_gracefully_and_idle_ones_at_once() {
    let server = TestServer::new();
    let mut idle = server.dial().await;
    idle.send(&format!("{}\r\n", server.head("GET /seen"))).await;
    idle.read_until("200 OK").await;
    let mut socket = server.dial().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.send(&format!("{}{upgrade}{key}", server.head("GET /ws"))).await;
    socket.read_until("\r\n\r\n").await;
    let silent = server.dial().await;
    let started = Instant::now();
    server.finish().await;
    assert!(started.elapsed() < 2 * SHUTDOWN_GRACE, "{:?}", started.elapsed());
    assert!(idle.read_to_end().await.contains("200 OK"));
    assert_eq!(silent.read_to_end().await, "");
    let received = socket.bytes().await;
    assert_eq!(received[received.len() - 2..], [0x88, 0], "a close frame without a reason");
}
