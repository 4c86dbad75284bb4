//! Resuming a stream over HTTP with the id of the last event.

use crate::http::{on, open, update};
use crate::http_client::{HttpAnswer, events};
use crate::web_server::{TestHub, TestServer};
use serde_json::{Value, json};

/// Opens the stream of a session after this event.
async fn resume_after(server: &TestServer, id: &str, session: &str, last: &str) -> HttpAnswer {
    let headers = [&on(id, session)[..], &[("last-event-id", last)]].concat();
    events(server.at, &headers).await
}

/// The next event must be this update.
async fn next_line(stream: &mut HttpAnswer, seq: u64) {
    assert_eq!(stream.shown().await, format!("{seq}.0 {}", update("s1", seq)));
}

/// The params and the id of the next replay request to the hub.
async fn next_replay_request(hub: &mut TestHub) -> (Value, Value) {
    let asked = hub.next_json().await;
    assert_eq!(asked["method"], "_jackfield/attach");
    (asked["params"].clone(), asked["id"].clone())
}

async fn finish_replay(hub: &mut TestHub, id: &Value, head: u64) {
    let result = json!({ "sessionId": "s1", "head": head });
    hub.send_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await;
}

#[tokio::test]
async fn interrupted_stream_continues_after_the_last_received_event() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut stream = events(server.at, &on(&id, "s1")).await;
    for seq in 1..=4 {
        hub.send_line(&update("s1", seq)).await;
        next_line(&mut stream, seq).await;
    }
    drop(stream);
    hub.send_line(&update("s1", 5)).await;
    // The client reports that the last two did not arrive.
    let mut stream = resume_after(&server, &id, "s1", "2.0").await;
    for seq in 3..=5 {
        next_line(&mut stream, seq).await;
    }
    let mut stream = resume_after(&server, &id, "s1", "5.0").await;
    hub.send_line(&update("s1", 6)).await;
    next_line(&mut stream, 6).await;
}

#[tokio::test]
async fn new_reader_takes_over_the_stream() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut first = events(server.at, &on(&id, "s1")).await;
    hub.send_line(&update("s1", 1)).await;
    next_line(&mut first, 1).await;
    let mut second = events(server.at, &on(&id, "s1")).await;
    assert_eq!(first.next().await, None);
    hub.send_line(&update("s1", 2)).await;
    next_line(&mut second, 2).await;
    // The end of the first does not end the second.
    drop(first);
    hub.send_line(&update("s1", 3)).await;
    next_line(&mut second, 3).await;
}

#[tokio::test]
async fn new_connection_replays_the_rest_from_the_journal() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut stream = resume_after(&server, &id, "s1", "3.0").await;
    let (params, answer) = next_replay_request(&mut hub).await;
    let expected = json!({ "sessionId": "s1", "after": 2, "observe": false, "facts": false });
    assert_eq!(params, expected);
    for seq in 3..=6 {
        hub.send_line(&update("s1", seq)).await;
    }
    finish_replay(&mut hub, &answer, 6).await;
    hub.send_line(&update("s1", 7)).await;
    for seq in 4..=7 {
        next_line(&mut stream, seq).await;
    }
}

#[tokio::test]
async fn discarded_events_are_replayed_with_responses_in_position() {
    const UPDATES: u64 = 3000;
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut stream = events(server.at, &on(&id, "s1")).await;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"test/ask","params":{"sessionId":"s1"}}"#;
    for seq in 1..=UPDATES {
        hub.send_line(&update("s1", seq)).await;
        if seq == 10 {
            hub.send_line(ask).await;
        }
    }
    while stream.next().await.unwrap().id != format!("{UPDATES}.0") {}
    let mut stream = resume_after(&server, &id, "s1", "5.0").await;
    let (params, answer) = next_replay_request(&mut hub).await;
    assert_eq!(params["after"], 4);
    for seq in 5..=UPDATES {
        hub.send_line(&update("s1", seq)).await;
    }
    finish_replay(&mut hub, &answer, UPDATES).await;
    for seq in 6..=10 {
        next_line(&mut stream, seq).await;
    }
    assert_eq!(stream.shown().await, format!("10.1 {ask}"));
    for seq in 11..=UPDATES {
        next_line(&mut stream, seq).await;
    }
}

#[tokio::test]
async fn gap_is_always_reported() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let gap = |session: Option<&str>, last: &str, why: &str| {
        let mut params = json!({ "lastEventId": last, "why": why });
        if let Some(session) = session {
            params = json!({ "sessionId": session, "lastEventId": last, "why": why });
        }
        json!({ "jsonrpc": "2.0", "method": "_jackfield/gap", "params": params }).to_string()
    };
    let unknown = "the last event id is not from this stream, or is too old";
    // The id of another connection, and an invalid id.
    let own = [("acp-connection-id", &*id), ("last-event-id", "17")];
    let mut own = events(server.at, &own).await;
    assert_eq!(own.shown().await, format!("1 {}", gap(None, "17", unknown)));
    let mut stream = resume_after(&server, &id, "s1", "yesterday").await;
    assert_eq!(stream.shown().await, format!("0.1 {}", gap(Some("s1"), "yesterday", unknown)));

    // A log that is shorter than the client's cursor, and one that was deleted.
    let mut stream = resume_after(&server, &id, "s2", "99.0").await;
    let (_, answer) = next_replay_request(&mut hub).await;
    finish_replay(&mut hub, &answer, 7).await;
    assert_eq!(
        stream.shown().await,
        format!("99.1 {}", gap(Some("s2"), "99.0", "the log ends at 7"))
    );
    let mut stream = resume_after(&server, &id, "s3", "2.0").await;
    let (_, answer) = next_replay_request(&mut hub).await;
    let error = json!({ "code": -32002, "message": "no session `s3`" });
    hub.send_line(&json!({ "jsonrpc": "2.0", "id": answer, "error": error }).to_string()).await;
    assert_eq!(stream.shown().await, format!("2.1 {}", gap(Some("s3"), "2.0", "no session `s3`")));
}

#[tokio::test]
async fn replay_uses_the_options_of_the_attach() {
    let server = TestServer::open().await;
    let (mut hub, id) = open(&server).await;
    let mut stream = events(server.at, &on(&id, "s1")).await;
    let params = json!({ "sessionId": "s1", "facts": true });
    let attach =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "_jackfield/attach", "params": params });
    let posted = crate::http_client::post(server.at, &on(&id, "s1"), &attach.to_string()).await;
    assert_eq!(posted.status, 202);
    hub.next_line().await.unwrap();
    let fact =
        r#"{"jsonrpc":"2.0","method":"_jackfield/event","params":{"sessionId":"s1","seq":4}}"#;
    hub.send_line(fact).await;
    assert_eq!(stream.shown().await, format!("4.0 {fact}"));
    resume_after(&server, &id, "s1", "1.0").await;
    let (params, _) = next_replay_request(&mut hub).await;
    assert_eq!((&params["facts"], &params["after"]), (&json!(true), &json!(0)));
}
