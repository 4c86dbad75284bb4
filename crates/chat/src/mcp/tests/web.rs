//! Servers over HTTP that want a key, or send us elsewhere.

use super::*;
use agent_client_protocol::v1::schema::{HttpHeader, McpServerHttp, McpServerSse};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::mpsc,
    thread,
};

/// A web server that gives everybody the same answer, and says what it was asked.
fn listen(answer: String) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, asked) = mpsc::channel();
    // It ends with the process of the test.
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
            let _gone = tell.send(String::from_utf8(head).unwrap());
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
    (address, asked)
}

/// The same server over both transports.
fn both(address: SocketAddr) -> [McpServer; 2] {
    let (url, headers) = (format!("http://{address}/mcp"), vec![HttpHeader::new("X-Key", "k-1")]);
    let http = McpServerHttp::new("http", &url).headers(headers.clone());
    let sse = McpServerSse::new("sse", url).headers(headers);
    [McpServer::Http(http), McpServer::Sse(sse)]
}

#[tokio::test]
async fn headers_are_sent_and_a_key_that_is_refused_is_told() {
    let rig = Rig::new();
    let close = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let challenge = "WWW-Authenticate: Bearer\r\n";
    let (address, asked) = listen(format!("HTTP/1.1 401 No\r\n{challenge}{close}"));
    let servers = rig.start(both(address), BOUND);
    let notices = settled(&servers).await;
    assert!(notices[0].contains("it does not know who asks"), "{}", notices[0]);
    assert!(notices[1].contains("it answered with 401"), "{}", notices[1]);
    for _ in 0..2 {
        let head = asked.recv_timeout(BOUND).unwrap().to_lowercase();
        assert!(head.contains("x-key: k-1\r\n"), "{head}");
    }
    rig.end(servers).await;
}

#[tokio::test]
async fn nobody_is_followed_to_another_server() {
    let rig = Rig::new();
    let (elsewhere, lured) = listen("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let place = format!("Location: http://{elsewhere}/mcp\r\n");
    let close = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let (address, asked) = listen(format!("HTTP/1.1 307 There\r\n{place}{close}"));
    let servers = rig.start(both(address), BOUND);
    assert_eq!(settled(&servers).await.len(), 2);
    assert_eq!(asked.try_iter().count(), 2, "each asked once");
    assert!(lured.try_recv().is_err(), "and nobody there");
    rig.end(servers).await;
}
