//! Acting on a session over HTTP: cancel, rename, steer, and the queue.

use super::{BOUND, again, events, make, serve, status, text, until};
use jackfield_e2e::{Home, Web, wait_for};
use serde_json::{Value, json};

/// A run that streams until it is canceled, and its session.
fn long_run(web: &Web) -> (String, String) {
    let body = json!({ "agentId": "fake", "message": "slow 1000 5" });
    let (run, session) = make(web, &body);
    until(web, &run, "running");
    (run, session)
}

/// Sends a prompt to a session and returns its run.
fn prompt(web: &Web, session: &str, body: &Value) -> String {
    let made = web.post(&format!("/api/sessions/{session}/prompt"), body).good();
    made["runId"].as_str().unwrap().to_owned()
}

fn queue(web: &Web, session: &str) -> Vec<Value> {
    let listed = web.get(&format!("/api/sessions/{session}/queue")).good();
    listed["prompts"].as_array().unwrap().clone()
}

#[test]
fn turn_is_canceled_once_and_a_session_without_a_turn_is_a_conflict() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = long_run(&web);
    let path = format!("/api/sessions/{session}/cancel");
    assert_eq!(web.post(&path, &json!({})).good(), json!({ "ok": true }));
    until(&web, &run, "canceled");
    let idle = wait_for("the conflict", BOUND, || {
        Some(web.post(&path, &json!({}))).filter(|it| it.status == 409)
    });
    assert_eq!(idle.json()["error"]["code"], "CONFLICT");
    assert_eq!(web.post("/api/sessions/s-nothing/cancel", &json!({})).status, 404);
    daemon.stop();
}

#[test]
fn name_of_a_session_is_set_and_removed_by_patch() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = make(&web, &json!({ "agentId": "fake", "message": "say hi" }));
    until(&web, &run, "succeeded");
    let path = format!("/api/sessions/{session}");
    let name = || {
        let listed = home.run(&["sessions", "list", "--format", "json"], BOUND);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed["sessions"][0]["name"].clone()
    };
    web.patch(&path, &json!({ "name": "parser" })).good();
    assert_eq!(name(), "parser");
    for refused in [json!({ "name": "s-x" }), json!({ "name": "-x" }), json!({ "title": "x" })] {
        let status = web.patch(&path, &refused).status;
        assert!(matches!(status, 400 | 422), "{refused}: {status}");
    }
    assert_eq!(web.patch(&path, &json!({})).json()["error"]["code"], "VALIDATION_FAILED");
    web.patch(&path, &json!({ "name": null })).good();
    assert_eq!(name(), Value::Null);
    assert_eq!(web.patch("/api/sessions/s-nothing", &json!({ "name": null })).status, 404);
    daemon.stop();
}

#[test]
fn queued_prompts_are_listed_withdrawn_and_after_a_kill_run_on_request() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--caps", "load,resume"]);
    let (_, session) = long_run(&web);
    let first = prompt(&web, &session, &json!({ "message": "say one" }));
    let second = prompt(&web, &session, &json!({ "message": "say two\nand more" }));
    let rows = queue(&web, &session);
    let row = |it: &Value| json!([it["prompt"], it["text"], it["held"], it["steers"]]);
    let rows: Vec<Value> = rows.iter().map(row).collect();
    assert_eq!(rows, [json!([1, "say one", false, false]), json!([2, "say two", false, false])]);
    let path = format!("/api/sessions/{session}/queue");
    web.delete(&format!("{path}/2")).good();
    assert_eq!(web.delete(&format!("{path}/2")).status, 404);
    assert_eq!(web.delete(&format!("{path}/x")).status, 404);
    until(&web, &second, "canceled");
    // A prompt that is not held runs by itself.
    assert_eq!(web.post(&format!("{path}/1/run"), &json!({})).status, 404);
    daemon.kill_9();
    let gone = || home.alive(&[]).is_empty().then_some(());
    wait_for("the agent to end", BOUND, gone);

    let (daemon, web) = again(&home);
    assert_eq!(queue(&web, &session)[0]["held"], true);
    web.post(&format!("{path}/1/run"), &json!({})).good();
    until(&web, &first, "succeeded");
    assert_eq!(text(&events(&web, &first)), "you said: say one");
    assert_eq!(queue(&web, &session), [] as [Value; 0]);
    daemon.stop();
}

#[test]
fn moved_prompts_keep_their_order_over_a_kill() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &["--caps", "load,resume"]);
    let (_, session) = long_run(&web);
    let runs = ["say one", "say two", "say three"]
        .map(|it| prompt(&web, &session, &json!({ "message": it })));
    let order = |web: &Web| -> Vec<u64> {
        queue(web, &session).iter().map(|it| it["prompt"].as_u64().unwrap()).collect()
    };
    let path = format!("/api/sessions/{session}/queue");
    web.post(&format!("{path}/3/move"), &json!({ "before": 1 })).good();
    web.post(&format!("{path}/1/move"), &json!({ "before": null })).good();
    assert_eq!(order(&web), [3, 2, 1]);
    assert_eq!(web.post(&format!("{path}/1/move"), &json!({ "before": 9 })).status, 404);
    assert_eq!(web.post(&format!("{path}/1/move"), &json!({ "before": 1 })).status, 400);
    assert_eq!(web.post(&format!("{path}/1/move"), &json!({})).status, 400);
    daemon.kill_9();
    wait_for("the agent to end", BOUND, || home.alive(&[]).is_empty().then_some(()));

    let (daemon, web) = again(&home);
    assert_eq!(order(&web), [3, 2, 1]);
    let released = home.run(&["queue", &session, "--run"], BOUND);
    assert!(released.status.success(), "{released:?}");
    until(&web, &runs[0], "succeeded");
    let turn = |run: &String| web.get(&format!("/api/runs/{run}")).good()["turn"].as_u64();
    assert_eq!(runs.each_ref().map(turn), [Some(4), Some(3), Some(2)]);
    daemon.stop();
}

#[test]
fn steering_prompt_cancels_the_turn_and_runs_before_the_queue() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (run, session) = long_run(&web);
    let later = prompt(&web, &session, &json!({ "message": "slow 2 5" }));
    let steering = prompt(&web, &session, &json!({ "message": "say this", "steer": true }));
    until(&web, &steering, "succeeded");
    assert_eq!(status(&web, &run), "canceled");
    until(&web, &later, "succeeded");
    let turn = |run: &str| web.get(&format!("/api/runs/{run}")).good()["turn"].as_u64();
    assert_eq!([turn(&run), turn(&steering), turn(&later)], [Some(1), Some(2), Some(3)]);
    daemon.stop();
}
