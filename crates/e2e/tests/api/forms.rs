//! Forms of agents, which are shown and answered over HTTP.

use super::{BOUND, body, events, make, serve, text};
use jackfield_e2e::{Home, Web, wait_for};
use serde_json::{Value, json};

/// A run whose agent sends a form, and the open request.
fn elicit(web: &Web, kind: &str) -> (String, Value) {
    let (run, session) = make(web, &body(&format!("elicit {kind}")));
    let ask = wait_for("the form", BOUND, || {
        let asks = web.get("/api/asks").good();
        asks["asks"].as_array()?.iter().find(|it| it["sessionId"] == session.as_str()).cloned()
    });
    (run, ask)
}

fn path(ask: &Value) -> String {
    format!("/api/asks/{}/{}", ask["sessionId"].as_str().unwrap(), ask["ask"])
}

#[test]
fn form_is_shown_with_its_schema_and_answered_with_its_content() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, ask) = elicit(&web, "form");
    assert_eq!((&ask["method"], &ask["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert_eq!(ask["what"], "Which branch?");
    assert_eq!(ask["requestedSchema"]["required"], json!(["branch"]));
    assert_eq!(ask["requestedSchema"]["properties"]["branch"]["enum"], json!(["main", "next"]));
    let option = web.post(&path(&ask), &json!({ "option": "allow" }));
    assert_eq!(option.status, 400);
    assert!(option.text().contains("is a form"), "{}", option.text());
    let unknown = web.post(&path(&ask), &json!({ "result": { "action": "perhaps" } }));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
    let accept = json!({ "result": { "action": "accept", "content": { "branch": "next" } } });
    web.post(&path(&ask), &accept).good();
    assert_eq!(text(&events(&web, &run)), r#"elicit: accept {"branch":"next"}"#);
    assert_eq!(web.post(&path(&ask), &accept).status, 409);
    daemon.stop();
}

#[test]
fn form_at_an_address_is_shown_with_it_and_declined() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, ask) = elicit(&web, "url");
    assert_eq!((&ask["mode"], &ask["url"]), (&json!("url"), &json!("http://127.0.0.1/fake")));
    assert_eq!(ask["requestedSchema"], Value::Null);
    web.post(&path(&ask), &json!({ "result": { "action": "decline" } })).good();
    assert_eq!(text(&events(&web, &run)), "elicit: decline null");
    daemon.stop();
}

#[test]
fn form_is_refused_at_once_in_a_run_without_a_person() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let mut alone = body("elicit form");
    alone["approve"] = json!("all");
    let (run, _) = make(&web, &alone);
    let told = text(&events(&web, &run));
    assert!(!told.contains("accept"), "{told}");
    assert_eq!(web.get("/api/asks").good()["asks"], json!([]));
    daemon.stop();
}

/// Such a form belongs to the client that sent the request, here the API itself, and not to the session.
#[test]
fn form_about_a_request_is_refused_at_once() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, _) = make(&web, &body("elicit request"));
    let told = text(&events(&web, &run));
    assert!(told.starts_with("elicit: error -32601"), "{told}");
    assert_eq!(web.get("/api/asks").good()["asks"], json!([]));
    daemon.stop();
}
