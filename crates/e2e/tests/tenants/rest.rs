//! Tenants by the API: the same walls, and nothing that the front keeps is shared.

use super::{Town, names};
use jackfield_e2e::http::Web;
use serde_json::json;

/// Makes a run; returns its name and its session's.
fn run(town: &Town, web: &Web) -> (String, String) {
    let body = json!({ "agentId": "fake", "message": "hello", "cwd": town.home.path() });
    let made = web.post("/api/runs", &body);
    assert_eq!(made.status, 202, "{}", made.text());
    let made = made.json();
    let name = |it: &str| made[it].as_str().unwrap().to_owned();
    (name("runId"), name("sessionId"))
}

#[test]
fn the_api_shows_a_tenant_its_own() {
    let town = Town::new();
    let (acme, other) = (town.web_of("acme"), town.web_of("other"));
    let mut operator = town.operator();
    let theirs = {
        let mut client = town.client("other", super::Way::Http);
        let session = client.open(town.home.path());
        assert_eq!(client.prompt(&session, "remember 17"), "end_turn");
        session
    };
    assert_eq!(names(&other.get("/api/sessions").good()), [&*theirs]);
    assert!(names(&acme.get("/api/sessions").good()).is_empty());
    assert_eq!(names(&town.web.get("/api/sessions").good()), [&*theirs]);
    let paths = [
        "",
        "/events",
        "/export",
        "/log",
        "/find?text=x",
        "/timeline",
        "/changes",
        "/changes/diff?path=x",
    ]
    .map(|it| format!("/api/sessions/{theirs}{it}"));
    for path in &paths {
        let (here, missing) = (acme.get(path), acme.get(&path.replace(&theirs, "acme.s-none")));
        assert_eq!((here.status, missing.status), (404, 404), "{path}: {}", here.text());
        let text = |it: &str, name: &str| it.replace(name, "NAME");
        assert_eq!(text(&here.text(), &theirs), text(&missing.text(), "acme.s-none"), "{path}");
        assert!(!here.text().contains("remember 17"));
    }
    assert_eq!(acme.delete(&paths[0]).status, 404);
    assert_eq!(acme.get("/metrics").status, 403);
    assert_eq!(town.web.get("/metrics").status, 200);
    assert_eq!(names(&operator.result("session/list", &json!({}))), [&*theirs]);
    drop(operator);
    town.finish();
}

#[test]
fn session_of_another_tenant_cannot_be_acted_on() {
    let town = Town::new();
    let (acme, other) = (town.web_of("acme"), town.web_of("other"));
    let (run, theirs) = run(&town, &other);
    let requests = [
        ("PATCH", "", json!({ "name": "mine" })),
        ("POST", "/cancel", json!({})),
        ("POST", "/prompt", json!({ "message": "stop", "steer": true })),
        ("GET", "/settings", json!({})),
        ("PATCH", "/settings", json!({ "mode": "plan" })),
        ("GET", "/queue", json!({})),
        ("DELETE", "/queue/1", json!({})),
        ("POST", "/queue/1/run", json!({})),
        ("POST", "/queue/1/move", json!({ "before": null })),
    ];
    for (method, path, body) in &requests {
        let ask = |session: &str| {
            let path = format!("/api/sessions/{session}{path}");
            let reply = acme.ask(method, &path, &[], Some(body));
            (reply.status, reply.text().replace(session, "NAME"))
        };
        let missing = ask("acme.s-none");
        assert_eq!(missing.0, 404, "{method} {path}: {}", missing.1);
        assert_eq!(ask(&theirs), missing, "{method} {path}");
    }
    assert_eq!(other.get(&format!("/api/runs/{run}")).status, 200);
    let settings = other.get(&format!("/api/sessions/{theirs}/settings")).good();
    assert_eq!(settings["modes"]["current"], "ask");
    let roots = json!([town.home.path().canonicalize().unwrap()]);
    assert_eq!(acme.get("/api/directories").good()["roots"], roots);
    assert_eq!(acme.get("/api/directories?path=/").status, 400);
    assert_eq!(acme.get("/api/mcp-servers").good(), json!({ "servers": [] }));
    assert_eq!(acme.get("/api/sandbox-profiles").good(), json!({ "profiles": [] }));
    town.finish();
}

#[test]
fn a_connection_over_http_is_its_tenants() {
    let town = Town::new();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 },
    });
    let opened = town.web_of("other").ask("POST", "/acp", &[], Some(&hello));
    let connection = format!("Acp-Connection-Id: {}", opened.header("acp-connection-id"));
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {} });
    let ask = |web: &Web| web.ask("POST", "/acp", &[&connection], Some(&list)).status;
    assert_eq!(ask(&town.web_of("other")), 202);
    assert_eq!(ask(&town.web_of("acme")), 404, "who knows its id is not let in by it");
    assert_eq!(ask(&town.web), 404);
    let hang_up = |web: &Web| web.ask("DELETE", "/acp", &[&connection], None).status;
    assert_eq!(hang_up(&town.web_of("acme")), 404);
    assert_eq!(hang_up(&town.web_of("other")), 202);
    let nobody = Web { token: "0".repeat(64), ..town.web.clone() };
    assert_eq!(nobody.get("/api/sessions").status, 401);
    town.finish();
}

#[test]
fn a_run_is_its_tenants() {
    let town = Town::new();
    let (acme, other) = (town.web_of("acme"), town.web_of("other"));
    let (run, session) = run(&town, &other);
    assert!(session.starts_with("other.s-"), "{session}");
    assert_eq!(other.get(&format!("/api/runs/{run}")).status, 200);
    assert_eq!(acme.get(&format!("/api/runs/{run}")).status, 404);
    town.finish();
}

#[test]
fn a_key_of_another_tenant_is_not_known() {
    let town = Town::new();
    let body = json!({ "agentId": "fake", "message": "hello" });
    let post = |web: &Web| {
        let made = web.ask("POST", "/api/runs", &["Idempotency-Key: one"], Some(&body));
        assert_eq!(made.status, 202, "{}", made.text());
        made.json()["runId"].as_str().unwrap().to_owned()
    };
    let tenants = [town.web_of("acme"), town.web_of("other"), town.web.clone()];
    let runs = tenants.each_ref().map(post);
    assert!(runs[0].starts_with("r-acme.") && runs[1].starts_with("r-other."), "{runs:?}");
    assert_eq!(tenants.each_ref().map(post), runs);
    town.finish();
}

#[test]
fn browser_of_a_tenant_sees_only_the_sessions_and_devices_of_that_tenant() {
    let town = Town::new();
    let (acme, other) = (town.web_of("acme"), town.web_of("other"));
    let refused = acme.post("/api/login-links", &json!({ "tenant": "other" }));
    assert_eq!(refused.status, 403, "{}", refused.text());
    let page = Web { token: String::new(), ..town.web.clone() };
    let origin = format!("Origin: http://{}", page.address);
    let log_in = |link: serde_json::Value| {
        let body = json!({ "code": link["code"], "deviceName": "x" });
        let reply = page.ask("POST", "/api/login", &[&origin], Some(&body));
        let cookie = reply.header("set-cookie").split(';').next().unwrap().to_owned();
        (format!("Cookie: {cookie}"), reply.good())
    };
    let (cookie, me) = log_in(acme.post("/api/login-links", &json!({})).good());
    assert_eq!((&me["tenant"], &me["operator"]), (&json!("acme"), &json!(false)));
    let (_, by_operator) =
        log_in(town.web.post("/api/login-links", &json!({ "tenant": "other" })).good());
    assert_eq!(by_operator["tenant"], "other");
    let (_, own) = log_in(town.web.post("/api/login-links", &json!({})).good());
    let (_, theirs) = run(&town, &other);
    let ask = |method: &str, path: &str| page.ask(method, path, &[&origin, &cookie], None);
    assert!(names(&ask("GET", "/api/sessions").good()).is_empty());
    assert_eq!(ask("GET", &format!("/api/sessions/{theirs}")).status, 404);
    assert_eq!(ask("GET", "/metrics").status, 403);
    let count = |it: serde_json::Value| it["devices"].as_array().unwrap().len();
    assert_eq!(count(ask("GET", "/api/devices").good()), 1);
    assert_eq!(count(town.web.get("/api/devices").good()), 3, "the operator sees all");
    for foreign in [&by_operator, &own] {
        let path = format!("/api/devices/{}", foreign["device"]["id"].as_str().unwrap());
        assert_eq!(ask("DELETE", &path).status, 404);
    }
    let path = format!("/api/devices/{}", me["device"]["id"].as_str().unwrap());
    assert_eq!(town.web.delete(&path).status, 204);
    assert_eq!(ask("GET", "/api/me").status, 401);
    town.finish();
}
