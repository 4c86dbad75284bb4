//! ACP over streamable HTTP, tested from the client's and the hub's side.

use crate::http_client::{EVENTS, Headers, JSON, events, post, request};
use crate::web_server::{TestHub, TestServer};
use std::time::Duration;

pub(crate) const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const WELCOME: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;

/// Opens a connection: the hub's end of it, and its id.
pub(crate) async fn open(server: &TestServer) -> (TestHub, String) {
    let hub = async {
        let mut hub = server.accept_dialed().await;
        hub.next_line().await.expect("a hello");
        hub.send_line(WELCOME).await;
        hub
    };
    let (hub, answer) = tokio::join!(hub, post(server.at, &[], HELLO));
    assert_eq!(answer.status, 200);
    (hub, answer.headers["acp-connection-id"].clone())
}

pub(crate) fn update(session: &str, seq: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"_meta":{{"jackfield":{{"seq":{seq}}}}},"sessionId":"{session}","update":{{}}}}}}"#
    )
}

pub(crate) fn on<'a>(id: &'a str, session: &'a str) -> [(&'static str, &'a str); 2] {
    [("acp-connection-id", id), ("acp-session-id", session)]
}

fn call(id: u64, method: &str, session: &str) -> String {
    let params = format!(r#"{{"sessionId":"{session}"}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn initialize_opens_a_connection_and_requests_sequence_numbers() {
    let server = TestServer::open().await;
    let hub = async {
        let mut hub = server.accept_dialed().await;
        let hello = hub.next_json().await;
        let ours = &hello["params"]["clientCapabilities"]["_meta"]["jackfield"];
        assert_eq!(ours, &serde_json::json!({ "notices": false }));
        hub.send_line(r#"{"jsonrpc":"2.0","method":"test/early"}"#).await;
        hub.send_line(WELCOME).await;
        hub
    };
    let (_hub, answer) = tokio::join!(hub, post(server.at, &[], HELLO));
    assert_eq!((answer.status, &*answer.headers["content-type"]), (200, "application/json"));
    let id = answer.headers["acp-connection-id"].clone();
    assert_eq!(id.len(), 32);
    assert_eq!(answer.body().await, WELCOME);
    let mut own = events(server.at, &[("acp-connection-id", &id)]).await;
    assert_eq!(own.headers["acp-connection-id"], id);
    assert_eq!(own.shown().await, r#"1 {"jsonrpc":"2.0","method":"test/early"}"#);
}

#[tokio::test]
async fn every_message_is_routed_to_its_stream() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let conn: Headers<'_> = &[("acp-connection-id", &id)];
    let mut own = events(server.at, conn).await;
    let new = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#;
    assert_eq!(post(server.at, conn, new).await.status, 202);
    assert_eq!(hub.next_line().await.unwrap(), new);
    // Frames that arrive before a reader are buffered.
    hub.send_line(&update("s1", 2)).await;
    let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}"#;
    hub.send_line(opened).await;
    assert_eq!(own.shown().await, format!("1 {opened}"));
    let mut s1 = events(server.at, &on(&id, "s1")).await;
    assert_eq!(s1.headers["acp-session-id"], "s1");
    assert_eq!(s1.shown().await, format!("2.0 {}", update("s1", 2)));

    let prompt = call(7, "session/prompt", "s1");
    assert_eq!(post(server.at, &on(&id, "s1"), &prompt).await.status, 202);
    assert_eq!(hub.next_line().await.unwrap(), prompt);
    let ask = call(1, "session/request_permission", "s1");
    let withdrawn = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#;
    let done = r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}"#;
    let canceled = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}"#;
    for line in [&ask, withdrawn, &update("s1", 5), done, canceled] {
        hub.send_line(line).await;
    }
    assert_eq!(s1.shown().await, format!("2.1 {ask}"));
    assert_eq!(s1.shown().await, format!("2.2 {withdrawn}"));
    assert_eq!(s1.shown().await, format!("5.0 {}", update("s1", 5)));
    assert_eq!(s1.shown().await, format!("5.1 {done}"));
    assert_eq!(own.shown().await, format!("2 {canceled}"));

    // The stream of an unknown session has no reader, but its error is delivered.
    let lost = call(8, "session/prompt", "nowhere");
    assert_eq!(post(server.at, &on(&id, "nowhere"), &lost).await.status, 202);
    hub.next_line().await.unwrap();
    let error = r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32002,"message":"no"}}"#;
    hub.send_line(error).await;
    assert_eq!(own.shown().await, format!("3 {error}"));
}

#[tokio::test]
async fn header_names_the_session_and_responses_are_forwarded() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let prompt = r#"{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"prompt":[]}}"#;
    assert_eq!(post(server.at, &on(&id, "s1"), prompt).await.status, 202);
    assert_eq!(hub.next_json().await["params"]["sessionId"], "s1");
    for headers in [&on(&id, "s1")[..], &on(&id, "s1")[..1]] {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(post(server.at, headers, answer).await.status, 202);
        assert_eq!(hub.next_line().await.unwrap(), answer);
    }
}

#[tokio::test]
async fn errors_have_the_status_that_the_sdks_expect() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let conn = ("acp-connection-id", &*id);
    let nowhere = ("acp-connection-id", "0123456789abcdef0123456789abcdef");
    let long = "x".repeat((16 << 20) + 1);
    let prompt = &*call(1, "session/prompt", "s1");
    let fork = r#"{"jsonrpc":"2.0","id":1,"method":"session/fork","params":{}}"#;
    let batch = &*format!("[{HELLO}]");
    let cases: &[(&str, Headers<'_>, &str, u16)] = &[
        ("POST", &[], HELLO, 415),
        ("POST", &[("content-type", "text/plain")], HELLO, 415),
        ("POST", &[JSON], "{", 400),
        ("POST", &[JSON], "7", 400),
        ("POST", &[JSON], batch, 400),
        ("POST", &[JSON, conn], batch, 400),
        ("POST", &[JSON, conn], &long, 413),
        ("POST", &[JSON], prompt, 400),
        ("POST", &[JSON], r#"{"jsonrpc":"2.0","method":"initialize"}"#, 400),
        ("POST", &[JSON, conn], HELLO, 400),
        ("POST", &[JSON, conn], fork, 400),
        ("POST", &[JSON, conn, ("acp-session-id", "s2")], prompt, 400),
        ("POST", &[JSON, nowhere], prompt, 404),
        ("GET", &[conn], "", 406),
        ("GET", &[EVENTS], "", 400),
        ("GET", &[EVENTS, nowhere], "", 404),
        ("DELETE", &[], "", 400),
        ("DELETE", &[nowhere], "", 404),
        ("PUT", &[JSON, conn], prompt, 405),
    ];
    for (method, headers, body, status) in cases {
        let answer = request(server.at, method, headers, body).await;
        let said = format!("{method} {headers:?} {}", &body[..body.len().min(80)]);
        assert_eq!(answer.status, *status, "{said}");
        if body.starts_with('[') {
            assert_eq!(answer.json().await["error"]["code"], -32600, "{said}");
        }
    }
    // A parameter of the content type and cookies of a proxy are ignored.
    let headers = [("content-type", "Application/JSON; charset=utf-8"), conn, ("cookie", "a=b")];
    assert_eq!(request(server.at, "POST", &headers, prompt).await.status, 202);
    assert_eq!(hub.next_line().await.unwrap(), prompt, "and none of the others came through");
}

#[tokio::test]
async fn connection_closes_when_the_client_or_the_hub_closes_it() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let conn: Headers<'_> = &[("acp-connection-id", &id)];
    let mut own = events(server.at, conn).await;
    assert_eq!(request(server.at, "DELETE", conn, "").await.status, 202);
    assert_eq!(hub.next_line().await, None);
    assert_eq!(own.next().await, None);
    assert_eq!(request(server.at, "DELETE", conn, "").await.status, 404);

    let (mut hub, id) = open(&server).await;
    let conn: Headers<'_> = &[("acp-connection-id", &id)];
    let mut own = events(server.at, conn).await;
    let mut s1 = events(server.at, &on(&id, "s1")).await;
    hub.send_line(&update("s1", 1)).await;
    drop(hub);
    assert_eq!(own.next().await, None);
    assert_eq!(s1.shown().await, format!("1.0 {}", update("s1", 1)), "its last words");
    assert_eq!(s1.next().await, None);
    assert_eq!(post(server.at, conn, &call(1, "session/prompt", "s1")).await.status, 404);
}

#[tokio::test]
async fn aborted_initialize_leaves_no_connection() {
    let server = TestServer::open().await;
    let mut asked = Box::pin(post(server.at, &[], HELLO));
    let mut hub = tokio::select! {
        _ = &mut asked => panic!("the hub has said nothing yet"),
        hub = async {
            let mut hub = server.accept_dialed().await;
            hub.next_line().await.expect("a hello");
            hub
        } => hub,
    };
    drop(asked);
    assert_eq!(hub.next_line().await, None);
}

#[tokio::test]
async fn unread_stream_pauses_the_hub_and_loses_nothing() {
    const UPDATES: u64 = 20_000;
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut writing = tokio::spawn(async move {
        for seq in 1..=UPDATES {
            hub.send_line(&update("s1", seq)).await;
        }
        hub
    });
    // The sockets buffer some of it, and nothing buffers the rest.
    let done = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    assert!(done.is_err(), "it went somewhere");
    let mut s1 = events(server.at, &on(&id, "s1")).await;
    for seq in 1..=UPDATES {
        let event = s1.next().await.unwrap();
        assert_eq!((event.id, event.data), (format!("{seq}.0"), update("s1", seq)));
    }
    drop(crate::support::within(writing).await.unwrap());
    assert_eq!(s1.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn unused_connection_is_closed_and_one_with_a_reader_is_not() {
    let server = TestServer::open().await;
    let begun = tokio::time::Instant::now();
    let (mut read, id) = open(&server).await;
    let mut own = events(server.at, &[("acp-connection-id", &id)]).await;
    let (mut unread, other) = open(&server).await;
    unread.expect_close().await;
    let lived = begun.elapsed().as_secs();
    assert!((300..=330).contains(&lived), "{lived} s");
    tokio::time::resume();
    let gone = request(server.at, "GET", &[EVENTS, ("acp-connection-id", &other)], "").await;
    assert_eq!(gone.status, 404);
    read.send_line(WELCOME).await;
    assert_eq!(own.shown().await, format!("1 {WELCOME}"), "after many signs of life");
}

#[tokio::test]
async fn http_2_is_supported() {
    let server = TestServer::open().await;
    let stream = tokio::net::TcpStream::connect(server.at).await.unwrap();
    let (mut client, driver) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(driver);
    let uri = format!("http://{}/acp", server.at);
    let hello = axum::http::Request::post(&uri).header(JSON.0, JSON.1).body(()).unwrap();
    let (answer, mut body) = client.send_request(hello, false).unwrap();
    body.send_data(HELLO.into(), true).unwrap();
    let mut hub = server.accept_dialed().await;
    hub.next_line().await.unwrap();
    hub.send_line(WELCOME).await;
    let answer = crate::support::within(answer).await.unwrap();
    let id = &answer.headers()["acp-connection-id"];
    let listen = axum::http::Request::get(&uri).header(EVENTS.0, EVENTS.1);
    let listen = listen.header("acp-connection-id", id).body(()).unwrap();
    let (answer, _) = client.send_request(listen, true).unwrap();
    let answer = crate::support::within(answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    hub.send_line(&update("", 1).replace("sessionId", "none")).await;
    let event = crate::support::within(answer.into_body().data()).await.unwrap().unwrap();
    assert!(event.starts_with(b"id: 1\ndata: {"), "{event:?}");
}
