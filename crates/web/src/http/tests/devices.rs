//! Requests of browsers that have logged in.

use super::{TestServer, status};
use crate::login::LoginOwner;

/// The head of a request with the cookie of a new device, and the id of the device.
fn device_head(server: &TestServer, line: &str) -> (String, String) {
    let code = server.logins.create_link(LoginOwner::Operator).unwrap().code;
    let login = server.logins.log_in(&code, "x", None, server.at.ip()).unwrap();
    let cookie = format!("jackfield-{}={}.{}", login.cookie_id, login.device.id, login.secret);
    let page = "Sec-Fetch-Site: same-origin\r\n";
    let head = format!("{line} HTTP/1.1\r\nHost: {}\r\n{page}Cookie: {cookie}\r\n", server.at);
    (head, login.device.id)
}

#[tokio::test]
async fn request_with_the_cookie_is_served_and_no_route_sees_it() {
    let server = TestServer::new();
    let (head, _) = device_head(&server, "GET /seen");
    let mut peer = server.dial().await;
    peer.send(&format!("{head}Connection: close\r\n\r\n")).await;
    let received = peer.read_to_end().await;
    assert_eq!(status(&received), "200", "{received}");
    assert!(!received.to_ascii_lowercase().contains("cookie"), "{received}");
    server.finish().await;
}

#[tokio::test]
async fn open_stream_of_a_revoked_device_ends_and_others_stay() {
    let server = TestServer::new();
    let (head, id) = device_head(&server, "GET /events");
    let (other_head, _) = device_head(&server, "GET /events");
    let [mut peer, mut other] = [server.dial().await, server.dial().await];
    peer.send(&format!("{head}\r\n")).await;
    other.send(&format!("{other_head}\r\n")).await;
    peer.read_until("data: hello\n\n").await;
    other.read_until("data: hello\n\n").await;
    assert!(server.logins.revoke_device(&id).unwrap().is_some());
    peer.read_until("\r\n0\r\n\r\n").await;
    peer.send(&format!("{head}\r\n")).await;
    peer.read_until("HTTP/1.1 401").await;
    assert!(!String::from_utf8_lossy(&other.received).contains("\r\n0\r\n"));
    drop(other);
    server.finish().await;
}

#[tokio::test]
async fn responses_cannot_be_embedded_in_a_page() {
    let server = TestServer::new();
    for path in ["/seen", "/nowhere"] {
        let mut peer = server.dial().await;
        let line = format!("GET {path}");
        peer.send(&format!("{}Connection: close\r\n\r\n", server.head(&line))).await;
        let received = peer.read_to_end().await;
        for header in [
            "content-security-policy: default-src 'none'; frame-ancestors 'none'; sandbox",
            "x-frame-options: DENY",
            "cross-origin-resource-policy: same-origin",
            "x-content-type-options: nosniff",
        ] {
            assert!(received.contains(header), "{path}: {received}");
        }
    }
    server.finish().await;
}
