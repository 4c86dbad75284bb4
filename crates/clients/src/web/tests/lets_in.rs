//! Who is let in, and what the others hear.

use super::{Bench, status};
use crate::web::limits::{ACP_BODY_BYTES_MAX, API_BODY_BYTES_MAX};

#[tokio::test]
async fn one_who_has_the_token_is_answered_and_no_route_sees_it() {
    let bench = Bench::new();
    let mut peer = bench.dial().await;
    peer.say(&format!("{}Connection: close\r\n\r\n", bench.head("GET /seen"))).await;
    let heard = peer.heard().await;
    assert_eq!(status(&heard), "200", "{heard}");
    assert!(heard.contains("nosniff") && !heard.contains(&bench.token), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn one_who_has_no_token_hears_how_to_get_it() {
    let bench = Bench::new();
    let mut peer = bench.dial().await;
    peer.say("GET /seen HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let heard = peer.heard().await;
    assert_eq!(status(&heard), "401", "{heard}");
    assert!(heard.contains("www-authenticate: Bearer realm=\"jackfield\"\r\n"), "{heard}");
    assert!(heard.contains("connection: close\r\n"), "{heard}");
    assert!(heard.contains(r#"{"error":{"code":"UNAUTHORIZED","message":"a token"#), "{heard}");
    assert!(heard.contains("`jackfield token`"), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn no_answer_may_be_stored_by_a_cache() {
    let bench = Bench::new();
    let end = "Connection: close\r\n\r\n";
    let stranger = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    let asks = "Origin: https://console.example.org\r\nAccess-Control-Request-Method: POST\r\n";
    let requests = [
        (bench.head("GET /seen"), "200"),
        (bench.head("GET /healthz"), "200"),
        (bench.head("GET /cached"), "200"),
        (bench.head("GET /nowhere"), "404"),
        (bench.head("DELETE /seen"), "405"),
        (stranger("GET /healthz"), "200"),
        (stranger("GET /seen"), "401"),
        (format!("{}{asks}", stranger("OPTIONS /count")), "204"),
    ];
    for (head, expected) in requests {
        let mut peer = bench.dial().await;
        peer.say(&format!("{head}{end}")).await;
        let heard = peer.heard().await;
        assert_eq!(status(&heard), expected, "{heard}");
        let lines: Vec<&str> =
            heard.lines().filter(|it| it.starts_with("cache-control:")).collect();
        assert_eq!(lines, ["cache-control: no-store"], "{head}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_route_knows_whether_a_token_was_shown() {
    let bench = Bench::new();
    let stranger = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for (head, said) in [(bench.head("GET /readyz"), "known"), (stranger, "stranger")] {
        let mut peer = bench.dial().await;
        peer.say(&format!("{head}Connection: close\r\n\r\n")).await;
        let heard = peer.heard().await;
        assert!(heard.ends_with(&format!("\r\n\r\n{said}")), "{heard}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_refused_client_in_the_middle_of_its_body_hears_why() {
    let bench = Bench::new();
    let mut peer = bench.dial().await;
    peer.say("POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n").await;
    peer.say(&"x".repeat(500_000)).await;
    let heard = peer.heard().await;
    assert_eq!(status(&heard), "401", "{heard}");
    assert!(heard.ends_with("}}"), "{heard}");
    bench.finish().await;
}

#[tokio::test]
async fn a_listed_page_may_ask_beforehand_and_read_the_answer() {
    let bench = Bench::new();
    let page = "Origin: https://console.example.org\r\n";
    let mut peer = bench.dial().await;
    let asks = "Access-Control-Request-Method: POST\r\nConnection: close\r\n";
    peer.say(&format!("OPTIONS /count HTTP/1.1\r\nHost: localhost\r\n{page}{asks}\r\n")).await;
    let heard = peer.heard().await;
    assert_eq!(status(&heard), "204", "{heard}");
    assert!(heard.contains("access-control-allow-headers: accept, authorization, "), "{heard}");
    let mut peer = bench.dial().await;
    let rest = "Content-Length: 3\r\nConnection: close\r\n\r\nabc";
    peer.say(&format!("{}{page}{rest}", bench.head("POST /count"))).await;
    let heard = peer.heard().await;
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
async fn a_websocket_of_a_page_shows_the_token_as_a_protocol_and_hears_the_other_one() {
    let bench = Bench::new();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {}\r\nOrigin: http://{}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n",
        bench.at, bench.at, "dGhlIHNhbXBsZSBub25jZQ==",
    );
    let mut peer = bench.dial().await;
    let offered = format!("acp, jackfield.bearer.{}", bench.token);
    peer.say(&format!("{upgrade}Sec-WebSocket-Protocol: {offered}\r\n\r\n")).await;
    peer.until("\r\n\r\n").await;
    let heard = String::from_utf8_lossy(&peer.heard).into_owned();
    assert_eq!(status(&heard), "101", "{heard}");
    assert!(heard.contains("sec-websocket-protocol: acp\r\n"), "{heard}");
    assert!(!heard.contains(&bench.token), "{heard}");
    let mut stranger = bench.dial().await;
    stranger.say(&format!("{upgrade}Sec-WebSocket-Protocol: acp\r\n\r\n")).await;
    assert_eq!(status(&stranger.heard().await), "401");
    bench.finish().await;
}

#[tokio::test]
async fn a_body_is_taken_up_to_what_its_route_takes() {
    let bench = Bench::new();
    let send = async |line: &str, length: usize| {
        let mut peer = bench.dial().await;
        let head = format!("{}{line}Connection: close\r\n\r\n", bench.head("POST /count"));
        peer.say(&head).await;
        // It may be refused before all of it was said.
        let text = "x".repeat(length);
        let said = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, text.as_bytes()).await;
        drop(said);
        status(&peer.heard().await).to_owned()
    };
    let (most, more) = (API_BODY_BYTES_MAX, API_BODY_BYTES_MAX + 1);
    assert_eq!(send(&format!("Content-Length: {most}\r\n"), most).await, "200");
    assert_eq!(send(&format!("Content-Length: {more}\r\n"), more).await, "413");
    let far_too_long = format!("Content-Length: {}\r\n", ACP_BODY_BYTES_MAX + 1);
    assert_eq!(send(&far_too_long, 0).await, "413", "before it comes");
    let mut peer = bench.dial().await;
    let chunked = bench.head("POST /count") + "Transfer-Encoding: chunked\r\n\r\n";
    peer.say(&chunked).await;
    peer.say(&format!("{more:x}\r\n")).await;
    peer.say(&"x".repeat(more)).await;
    assert_eq!(status(&peer.heard().await), "413");
    bench.finish().await;
}
