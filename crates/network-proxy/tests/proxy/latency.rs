//! The time that the proxy adds to the first byte of a response.

use crate::test_host::TestHost;
use crate::test_proxy::{TestPeer, TestProxy};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const ROUNDS: usize = 500;
/// The promise, which holds for an optimized build.
const ADDED_MAX: Duration = Duration::from_millis(2);

/// Answers each request of each connection.
async fn serve_host(host: TestHost) {
    let mut connections = JoinSet::new();
    loop {
        let mut stream: TcpStream = host.accept_stream().await;
        connections.spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(1..) = stream.read(&mut buffer).await {
                let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                if stream.write_all(response).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test]
#[ignore = "nightly: a latency is measured, which needs an optimized build and an idle machine"]
#[expect(clippy::print_stderr, reason = "the test reports the measured times")]
async fn proxy_adds_at_most_two_milliseconds_to_the_first_byte() {
    let host = TestHost::bind().await;
    let port = host.port;
    let target = format!("a.test:{port}");
    let mut server = JoinSet::new();
    server.spawn(serve_host(host));
    let proxy = TestProxy::start(&[&target]);
    let (mut direct, mut tunneled, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n\r\n");
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut client = TestPeer::new(stream);
        client.send(&request).await;
        client.read_until("HTTP").await;
        direct.push(begin.elapsed());

        let begin = Instant::now();
        let mut client = proxy.dial().await;
        client.send(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        client.read_until("\r\n\r\n").await;
        client.send(&request).await;
        client.read_until("HTTP").await;
        tunneled.push(begin.elapsed());

        let begin = Instant::now();
        let mut client = proxy.dial().await;
        client.send(&request.replace("GET /", &format!("GET http://{target}/"))).await;
        client.read_until("HTTP").await;
        plain.push(begin.elapsed());
    }
    let direct = median(direct);
    for (kind, times) in [("CONNECT", tunneled), ("plain HTTP", plain)] {
        let time = median(times);
        let added = time.saturating_sub(direct);
        eprintln!(
            "{kind}: {time:?} to the first byte, {direct:?} without the proxy: {added:?} added"
        );
        assert!(added <= ADDED_MAX, "{kind}: {added:?} more than without the proxy");
    }
}
