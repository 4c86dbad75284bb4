//! Which requests are accepted, and the responses to the others.

use super::{WebBench, status};
use crate::http::limits::{ACP_BODY_BYTES_MAX, API_BODY_BYTES_MAX};

#[tokio::test]
async fn request_with_the_token_is_served_and_no_route_sees_it() {
    let bench = WebBench::new();
    let mut peer = bench.dial().await;
    peer.send(&format!("{}Connection: close\r\n\r\n", bench.head("GET /seen"))).await;
    let heard = peer.read_to_end().await;
    assert_eq!(status(&heard), "200", "{heard}");
    assert!(heard.contains("nosniff") && !heard.contains(&bench.token), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn request_without_a_token_is_told_how_to_get_it() {
    let bench = WebBench::new();
    let mut peer = bench.dial().await;
    peer.send("GET /seen HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let heard = peer.read_to_end().await;
    assert_eq!(status(&heard), "401", "{heard}");
    assert!(heard.contains("www-authenticate: Bearer realm=\"jackfield\"\r\n"), "{heard}");
    assert!(heard.contains("connection: close\r\n"), "{heard}");
    assert!(heard.contains(r#"{"error":{"code":"UNAUTHORIZED","message":"a token"#), "{heard}");
    assert!(heard.contains("`jackfield token`"), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn no_response_may_be_stored_by_a_cache() {
    let bench = WebBench::new();
    let end = "Connection: close\r\n\r\n";
    let unauthenticated = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    let asks = "Origin: https://console.example.org\r\nAccess-Control-Request-Method: POST\r\n";
    let requests = [
        (bench.head("GET /seen"), "200"),
        (bench.head("GET /healthz"), "200"),
        (bench.head("GET /cached"), "200"),
        (bench.head("GET /nowhere"), "404"),
        (bench.head("DELETE /seen"), "405"),
        (unauthenticated("GET /healthz"), "200"),
        (unauthenticated("GET /seen"), "401"),
        (format!("{}{asks}", unauthenticated("OPTIONS /count")), "204"),
    ];
    for (head, expected) in requests {
        let mut peer = bench.dial().await;
        peer.send(&format!("{head}{end}")).await;
        let heard = peer.read_to_end().await;
        assert_eq!(status(&heard), expected, "{heard}");
        let lines: Vec<&str> =
            heard.lines().filter(|it| it.starts_with("cache-control:")).collect();
        assert_eq!(lines, ["cache-control: no-store"], "{head}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn route_can_see_whether_a_token_was_presented() {
    let bench = WebBench::new();
    let unauthenticated = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for (head, said) in
        [(bench.head("GET /readyz"), "authenticated"), (unauthenticated, "unauthenticated")]
    {
        let mut peer = bench.dial().await;
        peer.send(&format!("{head}Connection: close\r\n\r\n")).await;
        let heard = peer.read_to_end().await;
        assert!(heard.ends_with(&format!("\r\n\r\n{said}")), "{heard}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn client_refused_during_its_body_receives_the_reason() {
    let bench = WebBench::new();
    let mut peer = bench.dial().await;
    peer.send("POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n").await;
    peer.send(&"x".repeat(500_000)).await;
    let heard = peer.read_to_end().await;
    assert_eq!(status(&heard), "401", "{heard}");
    assert!(heard.ends_with("}}"), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn allowed_origin_may_send_a_preflight_and_read_the_response() {
    let bench = WebBench::new();
    let page = "Origin: https://console.example.org\r\n";
    let mut peer = bench.dial().await;
    let asks = "Access-Control-Request-Method: POST\r\nConnection: close\r\n";
    peer.send(&format!("OPTIONS /count HTTP/1.1\r\nHost: localhost\r\n{page}{asks}\r\n")).await;
    let heard = peer.read_to_end().await;
    assert_eq!(status(&heard), "204", "{heard}");
    assert!(heard.contains("access-control-allow-headers: accept, authorization, "), "{heard}");
    let mut peer = bench.dial().await;
    let rest = "Content-Length: 3\r\nConnection: close\r\n\r\nabc";
    peer.send(&format!("{}{page}{rest}", bench.head("POST /count"))).await;
    let heard = peer.read_to_end().await;
    assert!(heard.ends_with("\r\n\r\n3"), "{heard}");
    for line in [
        "access-control-allow-origin: https://console.example.org\r\n",
        "access-control-expose-headers: acp-connection-id, acp-session-id, idempotency-replayed\r\n",
        "vary: origin\r\n",
    ] {
        assert!(heard.contains(line), "{heard}");
    }
    assert!(!heard.contains("allow-credentials"), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn websocket_of_a_page_presents_the_token_as_a_protocol() {
    let bench = WebBench::new();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {}\r\nOrigin: http://{}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n",
        bench.at, bench.at, "dGhlIHNhbXBsZSBub25jZQ==",
    );
    let mut peer = bench.dial().await;
    let offered = format!("acp, jackfield.bearer.{}", bench.token);
    peer.send(&format!("{upgrade}Sec-WebSocket-Protocol: {offered}\r\n\r\n")).await;
    peer.read_until("\r\n\r\n").await;
    let heard = String::from_utf8_lossy(&peer.heard).into_owned();
    assert_eq!(status(&heard), "101", "{heard}");
    assert!(heard.contains("sec-websocket-protocol: acp\r\n"), "{heard}");
    assert!(!heard.contains(&bench.token), "{heard}");
    let mut unauthenticated = bench.dial().await;
    unauthenticated.send(&format!("{upgrade}Sec-WebSocket-Protocol: acp\r\n\r\n")).await;
    assert_eq!(status(&unauthenticated.read_to_end().await), "401");
    bench.finish().await;
}

#[tokio::test]
async fn body_is_accepted_up_to_the_limit_of_its_route() {
    let bench = WebBench::new();
    let send = async |line: &str, length: usize| {
        let mut peer = bench.dial().await;
        let head = format!("{}{line}Connection: close\r\n\r\n", bench.head("POST /count"));
        peer.send(&head).await;
        // It may be refused before all of it was said.
        let text = "x".repeat(length);
        let said = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, text.as_bytes()).await;
        drop(said);
        status(&peer.read_to_end().await).to_owned()
    };
    let (most, more) = (API_BODY_BYTES_MAX, API_BODY_BYTES_MAX + 1);
    assert_eq!(send(&format!("Content-Length: {most}\r\n"), most).await, "200");
    assert_eq!(send(&format!("Content-Length: {more}\r\n"), more).await, "413");
    let far_too_long = format!("Content-Length: {}\r\n", ACP_BODY_BYTES_MAX + 1);
    assert_eq!(send(&far_too_long, 0).await, "413", "before it comes");
    let mut peer = bench.dial().await;
    let chunked = bench.head("POST /count") + "Transfer-Encoding: chunked\r\n\r\n";
    peer.send(&chunked).await;
    peer.send(&format!("{more:x}\r\n")).await;
    peer.send(&"x".repeat(more)).await;
    assert_eq!(status(&peer.read_to_end().await), "413");
    bench.finish().await;
}
