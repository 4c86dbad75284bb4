//! Connections that are slow, silent or many.

use crate::test_host::TestHost;
use crate::test_proxy::{TestProxy, rules};
use jackfield_network_proxy::ProxyConfig;
use std::fs;
use std::time::Duration;

async fn limited_proxy(change: impl FnOnce(&mut ProxyConfig)) -> (TestHost, TestProxy, String) {
    let host = TestHost::bind().await;
    let target = format!("a.test:{}", host.port);
    let proxy = TestProxy::start_with(rules(&[&target], true), change);
    (host, proxy, target)
}

#[tokio::test]
async fn slow_heads_delay_others_only_until_their_time_limit() {
    let (host, proxy, target) = limited_proxy(|config| {
        config.limits.connections_max = 4;
        config.limits.head_timeout = Duration::from_millis(200);
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = proxy.dial().await;
        client.send("CONNECT a.te").await;
        slow.push(client);
    }
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    assert!(client.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    host.accept().await;
    for client in &mut slow {
        client.read_to_end().await;
    }
}

#[tokio::test]
async fn tunnel_without_bytes_is_closed_after_its_time_limit() {
    let (host, proxy, target) =
        limited_proxy(|config| config.limits.idle_timeout = Duration::from_millis(300)).await;
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    client.read_until("\r\n\r\n").await;
    let mut upstream = host.accept().await;
    assert_eq!(client.read_to_end().await, "");
    assert_eq!(upstream.read_to_end().await, "");
}

#[tokio::test]
async fn host_that_does_not_complete_tls_is_given_up() {
    use crate::injection::injection_for;
    let (host, proxy, target) = {
        let host = TestHost::bind().await;
        let target = format!("a.test:{}", host.port);
        let rules = rules(&[&target], true);
        let proxy = TestProxy::start_with(rules, |config| {
            config.injection = Some(injection_for(&target));
            config.limits.connect_timeout = Duration::from_millis(300);
        });
        (host, proxy, target)
    };
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let (response, _silent) = tokio::join!(proxy.exchange(&request), host.accept_stream());
    assert!(response.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{response}");
}

#[tokio::test]
async fn head_that_is_too_large_is_refused() {
    let (_host, proxy, target) = limited_proxy(|_| {}).await;
    let head = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n");
    let long = format!("X: {}\r\n", "x".repeat(70 << 10));
    let many = "X: y\r\n".repeat(200);
    for headers in [long, many] {
        let mut client = proxy.dial().await;
        client.try_send(&format!("{head}{headers}\r\n")).await;
        let response = client.read_to_end().await;
        assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
    }
}

/// The memory of this process in KiB, where the system reports it.
fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|it| it.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn memory_of_a_thousand_connections_is_bounded() {
    let (host, proxy, target) = limited_proxy(|config| {
        config.limits.connections_max = 64;
        config.limits.head_timeout = Duration::from_millis(100);
    })
    .await;
    let before = resident_kib();
    let unfinished = format!("GET http://{target}/{}", "x".repeat(16 << 10));
    for _ in 0..8 {
        let mut clients = Vec::new();
        for _ in 0..125 {
            let mut client = proxy.dial().await;
            client.send(&unfinished).await;
            clients.push(client);
        }
        if let (Some(before), Some(now)) = (before, resident_kib()) {
            assert!(now < before + (32 << 10), "{before} KiB became {now} KiB");
        }
        for client in &mut clients {
            client.read_to_end().await;
        }
    }
    let mut client = proxy.dial().await;
    client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    assert!(client.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    host.accept().await;
}
