//! Sessions, asks and agents over HTTP, whoever opened them.

use super::{BOUND, editor, install, serve};
use jackfield_e2e::{Home, Web, wait_for};
use serde_json::{Value, json};

fn code(web: &Web, path: &str) -> (u16, Value) {
    let reply = web.get(path);
    (reply.status, reply.json()["error"]["code"].clone())
}

#[test]
fn a_session_of_an_editor_is_listed_shown_followed_forked_exported_and_removed() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    assert_eq!(editor.prompt(&id, "hello"), "end_turn");

    let listed = web.get("/api/sessions").good();
    assert_eq!(listed["sessions"][0]["sessionId"], id.as_str());
    let shown = web.get(&format!("/api/sessions/{id}?usage=1")).good();
    assert_eq!((&shown["agent"], &shown["turns"]), (&json!("fake"), &json!(1)));
    assert_eq!(shown["usage"]["turns"][0]["ended"], "end_turn");

    let path = format!("/api/sessions/{id}/events?view=acp");
    let mut events = web.stream("GET", &path, &[], None);
    let ended = |it: &jackfield_e2e::http::Event| it.json()["params"]["is"] == "ended";
    let told = events.until("the turn's end", ended);
    let seqs: Vec<u64> = told.iter().map(|it| it.id.clone().unwrap().parse().unwrap()).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    let said =
        told.iter().any(|it| it.json()["params"]["update"]["content"]["text"] == "you said: hello");
    assert!(said, "{told:#?}");
    let mut later = web.stream("GET", &path, &["Last-Event-ID: 2"], None);
    assert_eq!(later.next().unwrap().id.as_deref(), Some("3"));
    assert_eq!(editor.prompt(&id, "again"), "end_turn");
    let news = events.until("the next end", ended);
    assert_eq!(news[0].id, Some((seqs.len() + 1).to_string()));

    let fork = web.post(&format!("/api/sessions/{id}/fork"), &json!({ "at": 3 })).good();
    let fork = fork["sessionId"].as_str().unwrap();
    assert_ne!(fork, id);
    let archive = web.get(&format!("/api/sessions/{id}/export")).text();
    assert!(archive.lines().last().unwrap().starts_with(r#"{"jackfield":"end""#), "{archive}");
    let file = home.path().join("archive.ndjson");
    std::fs::write(&file, &archive).unwrap();
    let imported = home.run(&["sessions", "import", file.to_str().unwrap()], BOUND);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));

    web.post(&format!("/api/sessions/{id}/close"), &json!({})).good();
    assert_eq!(web.get(&format!("/api/sessions/{id}")).good()["state"], "closed");
    web.delete(&format!("/api/sessions/{fork}")).good();
    assert_eq!(code(&web, &format!("/api/sessions/{fork}")), (404, json!("NOT_FOUND")));
    assert_eq!(code(&web, &format!("/api/sessions/{fork}/events")), (404, json!("NOT_FOUND")));
    drop((editor, events, later));
    daemon.stop();
}

#[test]
fn a_list_has_pages_and_every_session_is_on_one_of_them() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let editors: Vec<_> = (0..5).map(|_| editor(&home)).collect();
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = web.get(&format!("/api/sessions?limit=2{cursor}")).good();
        let rows = page["sessions"].as_array().unwrap().clone();
        assert!(rows.len() <= 2);
        found.extend(rows.iter().map(|it| it["sessionId"].as_str().unwrap().to_owned()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let mut opened: Vec<String> = editors.iter().map(|it| it.1.clone()).collect();
    opened.sort();
    found.sort();
    assert_eq!(found, opened);
    assert_eq!(code(&web, "/api/sessions?limit=0"), (400, json!("VALIDATION_FAILED")));
    assert_eq!(code(&web, "/api/sessions?nonsense=0"), (400, json!("VALIDATION_FAILED")));
    drop(editors);
    daemon.stop();
}

#[test]
fn an_ask_is_answered_by_a_post_and_only_once() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (mut editor, id) = editor(&home);
    let prompt = editor.send_prompt(&id, "ask");
    let ask = wait_for("the ask", BOUND, || web.get("/api/asks").good()["asks"].get(0).cloned());
    assert_eq!((&ask["sessionId"], &ask["what"]), (&json!(id), &json!("touch a file")));
    let path = format!("/api/asks/{id}/{}", ask["ask"]);
    let refused = web.post(&path, &json!({ "option": "whatever" }));
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("offers no option `whatever`"), "{}", refused.text());
    assert_eq!(web.post(&path, &json!({})).status, 400);
    web.post(&path, &json!({ "option": "allow" })).good();
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text(), "ask 1: allow-once");
    let late = web.post(&path, &json!({ "option": "deny" }));
    assert_eq!((late.status, late.json()["error"]["code"].clone()), (409, json!("CONFLICT")));
    assert_eq!(web.post(&format!("/api/asks/{id}/9"), &json!({ "option": "deny" })).status, 404);
    assert_eq!(web.get("/api/asks").good(), json!({ "asks": [] }));
    drop(editor);
    daemon.stop();
}

#[test]
fn agents_are_listed_with_what_can_be_chosen_and_streamed_one_by_one() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let agents = web.get("/api/agents").good();
    let agents = agents["agents"].as_array().unwrap();
    let agent = |id: &str| agents.iter().find(|it| it["id"] == id).unwrap();
    // Our own agent is wherever we are.
    assert_eq!([&agent("fake")["available"], &agent("chat")["available"]], [true, true]);
    let codex = agent("codex");
    assert_eq!(codex["available"], false);
    assert!(codex["installHint"].is_string() && 1 < codex["models"].as_array().unwrap().len());
    let mut events = web.stream("GET", "/api/agents?stream=1", &[], None);
    let told = events.rest();
    assert_eq!(told.len(), agents.len() + 1);
    assert_eq!(told.last().unwrap().name, "done");
    assert!(told[..agents.len()].iter().all(|it| it.name == "agent"));
    drop(events);
    daemon.stop();
}

#[test]
fn operators_can_ask_and_what_is_not_served_is_said_so() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    assert_eq!(web.get("/healthz").text(), "ok\n");
    assert_eq!(web.get("/readyz").good()["ready"], true);
    let document = web.get("/openapi.json").good();
    assert!(document["paths"]["/api/sessions/{sessionId}"]["delete"].is_object());
    assert_eq!(code(&web, "/nothing"), (404, json!("NOT_FOUND")));
    let refused = web.post("/api/agents", &json!({}));
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (405, json!("METHOD_NOT_ALLOWED"))
    );
    daemon.stop();
}

#[test]
fn programs_are_asked_what_they_are_once_however_many_want_to_know() {
    let home = Home::new();
    let asked = home.path().join("asked");
    let script = format!("#!/bin/sh\necho \"$*\" >>{asked:?}\nsleep 0.2\necho script 1.2.3\n");
    install(&home, "script", "codex", &script);
    let (daemon, web) = serve(&home, &[]);
    let version = |web: &Web| {
        let agents = web.get("/api/agents").good();
        let agents = agents["agents"].as_array().unwrap().clone();
        agents.iter().find(|it| it["id"] == "script").unwrap()["version"].clone()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| version(&web))).collect();
        for one in all {
            assert_eq!(one.join().unwrap(), "script 1.2.3");
        }
    });
    let times = || std::fs::read_to_string(&asked).unwrap().matches("--version").count();
    assert_eq!(times(), 1);
    assert_eq!((version(&web), times()), (json!("script 1.2.3"), 1), "it has told");
    web.get("/api/agents?probe=1").good();
    assert_eq!(times(), 2);
    daemon.stop();
}
