//! Pages of a server on this machine; that it is on this machine is what a user would be refused.

use super::{Fetch, PAGE_BYTES_MAX};
use crate::tool::{Grant, Offers, Outcome, cut::OUTPUT_CHARS_MAX, world::in_world};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};

/// Answers each request with what the first of these with its path says, and closes.
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
            let answer = &pages.iter().find(|(it, _)| *it == path).unwrap().1;
            // Whoever has read enough hangs up.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, serving)
}

fn page(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

async fn fetch(port: u16, path: &str) -> Outcome {
    let url = format!("http://127.0.0.1:{port}{path}").parse().unwrap();
    Fetch { url, may_reach: |_| true }.run().await
}

#[tokio::test]
async fn pages_become_text_and_what_is_none_is_told() {
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
    for (path, failed, text) in [
        ("/html", false, "# Hi\n\nthere"),
        ("/json", false, "{\"a\": 1}"),
        ("/png", true, "is no text, but image/png"),
        ("/gone", true, "HTTP 404 Not Found.\nno such page"),
        ("/here", false, "{\"a\": 1}"),
        ("/there", false, "leads to another host: `http://example.org/x`"),
        ("/round", true, "more than 5 times"),
        ("/long", false, "the page is longer than what is read"),
    ] {
        let outcome = fetch(port, path).await;
        assert_eq!(outcome.failed, failed, "{path}: {}", outcome.text);
        assert!(outcome.text.contains(text), "{path}: {}", outcome.text);
        assert!(outcome.text.chars().count() <= OUTPUT_CHARS_MAX);
    }
    serving.abort();
}

#[tokio::test]
async fn nothing_of_this_machine_is_asked_by_whatever_name() {
    in_world(Offers::default(), async |world| {
        let (port, serving) = serve(vec![("/", page("200 OK", "secret"))]).await;
        for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"] {
            let url = format!("http://{host}:{port}/");
            let outcome = world.call("web_fetch", json!({ "url": url })).await;
            assert!(outcome.failed && !outcome.text.contains("secret"), "{host}: {outcome:?}");
            let says_so = outcome.text.contains("of this machine");
            assert!(says_so || outcome.text.contains("not known"), "{}", outcome.text);
        }
        serving.abort();
    })
    .await;
}

#[tokio::test]
async fn a_person_is_asked_about_the_host() {
    in_world(Offers::default(), async |world| {
        let url = json!({ "url": "https://docs.rs/similar?x=1#y" });
        let job = world.prepare("web_fetch", url).await.unwrap();
        assert_eq!(job.grant, Grant::Ask("fetch docs.rs".to_owned()));
        assert_eq!(job.title, "https://docs.rs/similar?x=1#y");
        let job = world.prepare("web_fetch", json!({ "url": "http://a.b:81/" })).await.unwrap();
        assert_eq!(job.grant, Grant::Ask("fetch a.b:81".to_owned()));
        for bad in ["ftp://a.b/", "file:///etc/passwd", "a.b/c", "https://u:p@a.b/"] {
            assert!(world.prepare("web_fetch", json!({ "url": bad })).await.is_err(), "{bad}");
        }
    })
    .await;
}
