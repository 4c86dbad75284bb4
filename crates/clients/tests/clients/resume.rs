//! Coming back to a stream over HTTP with the id of the last event: nothing lost, nothing twice.

use crate::front::{Front, Hub};
use crate::http::{on, open, update};
use crate::surf::{Answer, events};
use serde_json::{Value, json};

/// A stream of a session on a connection, behind this event.
async fn behind(front: &Front, id: &str, session: &str, last: &str) -> Answer {
    let headers = [&on(id, session)[..], &[("last-event-id", last)]].concat();
    events(front.at, &headers).await
}

/// The next event must be this update.
async fn hears(stream: &mut Answer, seq: u64) {
    assert_eq!(stream.shown().await, format!("{seq}.0 {}", update("s1", seq)));
}

/// The hub is asked to tell a session again; the params, and the id to answer to.
async fn is_asked(hub: &mut Hub) -> (Value, Value) {
    let asked = hub.hears_json().await;
    assert_eq!(asked["method"], "_jackfield/attach");
    (asked["params"].clone(), asked["id"].clone())
}

async fn has_told(hub: &mut Hub, id: &Value, head: u64) {
    let result = json!({ "sessionId": "s1", "head": head });
    hub.says(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await;
}

#[tokio::test]
async fn a_stream_that_was_cut_goes_on_behind_the_last_event_that_arrived() {
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let mut stream = events(front.at, &on(&id, "s1")).await;
    for seq in 1..=4 {
        hub.says(&update("s1", seq)).await;
        hears(&mut stream, seq).await;
    }
    drop(stream);
    hub.says(&update("s1", 5)).await;
    // It says that the last two did not arrive.
    let mut stream = behind(&front, &id, "s1", "2.0").await;
    for seq in 3..=5 {
        hears(&mut stream, seq).await;
    }
    let mut stream = behind(&front, &id, "s1", "5.0").await;
    hub.says(&update("s1", 6)).await;
    hears(&mut stream, 6).await;
}

#[tokio::test]
async fn who_comes_takes_the_stream_over_from_a_connection_that_may_be_half_dead() {
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let mut first = events(front.at, &on(&id, "s1")).await;
    hub.says(&update("s1", 1)).await;
    hears(&mut first, 1).await;
    let mut second = events(front.at, &on(&id, "s1")).await;
    assert_eq!(first.next().await, None);
    hub.says(&update("s1", 2)).await;
    hears(&mut second, 2).await;
    // The end of the first does not end the second.
    drop(first);
    hub.says(&update("s1", 3)).await;
    hears(&mut second, 3).await;
}

#[tokio::test]
async fn on_a_new_connection_the_journal_tells_the_rest() {
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let mut stream = behind(&front, &id, "s1", "3.0").await;
    let (params, answer) = is_asked(&mut hub).await;
    let expected = json!({ "sessionId": "s1", "after": 2, "observe": false, "facts": false });
    assert_eq!(params, expected);
    for seq in 3..=6 {
        hub.says(&update("s1", seq)).await;
    }
    has_told(&mut hub, &answer, 6).await;
    hub.says(&update("s1", 7)).await;
    for seq in 4..=7 {
        hears(&mut stream, seq).await;
    }
}

#[tokio::test]
async fn what_is_kept_no_longer_is_told_by_the_journal_and_answers_stand_where_they_were() {
    const UPDATES: u64 = 3000;
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let mut stream = events(front.at, &on(&id, "s1")).await;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"test/ask","params":{"sessionId":"s1"}}"#;
    for seq in 1..=UPDATES {
        hub.says(&update("s1", seq)).await;
        if seq == 10 {
            hub.says(ask).await;
        }
    }
    while stream.next().await.unwrap().id != format!("{UPDATES}.0") {}
    let mut stream = behind(&front, &id, "s1", "5.0").await;
    let (params, answer) = is_asked(&mut hub).await;
    assert_eq!(params["after"], 4);
    for seq in 5..=UPDATES {
        hub.says(&update("s1", seq)).await;
    }
    has_told(&mut hub, &answer, UPDATES).await;
    for seq in 6..=10 {
        hears(&mut stream, seq).await;
    }
    assert_eq!(stream.shown().await, format!("10.1 {ask}"));
    for seq in 11..=UPDATES {
        hears(&mut stream, seq).await;
    }
}

#[tokio::test]
async fn a_gap_is_told_and_never_silent() {
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let gap = |session: Option<&str>, last: &str, why: &str| {
        let mut params = json!({ "lastEventId": last, "why": why });
        if let Some(session) = session {
            params = json!({ "sessionId": session, "lastEventId": last, "why": why });
        }
        json!({ "jsonrpc": "2.0", "method": "_jackfield/gap", "params": params }).to_string()
    };
    let unknown = "the last event you have is not one of this stream, or is too old";
    // The count of another connection, and what is no id at all.
    let own = [("acp-connection-id", &*id), ("last-event-id", "17")];
    let mut own = events(front.at, &own).await;
    assert_eq!(own.shown().await, format!("1 {}", gap(None, "17", unknown)));
    let mut stream = behind(&front, &id, "s1", "yesterday").await;
    assert_eq!(stream.shown().await, format!("0.1 {}", gap(Some("s1"), "yesterday", unknown)));

    // A log that is shorter than the client remembers it, and one that is gone.
    let mut stream = behind(&front, &id, "s2", "99.0").await;
    let (_, answer) = is_asked(&mut hub).await;
    has_told(&mut hub, &answer, 7).await;
    assert_eq!(
        stream.shown().await,
        format!("99.1 {}", gap(Some("s2"), "99.0", "the log ends at 7"))
    );
    let mut stream = behind(&front, &id, "s3", "2.0").await;
    let (_, answer) = is_asked(&mut hub).await;
    let error = json!({ "code": -32002, "message": "no session `s3`" });
    hub.says(&json!({ "jsonrpc": "2.0", "id": answer, "error": error }).to_string()).await;
    assert_eq!(stream.shown().await, format!("2.1 {}", gap(Some("s3"), "2.0", "no session `s3`")));
}

#[tokio::test]
async fn who_attached_to_see_facts_sees_facts_again() {
    let front = Front::open().await;
    let (mut hub, id) = open(&front).await;
    let mut stream = events(front.at, &on(&id, "s1")).await;
    let params = json!({ "sessionId": "s1", "facts": true });
    let attach =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "_jackfield/attach", "params": params });
    let posted = crate::surf::post(front.at, &on(&id, "s1"), &attach.to_string()).await;
    assert_eq!(posted.status, 202);
    hub.hears().await.unwrap();
    let fact =
        r#"{"jsonrpc":"2.0","method":"_jackfield/event","params":{"sessionId":"s1","seq":4}}"#;
    hub.says(fact).await;
    assert_eq!(stream.shown().await, format!("4.0 {fact}"));
    behind(&front, &id, "s1", "1.0").await;
    let (params, _) = is_asked(&mut hub).await;
    assert_eq!((&params["facts"], &params["after"]), (&json!(true), &json!(0)));
}
