//! What every host is asked: one answer, with what each said and who said nothing.

use super::*;

fn ask_all(scene: &mut Scene, method: &str) -> Vec<(HostConnectionId, Value)> {
    let before = scene.said.len();
    scene.say(A, &request(&json!(1), method, &json!({})));
    scene.said[before..].to_vec()
}

#[test]
fn each_row_says_its_host() {
    let mut scene = Scene::new();
    let asked = ask_all(&mut scene, "_jackfield/asks");
    assert_eq!(asked.len(), 2);
    for (host_conn, request) in asked.iter().rev() {
        let row = json!({ "ask": host_conn.0 });
        scene.answer(*host_conn, request, &json!({ "asks": [row] }));
    }
    let asks = json!([{ "ask": 1, "host": "x" }, { "ask": 2, "host": "y" }]);
    assert_eq!(
        scene.told,
        [(A, json!({ "jsonrpc": "2.0", "id": 1, "result": { "asks": asks, "missing": [] } }))]
    );
}

#[test]
fn a_host_that_is_lost_or_silent_is_missing() {
    let mut scene = Scene::new();
    let asked = ask_all(&mut scene, "_jackfield/asks");
    scene.lose(asked[0].0);
    scene.pass(5_000);
    assert_eq!(scene.last().1["result"], json!({ "asks": [], "missing": ["x", "y"] }));
}

#[test]
fn sessions_that_no_host_has_are_told_by_the_fleet() {
    let mut scene = Scene::new();
    let asked = ask_all(&mut scene, "_jackfield/sessions");
    let Some(GatewayOutput::List { token, cursor: None, cwd: None, .. }) = scene.others.last()
    else {
        panic!("{:?}", scene.others)
    };
    let token = *token;
    for (host_conn, request) in &asked {
        let row = json!({ "sessionId": format!("s-{}", host_conn.0) });
        scene.answer(*host_conn, request, &json!({ "sessions": [row] }));
    }
    assert!(scene.told.is_empty());
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
    scene.feed(GatewayInput::SessionsListed { token, page: Ok(page) });
    let result = &scene.last().1["result"];
    let rows = result["sessions"].as_array().unwrap();
    let shown: Vec<_> =
        rows.iter().map(|it| (it["sessionId"].as_str().unwrap(), &it["host"])).collect();
    assert_eq!(shown, [("s-1", &json!("x")), ("s-2", &json!("y")), ("s-7", &json!(null))]);
    assert_eq!(result["more"], true);
}

#[test]
fn a_list_comes_from_the_fleet_and_no_host_is_asked() {
    let mut scene = Scene::new();
    let params = json!({ "cursor": "c", "cwd": "/w" });
    scene.say(A, &request(&json!(1), "session/list", &params));
    assert!(scene.said.is_empty());
    let Some(GatewayOutput::List { token, cursor, cwd, .. }) = scene.others.last() else {
        panic!()
    };
    assert_eq!((cursor.as_deref(), cwd.as_deref()), (Some("c"), Some("/w")));
    let token = *token;
    scene.feed(GatewayInput::SessionsListed { token, page: Ok(SessionPage::default()) });
    assert_eq!(scene.last().1["result"], json!({ "sessions": [] }));
}

#[test]
fn status_is_the_sum_and_each_host_by_itself() {
    let mut scene = Scene::new();
    for (host_conn, request) in ask_all(&mut scene, "_jackfield/status") {
        scene.answer(host_conn, &request, &json!({ "sessions": 2, "agents": 1, "clients": 9 }));
    }
    let result = &scene.last().1["result"];
    assert_eq!((&result["sessions"], &result["agents"]), (&json!(4), &json!(2)));
    assert_eq!(result["clients"], 2);
    assert_eq!(result["hosts"][1]["host"], "y");
}
