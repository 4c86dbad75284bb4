//! Plain HTTP requests with a complete URL.

use crate::test_host::TestHost;
use crate::test_proxy::TestProxy;

async fn host_and_proxy() -> (TestHost, TestProxy, String) {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let proxy = TestProxy::start(&[&target]);
    (host, proxy, target)
}

#[tokio::test]
async fn requests_of_one_connection_use_one_connection_to_the_host() {
    let (host, mut proxy, target) = host_and_proxy().await;
    let mut client = proxy.dial().await;
    client
        .send(&format!(
            "GET http://{target}/path?query HTTP/1.1\r\nHost: {target}\r\nAccept: */*\r\n\
             Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\n\r\n"
        ))
        .await;
    let mut upstream = host.accept().await;
    let head = upstream.read_until("\r\n\r\n").await;
    assert_eq!(head, format!("GET /path?query HTTP/1.1\r\nhost: {target}\r\naccept: */*\r\n\r\n"));
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nKeep-Alive: timeout=5\r\nX-A: b\r\n\r\none")
        .await;
    let response = client.read_until("one").await;
    assert_eq!(response, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-a: b\r\n\r\none");
    client
        .send(&format!(
            "POST http://{target} HTTP/1.1\r\nHost: {target}\r\nContent-Length: 4\r\n\r\nbody"
        ))
        .await;
    let request = upstream.read_until("body").await;
    assert!(request.starts_with("POST / HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("content-length: 4\r\n"), "{request}");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(client.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 204"));
    assert_eq!(proxy.resolver.take_queries(), ["a.test"]);
    assert_eq!(proxy.take_reports().len(), 2, "each request is a decision");
}

#[tokio::test]
async fn events_of_a_stream_arrive_one_by_one() {
    let (host, proxy, target) = host_and_proxy().await;
    let mut client = proxy.dial().await;
    client.send(&format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
    let mut upstream = host.accept().await;
    upstream.read_until("\r\n\r\n").await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert!(client.read_until("\r\n\r\n").await.contains("transfer-encoding: chunked"));
    // The next event is sent only after the client has the one before it.
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        upstream.send(&format!("{:x}\r\n{event}\r\n", event.len())).await;
        assert_eq!(client.read_until(event).await.trim_start(), format!("9\r\n{event}"));
    }
    upstream.send("0\r\n\r\n").await;
    assert_eq!(client.read_until("0\r\n\r\n").await, "\r\n0\r\n\r\n");
}

#[tokio::test]
async fn parts_of_a_chunked_body_are_forwarded_when_they_arrive() {
    let (host, proxy, target) = host_and_proxy().await;
    let mut client = proxy.dial().await;
    client
        .send(&format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))
        .await;
    let mut upstream = host.accept().await;
    assert!(upstream.read_until("\r\n\r\n").await.contains("transfer-encoding: chunked\r\n"));
    for part in ["first", "second"] {
        client.send(&format!("{:x}\r\n{part}\r\n", part.len())).await;
        upstream.read_until(part).await;
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(upstream.read_until("0\r\n\r\n").await, "\r\n0\r\n\r\n");
}

#[tokio::test]
async fn body_is_requested_after_the_host_was_allowed_and_not_before() {
    let (host, mut proxy, target) = host_and_proxy().await;
    proxy.questions.close();
    let head = |target: &str| {
        format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 4\r\n\
             Expect: 100-continue\r\n\r\n"
        )
    };
    let mut client = proxy.dial().await;
    client.send(&head(&target)).await;
    assert_eq!(client.read_until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body").await;
    let mut upstream = host.accept().await;
    let request = upstream.read_until("body").await;
    assert!(!request.contains("expect"), "{request}");
    let refused = proxy.exchange(&head("other.test")).await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
}

#[tokio::test]
async fn request_is_repeated_if_the_host_had_closed_an_idle_connection() {
    let (host, proxy, target) = host_and_proxy().await;
    let mut client = proxy.dial().await;
    for _ in 0..3 {
        client.send(&format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        let mut upstream = host.accept().await;
        upstream.read_until("\r\n\r\n").await;
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        drop(upstream);
        client.read_until("ok").await;
    }
}

#[tokio::test]
async fn response_without_a_length_ends_with_the_connection_to_the_host() {
    let (host, proxy, target) = host_and_proxy().await;
    let mut client = proxy.dial().await;
    client.send(&format!("GET http://{target}/ HTTP/1.0\r\nHost: {target}\r\n\r\n")).await;
    let mut upstream = host.accept().await;
    upstream.read_until("\r\n\r\n").await;
    upstream.send("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\nmoved").await;
    drop(upstream);
    let response = client.read_to_end().await;
    assert!(response.starts_with("HTTP/1.0 302 Found\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nmoved"), "redirects are not followed: {response}");
}
