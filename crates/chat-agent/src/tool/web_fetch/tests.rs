//! Fetches pages of a server on this machine, which only the tests are allowed to contact.

use super::{PAGE_BYTES_MAX, PageFetch};
use crate::tool::{
    IoCapabilities, RequiredPermission, ToolOutcome, test_session::with_test_session,
    truncate::OUTPUT_CHARS_MAX,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};

/// Answers each request with the page of its path, and closes the connection.
async fn serve(pages: Vec<(&'static str, String)>) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let response = &pages.iter().find(|(it, _)| *it == path).unwrap().1;
            // The client closes the connection when it has read enough.
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    (port, serving)
}

fn page(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

async fn fetch(port: u16, path: &str) -> ToolOutcome {
    let url = format!("http://127.0.0.1:{port}{path}").parse().unwrap();
    PageFetch { url, is_allowed: |_| true }.run().await
}

#[tokio::test]
async fn pages_are_converted_to_text_and_other_types_are_refused() {
    let html = "200 OK\r\nContent-Type: text/html; charset=utf-8";
    let (port, serving) = serve(vec![
        ("/html", page(html, "<h1>Hi</h1><script>x</script><p>there</p>")),
        ("/json", page("200 OK\r\nContent-Type: application/json", "{\"a\": 1}")),
        ("/png", page("200 OK\r\nContent-Type: image/png", "x")),
        ("/gone", page("404 Not Found\r\nContent-Type: text/plain", "no such page")),
        ("/here", page("302 Found\r\nLocation: /json", "")),
        ("/there", page("302 Found\r\nLocation: http://example.org/x", "")),
        ("/round", page("302 Found\r\nLocation: /round", "")),
        ("/long", page("200 OK", &"x ".repeat(PAGE_BYTES_MAX))),
    ])
    .await;
    for (path, is_error, text) in [
        ("/html", false, "# Hi\n\nthere"),
        ("/json", false, "{\"a\": 1}"),
        ("/png", true, "is not text, but image/png"),
        ("/gone", true, "HTTP 404 Not Found.\nno such page"),
        ("/here", false, "{\"a\": 1}"),
        ("/there", false, "redirects to another host: `http://example.org/x`"),
        ("/round", true, "redirects more than 5 times"),
        ("/long", false, "the page is longer than the limit"),
    ] {
        let outcome = fetch(port, path).await;
        assert_eq!(outcome.is_error, is_error, "{path}: {}", outcome.text);
        assert!(outcome.text.contains(text), "{path}: {}", outcome.text);
        assert!(outcome.text.chars().count() <= OUTPUT_CHARS_MAX);
    }
    serving.abort();
}

#[tokio::test]
async fn local_addresses_are_refused_in_every_notation() {
    with_test_session(IoCapabilities::default(), async |session| {
        let (port, serving) = serve(vec![("/", page("200 OK", "secret"))]).await;
        for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"] {
            let url = format!("http://{host}:{port}/");
            let outcome = session.call("web_fetch", json!({ "url": url })).await;
            assert!(outcome.is_error && !outcome.text.contains("secret"), "{host}: {outcome:?}");
            let is_refused = outcome.text.contains("of this machine");
            assert!(is_refused || outcome.text.contains("cannot be resolved"), "{}", outcome.text);
        }
        serving.abort();
    })
    .await;
}

#[tokio::test]
async fn permission_is_requested_for_the_host() {
    with_test_session(IoCapabilities::default(), async |session| {
        let url = json!({ "url": "https://docs.rs/similar?x=1#y" });
        let prepared = session.prepare("web_fetch", url).await.unwrap();
        assert_eq!(prepared.permission, RequiredPermission::Named("fetch docs.rs".to_owned()));
        assert_eq!(prepared.title, "https://docs.rs/similar?x=1#y");
        let prepared =
            session.prepare("web_fetch", json!({ "url": "http://a.b:81/" })).await.unwrap();
        assert_eq!(prepared.permission, RequiredPermission::Named("fetch a.b:81".to_owned()));
        for bad in ["ftp://a.b/", "file:///etc/passwd", "a.b/c", "https://u:p@a.b/"] {
            assert!(session.prepare("web_fetch", json!({ "url": bad })).await.is_err(), "{bad}");
        }
    })
    .await;
}
