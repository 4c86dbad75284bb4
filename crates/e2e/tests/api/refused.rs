//! What is refused before anything is started for it, each with its reason.

use super::{assert_whole, body, make, serve_with, until};
use jackfield_e2e::{Home, http::Reply};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink};

fn said(reply: &Reply) -> (u16, String, String) {
    let error = reply.json()["error"].clone();
    let text = |name: &str| error[name].as_str().unwrap().to_owned();
    (reply.status, text("code"), text("message"))
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason_and_nothing_is_opened() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("a.txt"), "").unwrap();
    fs::write(home.path().join("secret.png"), "").unwrap();
    symlink(home.path().join("secret.png"), work.join("link.png")).unwrap();
    symlink(home.path(), work.join("up")).unwrap();
    let config = format!("[http]\nroots = [{work:?}]\n");
    let (daemon, web) = serve_with(&home, &[], &config);
    let with = |name: &str, value: Value| {
        let mut body = body("hello");
        body["cwd"] = json!(work);
        body[name] = value;
        body
    };
    let outside = work.join("up").display().to_string();
    let cases = [
        (json!({ "agentId": "nobody", "message": "x" }), "BAD_REQUEST", "unknown agent `nobody`"),
        (json!({ "agentId": "fake", "message": " \n" }), "BAD_REQUEST", "`message` is required"),
        (json!({ "agentId": "fake" }), "BAD_REQUEST", "`message` is required"),
        (json!({ "message": "x" }), "BAD_REQUEST", "`agentId` is required"),
        (with("model", json!("--yolo")), "VALIDATION_FAILED", "is not a valid model id"),
        (with("model", json!("a b")), "VALIDATION_FAILED", "is not a valid model id"),
        (
            with("cwd", json!(home.path())),
            "VALIDATION_FAILED",
            "not below any of the configured roots",
        ),
        (with("cwd", json!(outside)), "VALIDATION_FAILED", "not below any of the configured roots"),
        (with("cwd", json!("work")), "VALIDATION_FAILED", "absolute"),
        (with("projectId", json!("p1")), "VALIDATION_FAILED", "either `projectId` or `cwd`"),
        (with("attachments", json!(["../secret.png"])), "VALIDATION_FAILED", "outside of"),
        (with("attachments", json!(["gone.txt"])), "FILE_NOT_FOUND", "gone.txt"),
        (with("imagePaths", json!(["link.png"])), "VALIDATION_FAILED", "outside of"),
        (
            with("imagePaths", json!([home.path().join("secret.png")])),
            "VALIDATION_FAILED",
            "outside of",
        ),
        (with("approve", json!("always")), "VALIDATION_FAILED", "approve"),
        (
            json!({ "agentId": "fake", "message": "x", "projectId": ".." }),
            "VALIDATION_FAILED",
            "is not a valid projectId",
        ),
    ];
    for (body, code, part) in cases {
        for path in ["/api/chat", "/api/runs"] {
            let (status, said, message) = said(&web.post(path, &body));
            assert_eq!((status, said.as_str()), (400, code), "{body}: {message}");
            assert!(message.contains(part), "{body}: {message}");
        }
    }
    let missing = json!({ "agentId": "codex", "message": "x" });
    let (status, code, message) = said(&web.post("/api/chat", &missing));
    assert_eq!((status, code.as_str()), (424, "AGENT_UNAVAILABLE"), "{message}");
    assert!(message.contains("npm install"), "{message}");
    let away = json!({ "sessionId": "s-aaaaaaaaaaaa", "message": "x" });
    assert_eq!(said(&web.post("/api/runs", &away)).0, 404);
    assert_eq!(web.get("/api/sessions").good()["sessions"], json!([]));
    let mut good = with("attachments", json!(["a.txt"]));
    good["attachments"] = json!(["a.txt"]);
    make(&web, &good);
    daemon.stop();
}

#[test]
fn what_only_the_agent_can_refuse_leaves_no_session_behind() {
    let home = Home::new();
    let (daemon, web) = serve_with(&home, &[], "");
    for (name, value, part) in [
        ("model", "no-such-model", "rejected model `no-such-model`"),
        ("reasoning", "galaxy", "it offers `low`, `high`"),
        ("mode", "yolo", "it offers `ask`"),
    ] {
        let mut body = body("hello");
        body[name] = json!(value);
        let (run, _) = make(&web, &body);
        until(&web, &run, "failed");
        let error = web.get(&format!("/api/runs/{run}")).good()["error"].clone();
        assert_eq!(error["code"], "VALIDATION_FAILED");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        let told = web.stream("POST", "/api/chat", &[], Some(&body)).rest();
        assert_whole(&told);
        let error = told[told.len() - 2].json();
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        // The response to a request with a key waits until the prompt is in the log.
        let key = [format!("Idempotency-Key: {name}")];
        let keyed = web.ask("POST", "/api/runs", &[&key[0]], Some(&body));
        assert_eq!((keyed.status, said(&keyed).1.as_str()), (400, "VALIDATION_FAILED"));
    }
    assert_eq!(web.get("/api/sessions").good()["sessions"], json!([]));
    daemon.stop();
}

#[test]
fn an_agent_that_wants_a_login_or_cannot_start_is_said_to() {
    for (flags, code) in [
        (&["--auth"][..], "AGENT_AUTH_REQUIRED"),
        (&["--exit-before-initialize", "7"], "AGENT_UNAVAILABLE"),
    ] {
        let home = Home::new();
        let (daemon, web) = serve_with(&home, flags, "");
        let keyed = web.ask("POST", "/api/runs", &["Idempotency-Key: one"], Some(&body("hello")));
        let (status, said, message) = said(&keyed);
        assert_eq!((status, said.as_str()), (424, code), "{message}");
        let told = web.stream("POST", "/api/chat", &[], Some(&body("hello"))).rest();
        assert_whole(&told);
        assert_eq!(told[told.len() - 2].json()["error"]["code"], code, "{told:#?}");
        assert_eq!(told.last().unwrap().json()["status"], "failed");
        assert_eq!(web.get("/api/sessions").good()["sessions"], json!([]));
        daemon.stop();
    }
}
