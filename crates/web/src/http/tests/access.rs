//! Which requests are accepted, and the responses to the others.

use super::{TestServer, status};
use crate::http::limits::{ACP_BODY_BYTES_MAX, API_BODY_BYTES_MAX};

#[tokio::test]
async fn request_with_the_token_is_served_and_no_route_sees_it() {
    let server = TestServer::new();
    let mut peer = server.dial().await;
    peer.send(&format!("{}Connection: close\r\n\r\n", server.head("GET /seen"))).await;
    let received = peer.read_to_end().await;
    assert_eq!(status(&received), "200", "{received}");
    assert!(received.contains("nosniff") && !received.contains(&server.token), "{received}");
    server.finish().await;
}

#[tokio::test]
async fn request_without_a_token_gets_a_hint_how_to_get_it() {
    let server = TestServer::new();
    let mut peer = server.dial().await;
    peer.send("GET /seen HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let received = peer.read_to_end().await;
    assert_eq!(status(&received), "401", "{received}");
    assert!(received.contains("www-authenticate: Bearer realm=\"jackfield\"\r\n"), "{received}");
    assert!(received.contains("connection: close\r\n"), "{received}");
    assert!(
        received.contains(r#"{"error":{"code":"UNAUTHORIZED","message":"a token"#),
        "{received}"
    );
    assert!(received.contains("`jackfield token`"), "{received}");
    server.finish().await;
}

#[tokio::test]
async fn no_response_may_be_stored_by_a_cache() {
    let server = TestServer::new();
    let end = "Connection: close\r\n\r\n";
    let unauthenticated = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    let asks = "Origin: https://console.example.org\r\nAccess-Control-Request-Method: POST\r\n";
    let requests = [
        (server.head("GET /seen"), "200"),
        (server.head("GET /healthz"), "200"),
        (server.head("GET /cached"), "200"),
        (server.head("GET /nowhere"), "404"),
        (server.head("DELETE /seen"), "405"),
        (unauthenticated("GET /healthz"), "200"),
        (unauthenticated("GET /seen"), "401"),
        (format!("{}{asks}", unauthenticated("OPTIONS /count")), "204"),
    ];
    for (head, expected) in requests {
        let mut peer = server.dial().await;
        peer.send(&format!("{head}{end}")).await;
        let received = peer.read_to_end().await;
        assert_eq!(status(&received), expected, "{received}");
        let lines: Vec<&str> =
            received.lines().filter(|it| it.starts_with("cache-control:")).collect();
        assert_eq!(lines, ["cache-control: no-store"], "{head}");
    }
    server.finish().await;
}

#[tokio::test]
async fn route_can_see_whether_a_token_was_presented() {
    let server = TestServer::new();
    let unauthenticated = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for (head, expected) in
        [(server.head("GET /readyz"), "authenticated"), (unauthenticated, "unauthenticated")]
    {
        let mut peer = server.dial().await;
        peer.send(&format!("{head}Connection: close\r\n\r\n")).await;
        let received = peer.read_to_end().await;
        assert!(received.ends_with(&format!("\r\n\r\n{expected}")), "{received}");
    }
    server.finish().await;
}

#[tokio::test]
async fn client_refused_during_its_body_receives_the_reason() {
    let server = TestServer::new();
    let mut peer = server.dial().await;
    peer.send("POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n").await;
    peer.send(&"x".repeat(500_000)).await;
    let received = peer.read_to_end().await;
    assert_eq!(status(&received), "401", "{received}");
    assert!(received.ends_with("}}"), "{received}");
    server.finish().await;
}

#[tokio::test]
async fn allowed_origin_may_send_a_preflight_and_read_the_response() {
    let server = TestServer::new();
    let page = "Origin: https://console.example.org\r\n";
    let mut peer = server.dial().await;
    let asks = "Access-Control-Request-Method: POST\r\nConnection: close\r\n";
    peer.send(&format!("OPTIONS /count HTTP/1.1\r\nHost: localhost\r\n{page}{asks}\r\n")).await;
    let received = peer.read_to_end().await;
    assert_eq!(status(&received), "204", "{received}");
    assert!(
        received.contains("access-control-allow-headers: accept, authorization, "),
        "{received}"
    );
    let mut peer = server.dial().await;
    let rest = "Content-Length: 3\r\nConnection: close\r\n\r\nabc";
    peer.send(&format!("{}{page}{rest}", server.head("POST /count"))).await;
    let received = peer.read_to_end().await;
    assert!(received.ends_with("\r\n\r\n3"), "{received}");
    for line in [
        "access-control-allow-origin: https://console.example.org\r\n",
        "access-control-expose-headers: acp-connection-id, acp-session-id, idempotency-replayed\r\n",
        "vary: origin\r\n",
    ] {
        assert!(received.contains(line), "{received}");
    }
    assert!(!received.contains("allow-credentials"), "{received}");
    server.finish().await;
}

#[tokio::test]
async fn websocket_of_a_page_presents_the_token_as_a_protocol() {
    let server = TestServer::new();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {}\r\nOrigin: http://{}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n",
        server.at, server.at, "dGhlIHNhbXBsZSBub25jZQ==",
    );
    let mut peer = server.dial().await;
    let offered = format!("acp, jackfield.bearer.{}", server.token);
    peer.send(&format!("{upgrade}Sec-WebSocket-Protocol: {offered}\r\n\r\n")).await;
    peer.read_until("\r\n\r\n").await;
    let received = String::from_utf8_lossy(&peer.received).into_owned();
    assert_eq!(status(&received), "101", "{received}");
    assert!(received.contains("sec-websocket-protocol: acp\r\n"), "{received}");
    assert!(!received.contains(&server.token), "{received}");
    let mut unauthenticated = server.dial().await;
    unauthenticated.send(&format!("{upgrade}Sec-WebSocket-Protocol: acp\r\n\r\n")).await;
    assert_eq!(status(&unauthenticated.read_to_end().await), "401");
    server.finish().await;
}

#[tokio::test]
async fn body_is_accepted_up_to_the_limit_of_its_route() {
    let server = TestServer::new();
    let send = async |line: &str, length: usize| {
        let mut peer = server.dial().await;
        let head = format!("{}{line}Connection: close\r\n\r\n", server.head("POST /count"));
        peer.send(&head).await;
        // The server may refuse the request before all of it was sent.
        let text = "x".repeat(length);
        let written = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, text.as_bytes()).await;
        drop(written);
        status(&peer.read_to_end().await).to_owned()
    };
    let (most, more) = (API_BODY_BYTES_MAX, API_BODY_BYTES_MAX + 1);
    assert_eq!(send(&format!("Content-Length: {most}\r\n"), most).await, "200");
    assert_eq!(send(&format!("Content-Length: {more}\r\n"), more).await, "413");
    let far_too_long = format!("Content-Length: {}\r\n", ACP_BODY_BYTES_MAX + 1);
    assert_eq!(send(&far_too_long, 0).await, "413", "before it comes");
    let mut peer = server.dial().await;
    let chunked = server.head("POST /count") + "Transfer-Encoding: chunked\r\n\r\n";
    peer.send(&chunked).await;
    peer.send(&format!("{more:x}\r\n")).await;
    peer.send(&"x".repeat(more)).await;
    assert_eq!(status(&peer.read_to_end().await), "413");
    server.finish().await;
}
