//! `CONNECT`.

use crate::test_host::TestHost;
use crate::test_proxy::TestProxy;

#[tokio::test]
async fn tunnel_moves_bytes_in_both_directions_until_both_ends_close() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let mut proxy = TestProxy::start(&[&target]);
    let mut client = proxy.dial().await;
    // A process may send its first bytes before the response.
    client.send(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly ")).await;
    let mut upstream = host.accept().await;
    let head = client.read_until("\r\n\r\n").await;
    assert_eq!(head, "HTTP/1.1 200 OK\r\n\r\n");
    client.send("question").await;
    assert_eq!(upstream.read_until("question").await, "early question");
    upstream.send("answer").await;
    assert_eq!(client.read_until("answer").await, "answer");
    client.finish_sending().await;
    assert_eq!(upstream.read_to_end().await, "");
    upstream.send("last words").await;
    drop(upstream);
    assert_eq!(client.read_to_end().await, "last words");
    assert_eq!(
        proxy.take_reports(),
        [format!(
            "{target} Allowed(Rule({:?}))",
            target.parse::<jackfield_network_proxy::HostPattern>().unwrap()
        )]
    );
}

#[tokio::test]
async fn refused_host_gets_an_explanation_and_is_not_resolved() {
    let mut proxy = TestProxy::start(&["a.test"]);
    proxy.questions.close();
    let response = proxy.exchange("CONNECT secret-data.evil.test:443 HTTP/1.1\r\n\r\n").await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 403 Host refused by the sandbox\r\n"), "{head}");
    assert!(head.contains("content-type: text/plain; charset=utf-8"), "{head}");
    assert_eq!(
        body,
        "The sandbox refused the connection to `secret-data.evil.test:443`.\n\
         Reason: no rule names it, and the user cannot be asked now.\n\
         What to do: work without this host, or ask the user to add it to the allowed hosts.\n"
    );
    assert!(proxy.resolver.take_queries().is_empty(), "a query would carry data to the owner");
    assert_eq!(proxy.take_reports(), ["secret-data.evil.test:443 Refused(NotAsked)"]);
}

#[tokio::test]
async fn host_that_refuses_the_connection_is_reported_as_unreachable() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    drop(host);
    let proxy = TestProxy::start(&[&target, "unknown.test"]);
    let response = proxy.exchange(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    assert!(response.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{response}");
    assert!(response.contains("Connection refused"), "{response}");
    let response = proxy.exchange("CONNECT unknown.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(response.contains("the name has no address"), "{response}");
}

#[tokio::test]
async fn proxy_that_is_dropped_closes_its_tunnels() {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let proxy = TestProxy::start(&[&target]);
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    client.read_until("\r\n\r\n").await;
    let mut upstream = host.accept().await;
    drop(proxy);
    assert_eq!((client.read_to_end().await, upstream.read_to_end().await), Default::default());
}
