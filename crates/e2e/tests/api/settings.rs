//! The settings of a session over HTTP: read without its agent, and changed by restoring it.

use super::{again, make, serve, until};
use jackfield_e2e::{Home, Web};
use serde_json::{Value, json};

fn read(web: &Web, session: &str) -> Value {
    web.get(&format!("/api/sessions/{session}/settings")).good()
}

/// A session that has sent its commands.
fn session_with_commands(web: &Web) -> String {
    let (run, session) = make(web, &json!({ "agentId": "fake", "message": "commands" }));
    until(web, &run, "succeeded");
    session
}

#[test]
fn settings_are_read_without_the_agent_and_changed_by_restoring_it() {
    let home = Home::new();
    let state = home.path().join("agent");
    let flags = ["--state", state.to_str().unwrap(), "--caps", "load,resume"];
    let (daemon, web) = serve(&home, &flags);
    let session = session_with_commands(&web);
    let path = format!("/api/sessions/{session}/settings");
    let opened = read(&web, &session);
    assert_eq!(opened["modes"]["current"], "ask");
    let modes = opened["modes"]["available"].as_array().unwrap();
    assert_eq!(modes.iter().map(|it| &it["id"]).collect::<Vec<_>>(), ["ask", "auto", "plan"]);
    assert_eq!(opened["models"]["current"], "fake-fast");
    assert_eq!(
        (&opened["options"][0]["id"], &opened["options"][0]["current"]),
        (&json!("effort"), &json!("low"))
    );
    assert_eq!(opened["options"].as_array().unwrap().len(), 1);
    assert!(opened["commands"][0]["name"].is_string(), "{opened}");
    assert_eq!(opened["prompt"], json!({ "image": true, "audio": false, "embeddedContext": true }));

    let changed = web.patch(&path, &json!({ "mode": "plan" })).good();
    assert_eq!(changed["modes"]["current"], "plan");
    let changed = web.patch(&path, &json!({ "model": "fake-smart" })).good();
    assert_eq!(changed["models"]["current"], "fake-smart");
    web.post(&format!("/api/sessions/{session}/close"), &json!({})).good();
    daemon.stop();

    let (daemon, web) = again(&home);
    let stored = read(&web, &session);
    assert_eq!(stored, changed);
    let row = web.get(&format!("/api/sessions/{session}")).good();
    assert_eq!((&row["state"], &row["pid"]), (&json!("closed"), &Value::Null));
    let high = json!({ "option": { "id": "effort", "value": "high" } });
    let changed = web.patch(&path, &high).good();
    assert_eq!(changed["options"][0]["current"], "high");
    assert_eq!(
        (&changed["modes"]["current"], &changed["models"]["current"]),
        (&json!("plan"), &json!("fake-smart"))
    );
    assert!(web.get(&format!("/api/sessions/{session}")).good()["pid"].is_u64());
    daemon.stop();
}

#[test]
fn setting_that_is_not_offered_is_refused_with_what_is() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let session = session_with_commands(&web);
    let path = format!("/api/sessions/{session}/settings");
    let refused = [
        (json!({ "mode": "galaxy" }), "`plan`"),
        (json!({ "option": { "id": "effort", "value": "galaxy" } }), "`high`"),
        (json!({ "option": { "id": "galaxy", "value": "high" } }), "`effort`"),
        (json!({ "mode": "plan", "model": "fake-fast" }), "set one of"),
        (json!({}), "set one of"),
    ];
    for (body, hint) in refused {
        let reply = web.patch(&path, &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        assert!(reply.text().contains(hint), "{body}: {}", reply.text());
    }
    assert_eq!(web.get("/api/sessions/s-nothing/settings").status, 404);
    assert_eq!(
        web.patch("/api/sessions/s-nothing/settings", &json!({ "mode": "plan" })).status,
        404
    );
    daemon.stop();
}
