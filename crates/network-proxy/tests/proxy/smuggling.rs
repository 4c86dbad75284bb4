//! Requests that two programs could understand differently.

use crate::test_host::TestHost;
use crate::test_proxy::TestProxy;

/// Sends a request to an allowed host; it must be refused and must not reach the host.
async fn assert_refused(request: &str) {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let mut proxy = TestProxy::start(&[&target]);
    proxy.questions.close();
    let mut client = proxy.dial().await;
    client.send(&request.replace("TARGET", &target)).await;
    let response = client.read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{request:?}: {response}");
    assert_eq!(response.matches("HTTP/1.1").count(), 1, "{request:?}: {response}");
    assert!(host.has_no_connection().await, "{request:?}");
}

#[tokio::test]
async fn request_with_an_unclear_length_is_refused() {
    for framing in [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4, 5",
        "Content-Length: +4",
        "Content-Length: -4",
        "Content-Length: 0x4",
        "Content-Length : 4",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
    ] {
        let head = "POST http://TARGET/ HTTP/1.1\r\nHost: TARGET\r\n";
        assert_refused(&format!("{head}{framing}\r\n\r\n0\r\n\r\n")).await;
    }
}

#[tokio::test]
async fn request_with_two_hosts_is_refused() {
    for head in [
        "GET http://TARGET/ HTTP/1.1\r\nHost: b.test",
        "GET http://TARGET/ HTTP/1.1\r\nHost: TARGET\r\nHost: b.test",
        "GET http://TARGET/ HTTP/1.1\r\nHost: TARGET\r\nHost: TARGET",
        "GET http://TARGET/ HTTP/1.1\r\nX: y",
        "GET http://b.test@TARGET/ HTTP/1.1\r\nHost: TARGET",
        "GET http://TARGET@b.test/ HTTP/1.1\r\nHost: TARGET",
        "GET http://TARGET/ HTTP/1.1\r\nHost: TARGET/",
        "GET http://TARGET/ HTTP/1.1\r\nHost: x@TARGET",
        "GET / HTTP/1.1\r\nHost: TARGET",
        "GET https://TARGET/ HTTP/1.1\r\nHost: TARGET",
        "GET http://%61.test/ HTTP/1.1\r\nHost: %61.test",
        "CONNECT TARGET HTTP/1.1\r\nHost: b.test:443",
        "CONNECT TARGET HTTP/1.1\r\nContent-Length: 5",
        "CONNECT a.test HTTP/1.1\r\nHost: a.test",
        "CONNECT http://TARGET/ HTTP/1.1\r\nHost: a.test:80",
        "CONNECT 2130706433:443 HTTP/1.1\r\nX: y",
        "CONNECT 0x7f.1:443 HTTP/1.1\r\nX: y",
        "OPTIONS * HTTP/1.1\r\nHost: TARGET",
    ] {
        assert_refused(&format!("{head}\r\n\r\n")).await;
    }
}

#[tokio::test]
async fn chunked_body_with_a_length_is_sent_as_one_request_and_the_connection_closes() {
    for framing in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
    ] {
        let host = TestHost::bind().await;
        let target = format!("a.test:{}", host.port);
        let proxy = TestProxy::start(&[&target]);
        let mut client = proxy.dial().await;
        let second = format!("GET http://{target}/second HTTP/1.1\r\nHost: {target}\r\n\r\n");
        client
            .send(&format!(
                "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\n{framing}\r\n\r\n0\r\n\r\n{second}"
            ))
            .await;
        let mut upstream = host.accept().await;
        let request = upstream.read_until("0\r\n\r\n").await;
        assert!(!request.contains("content-length"), "{request}");
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        let response = client.read_to_end().await;
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
        assert_eq!(upstream.read_to_end().await, "", "the second request is not sent");
    }
}

#[tokio::test]
async fn every_request_of_a_connection_is_decided_by_itself() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let other = format!("b.test:{}", host.port);
    let mut proxy = TestProxy::start(&[&target]);
    proxy.questions.close();
    let mut client = proxy.dial().await;
    client
        .send(&format!(
            "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n\
             GET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n\r\n"
        ))
        .await;
    let mut upstream = host.accept().await;
    upstream.read_until("\r\n\r\n").await;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    client.read_until("ok").await;
    let second = client.read_to_end().await;
    assert!(second.starts_with("HTTP/1.1 403 "), "{second}");
    assert_eq!(upstream.read_to_end().await, "");
}

#[tokio::test]
async fn header_that_the_host_would_read_as_two_is_refused() {
    for header in ["X: a\rb", "X: a\0b", "X\0: a", "X Y: a", ": a"] {
        let head = "GET http://TARGET/ HTTP/1.1\r\nHost: TARGET\r\n";
        assert_refused(&format!("{head}{header}\r\n\r\n")).await;
    }
}
