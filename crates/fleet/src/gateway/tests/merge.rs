//! Requests to all hosts: one response, with the rows of each host and the missing hosts.

use super::*;

fn send_to_all(fixture: &mut GatewayFixture, method: &str) -> Vec<(HostConnectionId, Value)> {
    let before = fixture.host_frames.len();
    fixture.send_from_client(A, &request(&json!(1), method, &json!({})));
    fixture.host_frames[before..].to_vec()
}

#[test]
fn each_row_names_its_host() {
    let mut fixture = GatewayFixture::new();
    let relayed = send_to_all(&mut fixture, "_jackfield/asks");
    assert_eq!(relayed.len(), 2);
    for (host_conn, request) in relayed.iter().rev() {
        let row = json!({ "ask": host_conn.0 });
        fixture.respond(*host_conn, request, &json!({ "asks": [row] }));
    }
    let asks = json!([{ "ask": 1, "host": "x" }, { "ask": 2, "host": "y" }]);
    assert_eq!(
        fixture.client_frames,
        [(A, json!({ "jsonrpc": "2.0", "id": 1, "result": { "asks": asks, "missing": [] } }))]
    );
}

#[test]
fn lost_or_silent_host_is_listed_as_missing() {
    let mut fixture = GatewayFixture::new();
    let relayed = send_to_all(&mut fixture, "_jackfield/asks");
    fixture.lose_connection(relayed[0].0);
    fixture.advance_time(5_000);
    assert_eq!(
        fixture.last_client_frame().1["result"],
        json!({ "asks": [], "missing": ["x", "y"] })
    );
}

#[test]
fn sessions_on_no_host_are_listed_from_the_journal() {
    let mut fixture = GatewayFixture::new();
    let relayed = send_to_all(&mut fixture, "_jackfield/sessions");
    let Some(GatewayOutput::ListSessions { token, cursor: None, cwd: None, .. }) =
        fixture.other_outputs.last()
    else {
        panic!("{:?}", fixture.other_outputs)
    };
    let token = *token;
    for (host_conn, request) in &relayed {
        let row = json!({ "sessionId": format!("s-{}", host_conn.0) });
        fixture.respond(*host_conn, request, &json!({ "sessions": [row] }));
    }
    assert!(fixture.client_frames.is_empty());
    let listed = |id: &str| ListedSession {
        session: id.into(),
        agent: "echo".into(),
        cwd: "/w".into(),
        title: None,
        state: "asleep".into(),
        updated_at: Time(0),
        host: None,
    };
    let page =
        SessionPage { sessions: vec![listed("s-1"), listed("s-7")], next: Some("more".into()) };
    fixture.feed(GatewayInput::SessionsListed { token, page: Ok(page) });
    let result = &fixture.last_client_frame().1["result"];
    let rows = result["sessions"].as_array().unwrap();
    let pairs: Vec<_> =
        rows.iter().map(|it| (it["sessionId"].as_str().unwrap(), &it["host"])).collect();
    assert_eq!(pairs, [("s-1", &json!("x")), ("s-2", &json!("y")), ("s-7", &json!(null))]);
    assert_eq!(result["more"], true);
}

#[test]
fn session_list_comes_from_the_journal_alone() {
    let mut fixture = GatewayFixture::new();
    let params = json!({ "cursor": "c", "cwd": "/w" });
    fixture.send_from_client(A, &request(&json!(1), "session/list", &params));
    assert!(fixture.host_frames.is_empty());
    let Some(GatewayOutput::ListSessions { token, cursor, cwd, .. }) = fixture.other_outputs.last()
    else {
        panic!()
    };
    assert_eq!((cursor.as_deref(), cwd.as_deref()), (Some("c"), Some("/w")));
    let token = *token;
    fixture.feed(GatewayInput::SessionsListed { token, page: Ok(SessionPage::default()) });
    assert_eq!(fixture.last_client_frame().1["result"], json!({ "sessions": [] }));
}

#[test]
fn status_has_totals_and_each_host() {
    let mut fixture = GatewayFixture::new();
    for (host_conn, request) in send_to_all(&mut fixture, "_jackfield/status") {
        fixture.respond(host_conn, &request, &json!({ "sessions": 2, "agents": 1, "clients": 9 }));
    }
    let result = &fixture.last_client_frame().1["result"];
    assert_eq!((&result["sessions"], &result["agents"]), (&json!(4), &json!(2)));
    assert_eq!(result["clients"], 2);
    assert_eq!(result["hosts"][1]["host"], "y");
}

#[test]
fn watcher_gets_changes_of_all_hosts_and_asks_again_when_hosts_change() {
    let mut fixture = GatewayFixture::new();
    let relayed = send_to_all(&mut fixture, "_jackfield/watch");
    assert_eq!(relayed.len(), 2);
    let Some(GatewayOutput::ListSessions { token, .. }) = fixture.other_outputs.last() else {
        panic!("{:?}", fixture.other_outputs)
    };
    let token = *token;
    for (host_conn, request) in &relayed {
        let row = json!({ "sessionId": format!("s-{}", host_conn.0) });
        let lists = json!({ "sessions": [row], "asks": [{ "ask": host_conn.0 }] });
        fixture.respond(*host_conn, request, &lists);
    }
    fixture.feed(GatewayInput::SessionsListed { token, page: Ok(SessionPage::default()) });
    let (_, answer) = fixture.last_client_frame();
    let hosts = |rows: &Value| -> Vec<Value> {
        rows.as_array().unwrap().iter().map(|it| it["host"].clone()).collect()
    };
    assert_eq!(hosts(&answer["result"]["sessions"]), ["x", "y"]);
    assert_eq!(hosts(&answer["result"]["asks"]), ["x", "y"]);

    let changes = |params: Value| json!({ "jsonrpc": "2.0", "method": "_jackfield/changes", "params": params });
    let changed = json!({ "sessions": [{ "sessionId": "s-2" }], "removed": ["s-9"] });
    fixture.send_from_host(relayed[1].0, &changes(changed));
    let expected = json!({ "sessions": [{ "sessionId": "s-2", "host": "y" }], "removed": ["s-9"] });
    assert_eq!(fixture.last_client_frame(), (A, changes(expected)));

    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 0), host("z", 0)]));
    assert_eq!(fixture.last_client_frame(), (A, changes(json!({ "restart": true }))));
    let count = fixture.client_frames.len();
    fixture.lose_connection(relayed[0].0);
    assert_eq!(fixture.client_frames.len(), count, "it has not asked again yet");
    let before = fixture.host_frames.len();
    fixture.send_from_client(A, &request(&json!(2), "_jackfield/watch", &json!({})));
    assert_eq!(fixture.host_frames.len() - before, 3);
}
