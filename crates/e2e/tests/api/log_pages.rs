//! A session's log in pages: from its end backwards, from its beginning, and on to its stream.

use super::{editor, serve};
use jackfield_e2e::{Home, Web};
use serde_json::{Value, json};

fn seqs(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().unwrap();
    events.iter().map(|it| it["seq"].as_u64().unwrap()).collect()
}

fn code(web: &Web, path: &str) -> (u16, Value) {
    let reply = web.get(path);
    (reply.status, reply.json()["error"]["code"].clone())
}

#[test]
fn pages_and_the_stream_of_a_log_have_the_events_of_the_export() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "burst 500"), "end_turn");
    let export = web.get(&format!("/api/sessions/{id}/export?raw=1")).text();
    let lines: Vec<Value> = export.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let exported = &lines[1..lines.len() - 1];
    let path = format!("/api/sessions/{id}/log");

    let mut read = Vec::new();
    let mut page = web.get(&format!("{path}?limit=150")).good();
    let last = page["last"].as_u64().unwrap();
    assert_eq!(last, exported.len() as u64);
    loop {
        let events = page["events"].as_array().unwrap().clone();
        read.splice(0..0, events);
        if page["hasBefore"] == false {
            break;
        }
        let before = read[0]["seq"].as_u64().unwrap();
        page = web.get(&format!("{path}?limit=150&before={before}")).good();
        assert_eq!(page["hasAfter"], true);
    }
    assert_eq!(read, exported);
    assert_eq!(seqs(&web.get(&format!("{path}?after=3&limit=2")).good()), [4, 5]);
    assert_eq!(seqs(&web.get(&format!("{path}?after={last}")).good()), [0; 0]);

    let after = last - 1;
    let stream = format!("/api/sessions/{id}/events?view=log&after={after}");
    let mut events = web.stream("GET", &stream, &[], None);
    let first = events.next().unwrap();
    assert_eq!((first.name.as_str(), first.id), ("log", Some(last.to_string())));
    assert_eq!(editor.prompt(&id, "again"), "end_turn");
    let next = events.next().unwrap();
    assert_eq!((&next.json()["is"], next.id), (&json!("prompted"), Some((last + 1).to_string())));

    for query in ["limit=0", "limit=1001", "before=1&after=2", "before=-1", "nonsense=1"] {
        let refused = code(&web, &format!("{path}?{query}"));
        assert_eq!(refused, (400, json!("VALIDATION_FAILED")), "{query}");
    }
    assert_eq!(code(&web, "/api/sessions/s-none/log"), (404, json!("NOT_FOUND")));
    drop((editor, events));
    daemon.stop();
}

#[test]
fn page_of_a_session_that_sleeps_starts_no_agent() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "hello"), "end_turn");
    drop(editor);
    daemon.stop();
    let (daemon, web_again) = super::again(&home);
    assert!(!seqs(&web_again.get(&format!("/api/sessions/{id}/log")).good()).is_empty());
    let shown = web_again.get(&format!("/api/sessions/{id}")).good();
    assert_eq!((&shown["state"], &shown["clients"]), (&json!("asleep"), &json!(0)));
    drop(web);
    daemon.stop();
}
