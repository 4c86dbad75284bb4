//! Servers over HTTP that require a key, or redirect to another server.

use super::*;
use agent_client_protocol::v1::schema::{HttpHeader, McpServerHttp, McpServerSse};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::mpsc,
    thread,
};

/// Starts an HTTP server that always sends the same response. Returns the heads of the requests.
fn serve_response(response: String) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = mpsc::channel();
    // The thread ends with the process of the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), Vec::new());
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.extend(byte);
            }
            let _disconnected = sender.send(String::from_utf8(head).unwrap());
            let _disconnected = stream.write_all(response.as_bytes());
        }
    });
    (address, requests)
}

/// The same server over both transports.
fn both_transports(address: SocketAddr) -> [McpServer; 2] {
    let (url, headers) = (format!("http://{address}/mcp"), vec![HttpHeader::new("X-Key", "k-1")]);
    let http = McpServerHttp::new("http", &url).headers(headers.clone());
    let sse = McpServerSse::new("sse", url).headers(headers);
    [McpServer::Http(http), McpServer::Sse(sse)]
}

#[tokio::test]
async fn headers_are_sent_and_a_refused_key_is_reported() {
    let session = McpTestSession::new();
    let close = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let challenge = "WWW-Authenticate: Bearer\r\n";
    let (address, requests) = serve_response(format!("HTTP/1.1 401 No\r\n{challenge}{close}"));
    let servers = session.start(both_transports(address), TEST_TIMEOUT);
    let notices = wait_for_start(&servers).await;
    assert!(notices[0].contains("it requires authentication"), "{}", notices[0]);
    assert!(notices[1].contains("it answered with 401"), "{}", notices[1]);
    for _ in 0..2 {
        let head = requests.recv_timeout(TEST_TIMEOUT).unwrap().to_lowercase();
        assert!(head.contains("x-key: k-1\r\n"), "{head}");
    }
    session.end(servers).await;
}

#[tokio::test]
async fn redirect_to_another_server_is_not_followed() {
    let session = McpTestSession::new();
    let (other, other_requests) =
        serve_response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let place = format!("Location: http://{other}/mcp\r\n");
    let close = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let (address, requests) = serve_response(format!("HTTP/1.1 307 There\r\n{place}{close}"));
    let servers = session.start(both_transports(address), TEST_TIMEOUT);
    assert_eq!(wait_for_start(&servers).await.len(), 2);
    assert_eq!(requests.try_iter().count(), 2, "one request per transport");
    assert!(other_requests.try_recv().is_err(), "the other server got none");
    session.end(servers).await;
}
